// The host as a component imports it. `build/build.mjs` chooses this file by the condition
// `gristmill`.

export { Tensor } from 'gristmill:plugin/tensors@0.2.0';
export { Pixels } from 'gristmill:plugin/image@0.2.0';
export { write } from 'gristmill:plugin/log@0.2.0';
