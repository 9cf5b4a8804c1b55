// What is another while a plugin is loaded: the memory that this leaves is that of each instance.
//
// Loading ends with the first call, and not with `load`: the engine runs promises after it.

import * as host from '#host';

const LEVELS = { debug: 'debug', error: 'error', trace: 'trace', warn: 'warn' };

let isLoading = false;

/** A call begins, so nothing is loaded any more. */
export function beginCall() {
  isLoading = false;
}

/** Replace the globals that a call has and loading has not, before any code of the author runs. */
export function useLoadingGlobals() {
  isLoading = true;
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
  }
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
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}
