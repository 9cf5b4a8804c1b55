// The runtime for plugins in JavaScript: the module of which the shared component is made.
//
// The component exports the functions of a plugin and `load`, which the server calls once, when a
// plugin's sources are uploaded. The memory that `load` leaves is the plugin.

import { readFile } from 'gristmill:runtime/loading@0.1.0';
import { exportPostprocess, exportPreprocess } from '../src/component.js';
import { describe, PLACES } from '../src/fault.js';
import * as sdk from '../src/index.js';
import { useQuietGlobals } from './globals.js';

const CALLS = { preprocess: exportPreprocess, postprocess: exportPostprocess };

/** The functions of the plugin that was loaded. */
const plugin = {};

export const preprocess = (context, request) => plugin.preprocess(context, request);

export const postprocess = (context, outputs, state) => plugin.postprocess(context, outputs, state);

/** Load the bundle `app`. Returns the names of the functions that it exports. */
export function load(app) {
  const restoreGlobals = useQuietGlobals();
  const module = { exports: {} };
  try {
    globalThis[PLACES] = JSON.parse(text(app.replace(/js$/, 'json')));
    // In the global scope, and not in this module's. The first line stays the first.
    const run = (0, eval)(`(function (module, exports, require) {${text(app)}\n})\n//# sourceURL=${app}`);
    run.call(undefined, module, module.exports, require);
  } catch (error) {
    // The component's bindings return a text that is thrown.
    throw describe(error, sourceLine);
  } finally {
    restoreGlobals();
  }
  const exported = Object.keys(CALLS).filter((name) => typeof module.exports[name] === 'function');
  for (const name of exported) plugin[name] = CALLS[name](module.exports[name]);
  return exported;
}

function require(name) {
  if (name === 'gristmill-plugin') return sdk;
  throw new Error(`there is no module ${name}`);
}

function sourceLine(file, line) {
  const content = readFile(`source/${file}`);
  return content && new TextDecoder().decode(content).split('\n')[line - 1]?.trim();
}

function text(path) {
  const content = readFile(path);
  if (content === undefined) throw new Error(`there is no ${path} in the archive`);
  return new TextDecoder().decode(content);
}
