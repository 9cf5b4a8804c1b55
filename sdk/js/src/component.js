// What the entry module of a component imports; `build/build.mjs` writes that module. For `handle` it
// imports `handler.js`.

export { exportPostprocess, exportPreprocess } from './call.js';
