// The runtime for plugins in JavaScript: the module of which the shared component is made.
//
// The component exports the functions of a plugin and `load`, which the server calls once, when a
// plugin's sources are uploaded. The memory that `load` leaves is the plugin.

import { readFile } from 'gristmill:runtime/loading@0.1.0';
import { exportPostprocess, exportPreprocess } from '../src/component.js';
import { describe, PLACES } from '../src/fault.js';
import { exportHandle } from '../src/handler.js';
import * as sdk from '../src/index.js';
import { beginCall, replaceGlobals } from './globals.js';
import { placesForHost } from './places.js';

const CALLS = { preprocess: exportPreprocess, postprocess: exportPostprocess, handle: exportHandle };

/**
 * Lets the engine compile all functions of the script now. It compiles a function at its first call
 * otherwise, and each fresh instance would do so again. It has no setting for this that `eval` takes,
 * but it compiles all that stands behind this directive. The code does not become asm.js.
 */
const WHOLE = '"use asm";';

/** The functions of the plugin that was loaded, and what the host reads of it. */
const plugin = {};

export function preprocess(context, request) {
  beginCall();
  return plugin.preprocess(context, request);
}

export function postprocess(context, outputs, state) {
  beginCall();
  return plugin.postprocess(context, outputs, state);
}

export function handle(context, request) {
  beginCall();
  return plugin.handle(context, request);
}

/** Load the bundle `app`. Returns the names of the functions that it exports. */
export function load(app) {
  replaceGlobals();
  try {
    const places = JSON.parse(text(app.replace(/js$/, 'json')));
    globalThis[PLACES] = places;
    plugin.places = placesForHost(places);
    const module = { exports: {} };
    compiled(app).call(undefined, module, module.exports, require);
    const { exports } = module;
    const exported = Object.keys(CALLS).filter((name) => typeof exports[name] === 'function');
    for (const name of exported) plugin[name] = CALLS[name](exports[name]);
    return exported;
  } catch (error) {
    // The component's bindings return a text that is thrown.
    throw describe(error, sourceLine);
  }
}

/** The script as a function. */
function compiled(app) {
  try {
    // In the global scope, and not in this module's. The first line stays the first.
    return (0, eval)(`(function (module, exports, require) {${WHOLE}${text(app)}\n})\n//# sourceURL=${app}`);
  } catch (error) {
    // The stack of an error of syntax is that of this module.
    if (error instanceof SyntaxError) error.stack = `@${app}:${error.lineNumber}:0`;
    throw error;
  }
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
