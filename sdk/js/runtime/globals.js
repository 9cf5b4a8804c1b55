// What is another while a plugin is loaded: the memory that this leaves is that of each instance.

import * as host from '#host';

const LEVELS = { debug: 'debug', error: 'error', info: 'info', log: 'info', trace: 'trace', warn: 'warn' };

/**
 * Replace the globals that a call has and loading has not. Returns the function that puts them back.
 * Code that took one of them while it was loaded has the real one in calls.
 */
export function useQuietGlobals() {
  let isLoading = true;
  const put = (object, name, other) => {
    const real = object[name];
    object[name] = function (...args) {
      return isLoading ? other(...args) : real.apply(this, args);
    };
    return () => { object[name] = real; };
  };
  const restore = [
    put(Math, 'random', sameNumbers()),
    ...['getRandomValues', 'randomUUID'].map((name) => put(crypto, name, refuseRandom)),
    // Standard output would stay open.
    ...Object.entries(LEVELS).map(([name, level]) => put(console, name, (...values) => {
      host.write(level, values.map(shown).join(' '), []);
    })),
  ];
  return () => {
    isLoading = false;
    for (const one of restore) one();
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
  if (typeof value?.message === 'string') return `${value.name}: ${value.message}`;
  return JSON.stringify(value) ?? String(value);
}
