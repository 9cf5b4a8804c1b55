// What the entry module of a component imports; `build/build.mjs` writes that module.

export { exportPostprocess, exportPreprocess } from './call.js';
