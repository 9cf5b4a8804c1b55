// Rows of numbers by key, in files among the assets.

import * as host from '#host';
import { asked, errorOf, text, u32 } from './arguments.js';
import { Tensor, wrap } from './tensor.js';

const KINDS = ['no-asset', 'malformed', 'invalid-argument'];

/** A file or an argument is wrong. If nothing catches it: 500, with the text in the log only. */
export const TableError = errorOf('TableError', KINDS);

export const tables = {
  gather(asset, keys, columns, missing = 0) {
    if (typeof missing !== 'number') throw new TypeError('missing is not a number');
    const wanted = [text('asset', asset), keysOf(keys), columnsOf(columns), missing];
    return wrap(asked(() => host.gatherRows(...wanted), KINDS, TableError), 'float32');
  },
};

/** The contract's form of keys: a list, or a tensor. */
function keysOf(keys) {
  if (Array.isArray(keys)) return { tag: 'list', val: keys.map(keyOf) };
  if (Tensor.is(keys)) return { tag: 'tensor', val: Tensor.raw(keys) };
  throw new TypeError('keys is neither an array nor a Tensor');
}

function keyOf(key) {
  if (typeof key === 'bigint' || Number.isSafeInteger(key)) return String(key);
  if (typeof key !== 'string') throw new TypeError(`a key is ${String(key)}, not a string or a whole number`);
  return key;
}

function columnsOf(columns) {
  if (typeof columns === 'number') return { tag: 'width', val: u32('columns', columns) };
  if (!Array.isArray(columns)) throw new TypeError('columns is neither a number nor an array of names');
  return { tag: 'named', val: columns.map((name) => text('a column', name)) };
}
