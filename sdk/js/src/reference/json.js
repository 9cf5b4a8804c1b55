// The reference host's JSON: values of a request at a JSON Pointer, and documents of an answer.

import { parse, stringify } from '../json.js';
import { ReferenceBlob } from './blob.js';
import { NUMBERS } from './number.js';
import { refusal } from './refusal.js';
import { ReferenceTensor } from './tensor.js';

const DIMENSIONS_MAX = 32;
const NAMES = { float16: 'FP16', bfloat16: 'BF16', float32: 'FP32', float64: 'FP64' };
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

export function jsonTensor(bytes, pointer, keys, dtype) {
  const twice = keys.find((key, at) => keys.indexOf(key) < at);
  if (twice !== undefined) throw refusal('invalid-argument', `the key "${twice}" is given twice`);
  const value = required(bytes, pointer);
  const reading = new Reading(dtype);
  const shape = keys.length === 0 ? reading.all(value, pointer) : reading.rows(value, keys, pointer);
  return reading.tensor(shape);
}

export function jsonBlob(bytes, pointer) {
  const value = required(bytes, pointer);
  const place = pointer || 'the body';
  if (typeof value !== 'string') throw invalid(`${place} is ${kind(value)}, not a text in base64`);
  try {
    return ReferenceBlob.fromBase64(value);
  } catch (error) {
    throw invalid(`${place}: ${error.message}`);
  }
}

export function jsonValue(bytes, pointer) {
  const value = find(bytes, pointer);
  return value === undefined ? undefined : encoder.encode(stringify(value));
}

/** The parts of a document, one after another. */
export function write(parts) {
  return encoder.encode(parts.map(textOf).join(''));
}

function textOf({ tag, val }) {
  if (tag === 'text') return val;
  if (tag === 'base64') {
    return JSON.stringify(Buffer.from(val.read(0n, val.len())).toString('base64'));
  }
  if (tag === 'objects') return objects(val);
  const { dtype, shape, elements } = ReferenceTensor.parts(val);
  let next = 0;
  const lists = ([length, ...rest]) => {
    if (length === undefined) return element(dtype, elements[next], shape, next++);
    return `[${Array.from({ length }, () => lists(rest)).join(',')}]`;
  };
  return lists(shape);
}

function objects(columns) {
  const fault = (text) => Object.assign(new Error(text), { payload: text });
  if (columns.length === 0) throw fault('a list of objects has no column');
  const all = columns.map(({ key, elements }) => ({ key, ...ReferenceTensor.parts(elements) }));
  const [first] = all;
  for (const { key, shape } of all) {
    const what = `the column ${JSON.stringify(key)} has`;
    if (shape.length !== 1) throw fault(`${what} the shape [${shape.join(', ')}]: must have one dimension`);
    if (shape[0] !== first.shape[0]) {
      throw fault(`${what} ${shape[0]} elements, but ${JSON.stringify(first.key)} has ${first.shape[0]}`);
    }
  }
  const row = (at) => all.map(({ key, dtype, shape, elements }) => {
    try {
      return `${JSON.stringify(key)}:${element(dtype, elements[at], shape, at)}`;
    } catch (error) {
      throw error.payload === undefined ? error : fault(`the column ${JSON.stringify(key)}: ${error.payload}`);
    }
  });
  const rows = Array.from({ length: first.shape[0] }, (_, at) => `{${row(at).join(',')}}`);
  return `[${rows.join(',')}]`;
}

function element(dtype, stored, shape, at) {
  if (dtype === 'string') return JSON.stringify(stored);
  if (dtype === 'bool') return String(stored !== 0);
  const value = NUMBERS[dtype].read(stored);
  if (typeof value === 'bigint' || !dtype.includes('float')) return String(value);
  if (!Number.isFinite(value)) {
    const place = shape.map((length, axis) =>
      Math.floor(at / shape.slice(axis + 1).reduce((a, b) => a * b, 1)) % length);
    const name = Number.isNaN(value) ? 'NaN' : value > 0 ? 'inf' : '-inf';
    const text = `the tensor of shape [${shape.join(', ')}] has ${name} at [${place.join(', ')}]`;
    throw Object.assign(new Error(text), { payload: `${text}: JSON has no such number` });
  }
  return String(dtype === 'float64' ? value : shortest(value));
}

