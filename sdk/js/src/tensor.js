// Tensors: n-dimensional arrays that the host holds. Making one copies its elements to the host;
// `data()` copies them back. All other operations run on the host, at native speed.

import * as host from '#host';
import { arrayOf, decodeStrings, dtypeOf, encodeStrings } from './elements.js';
import { placed } from './answer.js';
import { Body } from './body.js';
import { ours } from './realm.js';
import { hold } from './resources.js';

/**
 * A tensor could not be made. It is the fault of the plugin: if it is not caught, the client gets 500.
 */
export class TensorError extends Error {}
Object.defineProperty(TensorError.prototype, 'name', { value: 'TensorError' });

/** An immutable n-dimensional array, row-major. Dimension 0 is rows. */
export class Tensor {
  #raw;
  #dtype;
  #shape;

  /** Not for plugins: use `Tensor.from`. */
  constructor(raw, dtype, shape) {
    this.#raw = raw;
    this.#dtype = dtype;
    this.#shape = shape;
  }

  static from(data, shape, dtype) {
    const elements = ArrayBuffer.isView(data) ? data : toTyped(data, dtype);
    const usual = ArrayBuffer.isView(data) ? dtypeOf(elements) : guess(data);
    const wanted = dtype ?? usual ?? 'float32';
    if (arrayOf(wanted) === undefined) throw new TensorError(`unknown dtype ${quote(wanted)}`);
    let ownDtype = wanted === 'string' ? 'string' : dtypeOf(elements);
    if (ownDtype === undefined) throw new TensorError(`${data.constructor.name} holds no elements`);
    if (ownDtype === 'uint8' && wanted === 'bool') ownDtype = 'bool';
    const made = create(ownDtype, shape ?? [data.length], elements);
    return ownDtype === wanted ? made : made.cast(wanted);
  }

  static fromBytes(bytes, shape, dtype) {
    return create(dtype, shape, bytes);
  }

  static concat(tensors, axis = 0) {
    return made(() => host.Tensor.concat(tensors.map(rawOf), axis));
  }

  static stack(tensors, axis = 0) {
    return made(() => host.Tensor.stack(tensors.map(rawOf), axis));
  }

  /** Who writes `tensor[0]` would get undefined and no error. */
  get 0() {
    throw new TensorError('tensor[0] is no element: write tensor.data()[0], tensor.row(0) or np.asarray(tensor).at(0)');
  }

  get length() {
    throw new TensorError('a tensor has no length: write tensor.shape[0] or tensor.data().length');
  }

