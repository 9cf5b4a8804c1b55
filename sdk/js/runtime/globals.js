// Globals that are not the engine's own. Some are another while a plugin is loaded: the memory that
// this leaves is that of each instance. Others say what the engine would end the instance for.
//
// Loading ends with the first call, and not with `load`: the engine runs promises after it.

import * as host from '#host';
import { fail } from '../src/call.js';
import { brief } from '../src/fault.js';

const LEVELS = { debug: 'debug', error: 'error', trace: 'trace', warn: 'warn' };

let isLoading = false;

/** A call begins, so nothing is loaded any more. */
export function beginCall() {
  isLoading = false;
}

/** Replace the globals, before any code of the author runs. */
export function replaceGlobals() {
  isLoading = true;
  globalThis.fetch = refuseFetch;
  for (const name of ['queueMicrotask', 'setInterval', 'setTimeout']) guard(name);
  replace(Math, 'random', sameNumbers());
  // The object's own methods could be left out, those of its class not.
  const { prototype } = crypto.constructor;
  for (const name of ['getRandomValues', 'randomUUID']) replace(prototype, name, refuseRandom);
  // Standard output would stay open.
  for (const name of Object.getOwnPropertyNames(console)) {
    if (typeof console[name] !== 'function') continue;
    replace(console, name, (...values) => {
      host.write(LEVELS[name] ?? 'info', values.map(shown).join(' '), []);
    });
    const write = console[name];
    // The engine shows where an error is in the bundle, and not in the author's files.
    console[name] = (...values) =>
      write.apply(console, values.map((value) => (value instanceof Error ? brief(value) : value)));
  }
}

/** An exception that a callback lets out fails the call. The engine would end the instance. */
function guard(name) {
  const real = globalThis[name];
  globalThis[name] = (work, ...rest) => {
    if (typeof work !== 'function') return real(work, ...rest);
    const guarded = (...args) => {
      try {
        work(...args);
      } catch (error) {
        fail(error);
      }
    };
    return real(guarded, ...rest);
  };
}

async function refuseFetch() {
  throw new TypeError("the global fetch asks nobody: import { fetch } from 'gristmill-plugin'");
}

function replace(object, name, whileLoading) {
  const real = object[name];
  object[name] = function (...args) {
    return isLoading ? whileLoading(...args) : real.apply(this, args);
  };
}

/** Numbers that only look random, as those of a linear congruential generator. */
function sameNumbers() {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function refuseRandom() {
  throw new Error(
    'there are no random bytes while the plugin is loaded: every instance would have the same',
  );
}

function shown(value) {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