/** The number with the fewest digits that is the same float32. */
function shortest(value) {
  for (let digits = 1; digits < 10; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}

/** Reads the elements of a tensor. */
class Reading {
  #dtype;
  #elements = [];
  #lengths = [];
  #hasElement = false;

  constructor(dtype) {
    this.#dtype = dtype;
  }

  tensor(shape) {
    const { Elements } = NUMBERS[this.#dtype] ?? { Elements: Array };
    return new ReferenceTensor(this.#dtype, shape, Elements.from(this.#elements));
  }

  /** Append a value, or lists of values. Returns the shape. */
  all(value, place) {
    this.#lengths = [];
    this.#hasElement = false;
    this.#read(value, place, 0);
    return this.#lengths.map((length) => length ?? 0);
  }

  /** Append the values of objects at `keys`. Returns the shape. */
  rows(value, keys, place) {
    if (!Array.isArray(value)) throw invalid(`${place || 'the body'} is ${kind(value)}, not a list`);
    const widths = [];
    value.forEach((item, row) => {
      if (kind(item) !== 'an object') throw invalid(`${place}/${row} is ${kind(item)}, not an object`);
      keys.forEach((key, number) => {
        const at = `${place}/${row}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        if (!Object.hasOwn(item, key)) throw invalid(`${at} is missing`);
        const before = this.#elements.length;
        if (this.all(item[key], at).length > 1) {
          throw invalid(`${at} is a list of lists, not of values`);
        }
        const width = this.#elements.length - before;
        widths[number] ??= width;
        if (widths[number] !== width) {
          throw invalid(`${at} has ${width} values, not ${widths[number]} as in the objects before it`);
        }
      });
    });
    return [value.length, value.length ? widths.reduce((a, b) => a + b, 0) : keys.length];
  }

  #read(value, place, depth) {
    const dtype = this.#dtype;
    const at = place || 'the body';
    if (Array.isArray(value)) {
      this.#readList(value, place, depth);
      return;
    }
    if (value === null || typeof value === 'object') {
      throw invalid(`${at} is ${kind(value)}, not ${elementOf(dtype)}`);
    }
    if (depth !== this.#lengths.length) {
      throw invalid(`${at} is ${kind(value)}, not a list as the values before it`);
    }
    this.#hasElement = true;
    this.#elements.push(stored(value, dtype, at));
  }

  #readList(values, place, depth) {
    const at = place || 'the body';
    if (depth === this.#lengths.length) {
      if (this.#hasElement) throw invalid(`${at} is a list, not ${elementOf(this.#dtype)}`);
      if (depth === DIMENSIONS_MAX) throw invalid(`${at} is over ${DIMENSIONS_MAX} lists deep`);
      this.#lengths.push(undefined);
    }
    values.forEach((value, index) => this.#read(value, `${place}/${index}`, depth + 1));
    const wanted = (this.#lengths[depth] ??= values.length);
    if (wanted !== values.length) {
      throw invalid(`${at} has ${values.length} values, not ${wanted} as the lists before it`);
    }
  }
}

/** A value as it is stored in a tensor of `dtype`. */
function stored(value, dtype, place) {
  const wanted = dtype === 'string' ? 'string' : dtype === 'bool' ? 'boolean' : 'number';
  const type = typeof value === 'bigint' ? 'number' : typeof value;
  if (type !== wanted) throw invalid(`${place} is ${kind(value)}, not ${elementOf(dtype)}`);
  if (dtype === 'string') return value;
  const { read, write } = NUMBERS[dtype];
  const isFloat = dtype.includes('float');
  if (wanted === 'number' && !isFloat && typeof value === 'number' && !Number.isInteger(value)) {
    throw invalid(`${place} is ${value}, not an integer`);
  }
  const element = write(value);
  const back = dtype === 'float32' ? Math.fround(element) : read(element);
  const isOut = isFloat ? !Number.isFinite(back) : wanted === 'number' && back != value;
  if (isOut) throw invalid(`${place} is out of ${NAMES[dtype] ?? dtype.toUpperCase()}'s range`);
  return element;
}

function elementOf(dtype) {
  return { bool: 'true or false', string: 'a text' }[dtype] ?? 'a number';
}

function kind(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return { object: 'an object', string: 'a text', boolean: 'a boolean' }[typeof value] ?? 'a number';
}

function required(bytes, pointer) {
  const value = find(bytes, pointer);
  if (value === undefined) throw invalid(`${pointer} is missing`);
  return value;
}

/** The value that `pointer` leads to, or undefined. */
function find(bytes, pointer) {
  if (pointer !== '' && !pointer.startsWith('/')) {
    const text = `the JSON Pointer "${pointer}" does not begin with /, as /instances`;
    throw refusal('invalid-argument', text);
  }
  if (bytes.length === 0) throw invalid('the body is empty');
  let value;
  try {
    value = parse(decoder.decode(bytes));
  } catch (error) {
    throw invalid(error.message);
  }
  for (const escaped of pointer.split('/').slice(1)) {
    const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    const isIndex = /^(0|[1-9]\d*)$/.test(name);
    if (value === null || typeof value !== 'object' || (Array.isArray(value) && !isIndex)) return undefined;
    value = Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

function invalid(why) {
  return refusal('invalid-json', `invalid JSON: ${why}`);
}
