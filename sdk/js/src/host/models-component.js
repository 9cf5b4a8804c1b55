// The host's models as a component imports them, if its world is that of handlers. `build/build.mjs`
// chooses this file by the condition `gristmill`.

export { infer, inferAll } from 'gristmill:plugin/models@0.3.0';
