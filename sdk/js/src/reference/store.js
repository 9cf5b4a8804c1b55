// The reference host's stores: maps that a test gives.

import { ReferenceBlob } from './blob.js';
import { idsOf } from './ids.js';
import { refusal } from './refusal.js';
import { ReferenceTensor } from './tensor.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const LARGEST = 2n ** 63n - 1n;

let registered = new Map();

/** Use these stores from now on: a map from names to maps from keys to bytes. */
export function useStores(stores) {
  registered = stores;
}

export function getMany(bucket, keys) {
  const values = valuesOf(bucket);
  return keys.map((key) => {
    const value = values.get(checked(key));
    return value === undefined ? undefined : new ReferenceBlob(value);
  });
}

export function gather(bucket, keys, width, missing) {
  const values = valuesOf(bucket);
  if (width === 0) throw refusal('invalid-argument', 'width is 0: must be at least 1');
  const rows = new Float32Array(keys.length * width).fill(missing);
  const bytes = new Uint8Array(rows.buffer);
  keys.forEach((key, at) => {
    const value = values.get(checked(key));
    if (value === undefined || value.length === 0) return;
    if (value.length !== 4 * width) {
      const has = `the value of ${JSON.stringify(key)} has ${value.length} bytes`;
      throw refusal('invalid-argument', `${has}, but ${width} float32 have ${4 * width}`);
    }
    bytes.set(value, 4 * width * at);
  });
  return ReferenceTensor.create('float32', [keys.length, width], rows);
}

export function gatherBy(bucket, prefix, ids, width, missing) {
  return gather(bucket, idsOf('ids', ids).map((id) => prefix + id), width, missing);
}

export function setValue(bucket, key, value) {
  valuesOf(bucket).set(checked(key), Uint8Array.from(value));
}

export function increment(bucket, key, delta) {
  const values = valuesOf(bucket);
  const text = decoder.decode(values.get(checked(key)) ?? encoder.encode('0'));
  if (!/^-?\d+$/.test(text)) {
    throw refusal('invalid-argument', 'ERR value is not an integer or out of range');
  }
  const sum = BigInt(text) + delta;
  if (sum > LARGEST || sum < -LARGEST - 1n) {
    throw refusal('invalid-argument', 'ERR increment or decrement would overflow');
  }
  values.set(key, encoder.encode(String(sum)));
  return sum;
}

function valuesOf(bucket) {
  const values = registered.get(bucket);
  if (values === undefined) {
    const name = JSON.stringify(bucket);
    throw refusal('not-granted', `the test has no store ${name}: give it one with host.store(${name}, values)`);
  }
  return values;
}

function checked(key) {
  const { length } = encoder.encode(key);
  if (length === 0) throw refusal('invalid-argument', 'a key is empty');
  if (length > 1024) throw refusal('invalid-argument', `a key has ${length} bytes: the limit is 1024`);
  return key;
}
