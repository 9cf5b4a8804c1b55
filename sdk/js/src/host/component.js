// The host as a component imports it. `build/build.mjs` chooses this file by the condition
// `gristmill`.

export { Blob } from 'gristmill:plugin/types@0.3.0';
export { Tensor } from 'gristmill:plugin/tensors@0.3.0';
export { Pixels } from 'gristmill:plugin/image@0.3.0';
export { open as openAsset } from 'gristmill:plugin/assets@0.3.0';
export { write } from 'gristmill:plugin/log@0.3.0';
export { document as writeJson } from 'gristmill:plugin/json@0.3.0';
export { evaluate, read } from 'gristmill:plugin/arrays@0.3.0';
export { decode as decodeTokens, encode as encodeTexts, tokenToId } from 'gristmill:plugin/tokenizer@0.3.0';
export { put as keep, take as takeKept } from 'gristmill:plugin/keep@0.3.0';
export { gather as gatherRows } from 'gristmill:plugin/tables@0.3.0';
export { gather, gatherBy, getMany, increment, set as setValue } from 'gristmill:plugin/store@0.3.0';
export { send as sendRequest } from 'gristmill:plugin/http@0.3.0';
