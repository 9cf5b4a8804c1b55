// Values by key, in stores that the operator binds.

import * as host from '#host';
import { Body } from './body.js';
import { Internal } from './failure.js';
import { wrap } from './tensor.js';

const KINDS = ['not-granted', 'invalid-argument', 'unavailable', 'read-only'];

const encoder = new TextEncoder();

/** Why a store gave no answer. If nothing catches it: 500, with the text in the log only. */
export class StoreError extends Internal {
  constructor(kind, message) {
    if (!KINDS.includes(kind)) {
      throw new TypeError(`the kinds of StoreError are ${KINDS.join(', ')}, not ${kind}`);
    }
    super(message);
    this.kind = kind;
  }
}
Object.defineProperty(StoreError.prototype, 'name', { value: 'StoreError' });

export const store = {
  get(bucket, key) {
    return store.getMany(bucket, [key])[0]?.bytes();
  },

  getMany(bucket, keys) {
    const wanted = [text('bucket', bucket), texts(keys)];
    const values = asked(() => host.getMany(...wanted));
    return Array.from(values, (value) => (value == null ? undefined : new Body(value)));
  },

  gather(bucket, keys, width, missing = 0) {
    if (!Number.isInteger(width) || width < 0 || width > 0xffff_ffff) {
      throw new TypeError(`width is not a whole number up to 4294967295: ${String(width)}`);
    }
    if (typeof missing !== 'number') throw new TypeError('missing is not a number');
    const wanted = [text('bucket', bucket), texts(keys), width, missing];
    return wrap(asked(() => host.gather(...wanted)));
  },

  set(bucket, key, value, { ttlMs } = {}) {
    const bytes = typeof value === 'string' ? encoder.encode(value) : value;
    if (!(bytes instanceof Uint8Array)) throw new TypeError('value is neither a string nor a Uint8Array');
    if (ttlMs !== undefined && !(Number.isSafeInteger(ttlMs) && ttlMs > 0)) {
      throw new TypeError(`ttlMs is not a whole number from 1 on: ${String(ttlMs)}`);
    }
    const ttl = ttlMs === undefined ? undefined : BigInt(ttlMs);
    const wanted = [text('bucket', bucket), text('key', key), bytes, ttl];
    asked(() => host.setValue(...wanted));
  },

  increment(bucket, key, delta = 1) {
    if (!Number.isSafeInteger(delta)) throw new TypeError(`delta is not a whole number: ${String(delta)}`);
    const wanted = [text('bucket', bucket), text('key', key), BigInt(delta)];
    const sum = Number(asked(() => host.increment(...wanted)));
    if (!Number.isSafeInteger(sum)) throw new RangeError(`the sum ${sum} is beyond whole numbers of JavaScript`);
    return sum;
  },
};

function texts(keys) {
  if (!Array.isArray(keys)) throw new TypeError('keys is not an array');
  return keys.map((key) => text('a key', key));
}

function text(what, value) {
  if (typeof value !== 'string') throw new TypeError(`${what} is not a string`);
  return value;
}

/** What the host answers, or its error as an exception. */
function asked(ask) {
  try {
    return ask();
  } catch (error) {
    const { tag, val } = error?.payload ?? {};
    throw KINDS.includes(tag) ? new StoreError(tag, val) : error;
  }
}