  get dtype() {
    return (this.#dtype ??= this.#raw.dtype());
  }

  get shape() {
    return (this.#shape ??= listOf(this.#raw.shape()));
  }

  data() {
    const { dtype } = this;
    if (dtype === 'string') return decodeStrings(this.#raw.data());
    if (dtype === 'float16' || dtype === 'bfloat16') return this.cast('float32').data();
    return typed(dtype, this.#raw.data());
  }

  row(index) {
    const [rows, ...rest] = this.shape;
    if (!(index >= 0 && index < rows)) {
      throw new TensorError(`there is no row ${index}, the tensor has ${rows}`);
    }
    const Elements = arrayOf(this.dtype);
    if (Elements === Array || this.dtype.endsWith('float16')) {
      return this.slice(index, index + 1).data();
    }
    const length = rest.reduce((product, dim) => product * dim, Elements.BYTES_PER_ELEMENT);
    return typed(this.dtype, this.#raw.read(BigInt(index * length), BigInt(length)));
  }

  bytes() {
    return ours(this.#raw.data());
  }

  argmax() {
    return this.#raw.argmax();
  }

  topK(k, row = 0) {
    return this.#raw.topK(row, k);
  }

  softmax() {
    const raw = this.#raw.softmax();
    if (raw === undefined) throw new TensorError(`softmax of ${this.dtype}: it needs float32`);
    return new Tensor(hold(raw), this.#dtype, this.#shape);
  }

  slice(start, end, axis = 0) {
    const stop = end ?? this.shape[axis];
    return made(() => this.#raw.slice(axis, start, stop));
  }

  cast(dtype) {
    return made(() => this.#raw.cast(dtype), dtype, this.#shape);
  }

  /** In `PluginResponse.json` the host writes its elements. */
  toJSON() {
    return placed({ tag: 'tensor', val: this.#raw }, 'Tensor');
  }

  toString() {
    return `Tensor(${this.dtype}, [${this.shape.join(', ')}])`;
  }

  /** Not for plugins: the host's object. */
  static raw(tensor) {
    return tensor.#raw;
  }

  /** Not for plugins. */
  static is(value) {
    return typeof value === 'object' && value !== null && #raw in value;
  }
}

const rawOf = Tensor.raw;

/** Not for plugins: a tensor around the host's object. */
export function wrap(raw, dtype, shape) {
  return new Tensor(hold(raw), dtype, shape);
}

function create(dtype, shape, elements) {
  if (typeof shape !== 'object' || shape === null) {
    throw new TensorError(`the shape is ${quote(shape)} and not a list such as [2, 3]`);
  }
  const dims = new Uint32Array(shape);
  for (let axis = 0; axis < dims.length; axis++) {
    if (dims[axis] !== shape[axis]) {
      throw new TensorError(`shape [${shape}]: dimension ${axis} is ${shape[axis]}`);
    }
  }
  if (elements instanceof Body) {
    return made(() => Body.raw(elements).tensor(dtype, dims), dtype, listOf(shape));
  }
  const data = dtype === 'string' && !ArrayBuffer.isView(elements) ? encodeStrings(elements) : elements;
  return made(() => host.Tensor.create(dtype, dims, data), dtype, listOf(shape));
}

/** A plain array. `Array.from` needs the engine's iterators, which a fresh instance would set up. */
export function listOf(values) {
  const list = [];
  for (let i = 0; i < values.length; i++) list.push(values[i]);
  return list;
}

function made(make, dtype, shape) {
  try {
    return new Tensor(hold(make()), dtype, shape);
  } catch (error) {
    throw describe(error);
  }
}

/** The host's tensor error as an exception; any other error as it is. */
function describe(error) {
  const payload = error?.payload;
  if (payload === undefined) return error;
  if (payload.tag !== 'length-mismatch') return new TensorError(payload.val);
  const { expected, actual } = payload.val;
  return new TensorError(
    `the data is ${actual} bytes long, but dtype and shape need ${expected}`,
  );
}

/** Not for plugins: the typed array of the elements' bytes. */
export function typed(dtype, raw) {
  const bytes = ours(raw);
  const Elements = arrayOf(dtype);
  return new Elements(bytes.buffer, bytes.byteOffset, bytes.byteLength / Elements.BYTES_PER_ELEMENT);
}

/** The element type of a plain array that names none. */
function guess(array) {
  const kinds = { string: 'string', boolean: 'bool', bigint: 'int64' };
  const kind = kinds[typeof array[0]] ?? 'float32';
  return kind === 'int64' && !array.every(isInteger) ? 'float32' : kind;
}

/** The elements of a plain array. */
function toTyped(array, dtype) {
  const wanted = dtype ?? guess(array);
  const Elements = arrayOf(wanted);
  if (Elements === undefined) throw new TensorError(`unknown dtype ${quote(dtype)}`);
  if (Elements === Array) return array;
  if (Elements === BigInt64Array || Elements === BigUint64Array) {
    const values = array.map(BigInt);
    const elements = new Elements(values);
    const at = values.findIndex((value, index) => value !== elements[index]);
    if (at >= 0) throw outOfRange(values[at], wanted);
    return elements;
  }
  try {
    return wanted.includes('float') ? new Elements(array) : inRange(array, Elements, wanted);
  } catch (error) {
    // JSON has large integers as bigints.
    if (error instanceof TensorError || !array.some((value) => typeof value === 'bigint')) throw error;
    return toTyped(array.map(Number), wanted);
  }
}

/** The numbers that are compared in one call of the engine. */
const COMPARED = 8192;

/** The elements of integers. Typed arrays let values of another range wrap around. */
function inRange(array, Elements, dtype) {
  const [min, max] = rangeOf(Elements, dtype);
  const fits = (low, high) => low > min - 1 && high < max + 1;
  const numbers = Float64Array.from(array);
  for (let at = 0; at < numbers.length; at += COMPARED) {
    // The engine's own loops: one in JavaScript takes five times as long.
    const part = numbers.subarray(at, at + COMPARED);
    if (fits(Math.min.apply(null, part), Math.max.apply(null, part))) continue;
    throw outOfRange(array[at + part.findIndex((value) => !fits(value, value))], dtype);
  }
  if (array.includes(null)) throw outOfRange(null, dtype);
  return Elements.from(numbers);
}

function rangeOf(Elements, dtype) {
  if (dtype === 'bool') return [0, 1];
  const bits = 8 * Elements.BYTES_PER_ELEMENT;
  return dtype.startsWith('u') ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
}

function outOfRange(value, dtype) {
  const cure = dtype === 'int64' ? ": name the dtype 'uint64' or 'float64'" : '';
  return new TensorError(`${value} is out of ${dtype}'s range${cure}`);
}

function isInteger(value) {
  return typeof value === 'bigint' || Number.isInteger(value);
}

function quote(value) {
  return JSON.stringify(value) ?? String(value);
}
