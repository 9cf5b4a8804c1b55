// The reference host's tensors: bytes in this process, with the rules of `wit/tensors.wit`.

import { decodeStrings, encodeStrings } from '../elements.js';
import { NUMBERS } from './number.js';
import { refusal } from './refusal.js';

const DIMENSIONS_MAX = 32;

export class ReferenceTensor {
  #dtype;
  #shape;
  /** The stored elements: a typed array, or an array of strings. */
  #elements;

  constructor(dtype, shape, elements) {
    this.#dtype = dtype;
    this.#shape = shape;
    this.#elements = elements;
  }

  static create(dtype, shape, data) {
    const dims = Array.from(shape);
    if (dims.length > DIMENSIONS_MAX) {
      throw refusal('invalid-argument', `the shape has ${dims.length} dimensions, the limit is 32`);
    }
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
    const count = product(dims);
    if (dtype === 'string') return new ReferenceTensor(dtype, dims, strings(bytes, count));
    const { Elements } = numbers(dtype);
    const expected = count * Elements.BYTES_PER_ELEMENT;
    if (bytes.length !== expected) {
      const lengths = { expected: BigInt(expected), actual: BigInt(bytes.length) };
      throw refusal('length-mismatch', lengths);
    }
    if (dtype === 'bool' && bytes.some((value) => value > 1)) {
      throw refusal('invalid-element', 'a bool is neither 0 nor 1');
    }
    return new ReferenceTensor(dtype, dims, new Elements(bytes.buffer));
  }

  static concat(tensors, axis) {
    return join(tensors, axis);
  }

  static stack(tensors, axis) {
    const rank = tensors[0]?.#shape.length ?? 0;
    if (axis > rank) throw refusal('invalid-argument', `axis ${axis}: there are ${rank} dimensions`);
    const expanded = tensors.map((tensor) => {
      if (String(tensor.#shape) !== String(tensors[0].#shape)) {
        throw refusal('invalid-argument', `shapes [${tensors[0].#shape}] and [${tensor.#shape}] differ`);
      }
      const shape = tensor.#shape.toSpliced(axis, 0, 1);
      return new ReferenceTensor(tensor.#dtype, shape, tensor.#elements);
    });
    return join(expanded, axis);
  }

  dtype() {
    return this.#dtype;
  }

  shape() {
    return Uint32Array.from(this.#shape);
  }

  data() {
    if (this.#dtype === 'string') return encodeStrings(this.#elements);
    const { buffer, byteOffset, byteLength } = this.#elements;
    return new Uint8Array(buffer, byteOffset, byteLength).slice();
  }

  read(offset, length) {
    const bytes = this.data();
    const start = Math.min(Number(offset), bytes.length);
    return bytes.slice(start, Math.min(start + Number(length), bytes.length));
  }

  argmax() {
    const width = product(this.#shape.slice(1));
    if (this.#dtype !== 'float32' || width === 0) return [];
    return Array.from({ length: this.#shape[0] ?? 1 }, (_, row) => this.topK(row, 1)[0]);
  }

  topK(row, k) {
    const width = product(this.#shape.slice(1));
    if (this.#dtype !== 'float32' || row >= (this.#shape[0] ?? 1)) return [];
    const values = this.#elements.subarray(row * width, (row + 1) * width);
    const scored = Array.from(values, (value, index) => ({ index, value }));
    return scored.sort((a, b) => b.value - a.value).slice(0, k);
  }

  softmax() {
    if (this.#dtype !== 'float32') return undefined;
    const width = product(this.#shape.slice(1));
    const result = new Float32Array(this.#elements.length);
    for (let start = 0; start < result.length; start += width) {
      const row = this.#elements.subarray(start, start + width);
      const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
      const powers = row.map((value) => Math.exp(value - largest));
      const sum = powers.reduce((a, b) => a + b, 0);
      result.set(powers.map((power) => power / sum), start);
    }
    return new ReferenceTensor('float32', this.#shape, result);
  }

  slice(axis, start, end) {
    checkAxis(this.#shape, axis);
    const size = this.#shape[axis];
    if (start > end || end > size) {
      throw refusal('invalid-argument', `slice ${start}..${end} of dimension ${axis}, which is ${size}`);
    }
    const inner = product(this.#shape.slice(axis + 1));
    const parts = [];
    for (let outer = 0; outer < product(this.#shape.slice(0, axis)); outer++) {
      const base = outer * size * inner;
      parts.push(this.#elements.slice(base + start * inner, base + end * inner));
    }
    const shape = this.#shape.with(axis, end - start);
    return new ReferenceTensor(this.#dtype, shape, merged(parts, this.#elements));
  }

  cast(dtype) {
    if (dtype === this.#dtype) return this;
    if (dtype === 'string' || this.#dtype === 'string') {
      throw refusal('invalid-argument', `cast from ${this.#dtype} to ${dtype}`);
    }
    const { read } = numbers(this.#dtype);
    const { Elements, write } = numbers(dtype);
    const result = new Elements(this.#elements.length);
    for (let i = 0; i < result.length; i++) result[i] = write(read(this.#elements[i]));
    return new ReferenceTensor(dtype, this.#shape, result);
  }

  [Symbol.dispose ?? Symbol.for('dispose')]() {}

  /** Dtype, shape and elements, for `join`. */
  static parts(tensor) {
    return { dtype: tensor.#dtype, shape: tensor.#shape, elements: tensor.#elements };
  }
}

function join(tensors, axis) {
  if (tensors.length === 0) throw refusal('invalid-argument', 'there are no tensors');
  const all = tensors.map(ReferenceTensor.parts);
  const [first] = all;
  checkAxis(first.shape, axis);
  for (const { dtype, shape } of all) {
    if (dtype !== first.dtype) {
      throw refusal('invalid-argument', `dtypes ${first.dtype} and ${dtype} differ`);
    }
    if (String(shape.with(axis, 0)) !== String(first.shape.with(axis, 0))) {
      throw refusal('invalid-argument', `shapes [${first.shape}] and [${shape}] do not fit together`);
    }
  }
  const parts = [];
  for (let outer = 0; outer < product(first.shape.slice(0, axis)); outer++) {
    for (const { shape, elements } of all) {
      const length = product(shape.slice(axis));
      parts.push(elements.slice(outer * length, (outer + 1) * length));
    }
  }
  const size = all.reduce((sum, { shape }) => sum + shape[axis], 0);
  return new ReferenceTensor(first.dtype, first.shape.with(axis, size), merged(parts, first.elements));
}

function merged(parts, like) {
  if (Array.isArray(like)) return parts.flat();
  const result = new like.constructor(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    result.set(part, offset);
    offset += part.length;
  }
  return result;
}

function checkAxis(shape, axis) {
  if (axis >= shape.length) {
    throw refusal('invalid-argument', `axis ${axis}: there are ${shape.length} dimensions`);
  }
}

function strings(bytes, count) {
  let found;
  try {
    found = decodeStrings(bytes);
  } catch (error) {
    throw refusal('invalid-element', error.message);
  }
  if (found.length !== count) {
    throw refusal('invalid-element', `there are ${found.length} strings, the shape needs ${count}`);
  }
  return found;
}

function numbers(dtype) {
  const known = NUMBERS[dtype];
  if (known === undefined) throw new TypeError(`"${dtype}" is not one of the cases of dtype`);
  return known;
}

function product(dims) {
  return dims.reduce((a, b) => a * b, 1);
}
