// Values by key, in stores that the operator binds.

import * as host from '#host';
import { asked, errorOf, text, u32 } from './arguments.js';
import { Body } from './body.js';
import { Tensor, wrap } from './tensor.js';

const KINDS = ['not-granted', 'invalid-argument', 'unavailable', 'read-only'];

const encoder = new TextEncoder();

/** Why a store gave no answer. If nothing catches it: 500, with the text in the log only. */
export const StoreError = errorOf('StoreError', KINDS);

export const store = {
  get(bucket, key) {
    return store.getMany(bucket, [key])[0]?.bytes();
  },

  getMany(bucket, keys) {
    const wanted = [text('bucket', bucket), texts(keys)];
    const values = answered(() => host.getMany(...wanted));
    return Array.from(values, (value) => (value == null ? undefined : new Body(value)));
  },

  gather(bucket, keys, width, missing = 0, { prefix = '' } = {}) {
    if (typeof missing !== 'number') throw new TypeError('missing is not a number');
    const [name, begin] = [text('bucket', bucket), text('prefix', prefix)];
    const row = [u32('width', width), missing];
    if (Tensor.is(keys)) {
      const ids = Tensor.raw(keys);
      return wrap(answered(() => host.gatherBy(name, begin, ids, ...row)), 'float32');
    }
    const listed = texts(keys, 'neither an array nor a Tensor').map((key) => begin + key);
    return wrap(answered(() => host.gather(name, listed, ...row)), 'float32');
  },

  set(bucket, key, value, { ttlMs } = {}) {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value;
    if (!(bytes instanceof Uint8Array)) throw new TypeError('value is neither a string nor a Uint8Array');
    if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs > 0)) {
      throw new TypeError(`ttlMs is not a whole number from 1 on: ${String(ttlMs)}`);
    }
    const ttl = ttlMs === undefined ? undefined : BigInt(ttlMs);
    const wanted = [text('bucket', bucket), text('key', key), bytes, ttl];
    answered(() => host.setValue(...wanted));
  },

  increment(bucket, key, delta = 1) {
    if (!Number.isSafeInteger(delta)) throw new TypeError(`delta is not a whole number: ${String(delta)}`);
    const wanted = [text('bucket', bucket), text('key', key), BigInt(delta)];
    const sum = Number(answered(() => host.increment(...wanted)));
    if (!Number.isSafeInteger(sum)) throw new RangeError(`the sum ${sum} is beyond whole numbers of JavaScript`);
    return sum;
  },
};

function texts(keys, wanted = 'not an array') {
  if (!Array.isArray(keys)) throw new TypeError(`keys is ${wanted}`);
  return keys.map((key) => text('a key', key));
}

function answered(ask) {
  return asked(ask, KINDS, StoreError);
}
