// The package `gristmill-plugin`: all that a plugin's code imports.

export { Body } from './body.js';
export { Failure, InvalidInput, UnsupportedMediaType, Unprocessable, Internal } from './failure.js';
export { Tensor, TensorError } from './tensor.js';
export { np, NdArray } from './numpy.js';
export { ArrayError } from './program.js';
export { Pixels, Placement, ImageError, IMAGENET } from './image.js';
export { PluginResponse } from './response.js';
export { Records } from './records.js';
export { models, InferError } from './models.js';
export { store, StoreError } from './store.js';
export { assets } from './assets.js';
export { fetch, FetchError } from './fetch.js';
export { kept } from './kept.js';
export { Tokenizer, TokenizerError } from './tokenizer.js';
export { tables, TableError } from './tables.js';
export { log } from './log.js';
