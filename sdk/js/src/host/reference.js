// The host of unit tests: everything runs in this process.

export { ReferenceBlob as Blob } from '../reference/blob.js';
export { ReferenceTensor as Tensor } from '../reference/tensor.js';
export { ReferencePixels as Pixels } from '../reference/pixels.js';
export { open as openAsset } from '../reference/assets.js';
export { write } from '../reference/log.js';
export { write as writeJson } from '../reference/json.js';
export { evaluate, read } from '../reference/arrays.js';
export { decodeTokens, encodeTexts, tokenToId } from '../reference/tokenizer.js';
export { keep, takeKept } from '../reference/keep.js';
export { gatherRows } from '../reference/tables.js';
export { gather, gatherBy, getMany, increment, setValue } from '../reference/store.js';
export { sendRequest } from '../reference/http.js';
