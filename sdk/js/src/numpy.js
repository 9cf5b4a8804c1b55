// Arrays with NumPy's names and rules. An operation is only noted; the host does it when a result
// is read (`program.js`). The guide `numpy.md` lists the operations.

import { placed } from './answer.js';
import { Body } from './body.js';
import { arrayOf, dtypeOf as dtypeOfTyped } from './elements.js';
import { ArrayError, dtypeOf, held, made, note, read, shapeOf } from './program.js';
import { Tensor, typed } from './tensor.js';

/** Longer lists become a tensor of their own. */
const LITERAL_MAX = 256;

/** More arrays are joined in groups. */
const JOINED_MAX = 500;

const DTYPES = [
  'bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64',
  'float16', 'float32', 'float64',
];

/** The values that JavaScript has for elements of these dtypes. Others are numbers as they are. */
const VALUES = {
  bool: Boolean,
  int64: (value) => (Number.isSafeInteger(Number(value)) ? Number(value) : value),
};
VALUES.uint64 = VALUES.int64;

/** A slice as text, as in NumPy: `1:3`, `:-1`, `::2`. */
const SLICE = /^\s*(-?\d*)\s*:\s*(-?\d*)\s*(?::\s*(-?\d*)\s*)?$/;

/** A part of a dimension, for `NdArray.at`. */
class Slice {
  constructor(...ends) {
    this.ends = ends.map((end) => end ?? null);
  }
}

/** An immutable array. The functions of `np` are also its methods: `defineAll` makes them. */
export class NdArray {
  #node;

  /** Not for plugins: use `np.asarray`. */
  constructor(node) {
    this.#node = node;
  }

  get shape() {
    return shapeOf(this.#node);
  }

  get dtype() {
    return dtypeOf(this.#node);
  }

  get ndim() {
    return this.shape.length;
  }

  get size() {
    return product(this.shape);
  }

  /** Who writes `a[0]` as in NumPy, or loops up to a length, would get undefined and no error. */
  get 0() {
    throw new ArrayError('index', 'a[0] is no element of an array: write a.at(0) or a.toArray()[0]');
  }

  get length() {
    throw new ArrayError('value', 'an array has no length: write a.shape[0] or a.size');
  }

  get T() {
    return make('permute_dims', [this], null);
  }

  get mT() {
    return this.swapaxes(-1, -2);
  }

  data() {
    return this.#read().data;
  }

  toArray() {
    const { dtype, shape, data } = this.#read();
    const value = VALUES[dtype];
    let at = 0;
    const rows = (axis) => {
      if (axis === shape.length) return valueOf(dtype, data[at]);
      if (axis === shape.length - 1) {
        const row = Array.prototype.slice.call(data, at, (at += shape[axis]));
        return value === undefined ? row : row.map(value);
      }
      const list = [];
      for (let row = 0; row < shape[axis]; row++) list.push(rows(axis + 1));
      return list;
    };
    return rows(0);
  }

  item(...index) {
    if (index.length > 0) return this.at(...index).item();
    const { dtype, data } = this.#read();
    if (data.length === 1) return valueOf(dtype, data[0]);
    const how = 'read it by a.toArray(), work on it by a.add(b), a.greater(b), a.any() and the like';
    throw new ArrayError('value', `an array of ${data.length} elements is not a number: ${how}`);
  }

  tensor() {
    return made(this.#node);
  }

  at(...index) {
    const args = [this];
    const parts = index.map((part) => {
      if (part === null || part === '...') return part;
      if (part instanceof Slice) return part.ends;
      if (typeof part === 'string') return sliceOf(part);
      if (typeof part === 'bigint') return Number(part);
      if (Number.isInteger(part)) return part;
      if (typeof part !== 'boolean' && typeof part !== 'object') {
        const those = "integers, np.slice, null, '...', lists, arrays";
        throw new ArrayError('index', `${part} is no index: use ${those}`);
      }
      // An empty list has no integers, and is one of indices.
      const isEmpty = !(part instanceof NdArray) && part.length === 0;
      args.push(isEmpty ? asarray(part, 'int64') : asarray(part));
      return 'array';
    });
    return make('index', args, parts);
  }

  astype(dtype) {
    return make('astype', [this], dtypeNamed(dtype));
  }

  /** The elements of an array of one dimension, the rows of others. */
  *[Symbol.iterator]() {
    const [rows, ...rest] = this.shape;
    if (rows === undefined) throw new TypeError('an array without dimensions has no rows');
    if (rest.length === 0) yield* this.toArray();
    else for (let row = 0; row < rows; row++) yield this.at(row);
  }

  /** In `PluginResponse.json` the host writes its elements. */
  toJSON() {
    return placed({ tag: 'tensor', val: Tensor.raw(this.tensor()) }, 'NdArray');
  }

  toString() {
    return `NdArray(${this.dtype}, [${this.shape.join(', ')}])`;
  }

  /** JavaScript's own operators take an array of one element as its number. */
  [Symbol.toPrimitive](hint) {
    return hint === 'string' ? this.toString() : this.item();
  }

  #read() {
    const { dtype, shape, bytes } = read(this.#node);
    // The host converts the others.
    const isTyped = dtype !== 'string' && !dtype.endsWith('float16');
    return { dtype, shape, data: isTyped ? typed(dtype, bytes) : this.tensor().data() };
  }

  /** Not for plugins: its node. */
  static node(array) {
    return array.#node;
  }
}

const nodeOf = NdArray.node;

function valueOf(dtype, element) {
  return VALUES[dtype]?.(element) ?? element;
}

// Noting operations.

function make(op, args, ...params) {
  const nodes = [];
  for (let at = 0; at < args.length; at++) nodes.push(nodeOf(args[at]));
  return new NdArray(note(op, nodes, params));
}

function isArray(value) {
  return value instanceof NdArray || Tensor.is(value) || ArrayBuffer.isView(value);
}

function asarray(value, dtype = null) {
  let found;
  if (value instanceof NdArray) found = value;
  else if (Tensor.is(value)) found = new NdArray(held(value));
  else if (ArrayBuffer.isView(value)) found = ofTyped(value, [value.length]);
  else return ofValues(value, dtype);
  return dtype === null ? found : found.astype(dtype);
}

/** An array that becomes a tensor when it is needed: the module cannot make one. */
function ofTyped(elements, shape, dtype = dtypeOfTyped(elements)) {
  if (dtype === undefined) throw new TypeError(`${elements.constructor.name} holds no elements`);
  const bytes = new Uint8Array(elements.buffer, elements.byteOffset, elements.byteLength).slice();
  return make('bytes', [], bytes, shape, dtype);
}

function ofValues(value, dtype) {
  const [flat, shape] = [[], []];
  flatten(value, shape, flat, 0);
  if (flat.some(isArray)) {
    const stacked = np.stack(flat);
    const found = shape.length > 1 ? stacked.reshape(...shape, ...stacked.shape.slice(1)) : stacked;
    return dtype === null ? found : found.astype(dtype);
  }
  const own = dtypeOfValues(flat);
  const wanted = dtypeNamed(dtype) ?? own;
  if (flat.length <= LITERAL_MAX) {
    const numbers = flat.map(own === 'float64' ? plainFloat : plain);
    return make('literal', [], wanted, shape, numbers);
  }
  const wrong = own === 'float64' ? undefined : outOfBounds(flat, wanted);
  if (wrong !== undefined) throw new ArrayError('value', `${wrong} is out of bounds for ${wanted}`);
  let found;
  if (own === 'bool') found = ofTyped(Uint8Array.from(flat), shape, 'bool');
  else if (!flat.some((one) => typeof one === 'bigint')) found = ofTyped(Float64Array.from(flat), shape);
  else if (own === 'float64') found = ofTyped(Float64Array.from(flat, Number), shape);
  else found = ofTyped(arrayOf(own).from(flat, BigInt), shape);
  return found.astype(wanted);
}

function flatten(value, shape, flat, depth) {
  if (!Array.isArray(value)) {
    if (depth !== shape.length) throw new ArrayError('value', `${value} stands beside lists`);
    flat.push(value);
    return;
  }
  if (depth === shape.length) {
    if (flat.length > 0) throw new ArrayError('value', 'a list stands beside numbers');
    shape.push(value.length);
  } else if (shape[depth] !== value.length) {
    const lengths = `${value.length} after ${shape[depth]}`;
    throw new ArrayError('value', `lists of different lengths: ${lengths}`);
  }
  for (let at = 0; at < value.length; at++) flatten(value[at], shape, flat, depth + 1);
}

/** The dtype of a list of numbers: an integer that a number has exactly is one. */
function dtypeOfValues(flat) {
  let found = flat.length === 0 ? 'float64' : 'bool';
  for (let at = 0; at < flat.length; at++) {
    const one = flat[at];
    const kind = typeof one;
    if (kind === 'number' && !Number.isSafeInteger(one)) found = 'float64';
    else if (kind === 'number' || kind === 'bigint') {
      if (found === 'bool') found = 'int64';
      if (found === 'int64' && one >= 2 ** 63) found = 'uint64';
    } else if (kind !== 'boolean') {
      throw new TypeError(`an array has numbers only: ${one === null ? one : kind} is none`);
    }
  }
  return found;
}

/** The first integer that an integer dtype has not. */
function outOfBounds(flat, dtype) {
  const [, unsigned, bits] = /^(u?)int(\d+)$/.exec(dtype) ?? [];
  if (bits === undefined) return undefined;
  const most = 2n ** (unsigned ? BigInt(bits) : BigInt(bits) - 1n);
  const least = unsigned ? 0n : -most;
  return flat.find((one) => one < least || one >= most);
}

/** A number as a program has it. JSON has no NaN and no infinity. */
function plain(value) {
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return value;
  if (isArray(value)) return plain(asarray(value).item());
  if (typeof value === 'bigint') {
    if (outOfBounds([value], value < 0 ? 'int64' : 'uint64') === undefined) return value;
    throw new RangeError(`${value} is too large: integers have 64 bits`);
  }
  if (typeof value !== 'number') throw new TypeError(`${String(value)} is not a number`);
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
  // JSON would have it as an integer.
  return Number.isInteger(value) ? exact(value.toExponential(), value) : value;
}

function plainFloat(value) {
  return Object.is(value, -0) ? exact('-0.0', value) : plain(value);
}

/** A number with these digits, which only the engine of components can write. */
function exact(digits, value) {
  return JSON.rawJSON === undefined ? value : JSON.rawJSON(digits);
}

/** An operand of elementwise operations: a number takes the dtype of the array that it meets. */
function operand(value) {
  if (value instanceof NdArray) return value;
  const kind = typeof value;
  const isNumber = kind === 'number' || kind === 'boolean' || kind === 'bigint';
  return isNumber ? make('number', [], plain(value)) : asarray(value);
}

function dtypeNamed(dtype) {
  if (dtype === undefined || dtype === null) return null;
  if (DTYPES.includes(dtype) || dtype === 'bfloat16') return dtype;
  throw new TypeError(`${JSON.stringify(dtype)} is not a dtype: one of ${DTYPES.join(', ')}`);
}

/** Dimensions or axes: one, several, or a list. */
function ints(given) {
  const isList = given.length === 1 && typeof given[0]?.[Symbol.iterator] === 'function';
  return Array.from(isList ? given[0] : given, Number);
}

function axesOf(axes, ndim) {
  return axes.map((axis) => {
    if (axis >= -ndim && axis < ndim) return axis < 0 ? axis + ndim : axis;
    throw new ArrayError('value', `axis ${axis} is out of bounds for an array of ${ndim} dimensions`);
  });
}

function product(dims) {
  return dims.reduce((all, dim) => all * dim, 1);
}

function sliceOf(text) {
  const found = SLICE.exec(text);
  if (found === null) throw new ArrayError('index', `'${text}' is no slice, as '1:3', ':' or '::-1'`);
  return found.slice(1).map((end) => (end ? Number(end) : null));
}

// The functions.

/** NumPy's names in camel case. What has no option takes none. */
export const np = {
  pi: Math.PI, e: Math.E, inf: Infinity, nan: NaN, newaxis: null,
  slice: (start, stop, step) => new Slice(start, stop, step),
};
for (const dtype of DTYPES) np[dtype] = dtype;

/**
 * What `body` gives for a list of arguments: so many, then options with these defaults, which it gets
 * first. A text is the option `dtype`. A wrong name is refused, and so is an axis without its name.
 */
function optioned(name, most, defaults, body) {
  return (given) => {
    while (given.length > 0 && given[given.length - 1] === undefined) given.pop();
    let options = defaults;
    if (isOptions(given[given.length - 1])) {
      options = { ...defaults };
      const last = given.pop();
      const chosen = typeof last === 'string' ? { dtype: last } : last;
      for (const key of Object.keys(chosen)) {
        if (!(key in defaults)) throw misused(name, most, defaults, `not ${key}`);
        if (chosen[key] !== undefined) options[key] = chosen[key];
      }
    }
    if (given.length > most) throw misused(name, most, defaults, `not ${given.length} arguments`);
    // The engine takes long to spread a list.
    return most <= 3 ? body(options, given[0], given[1], given[2]) : body(options, ...given);
  };
}

/** Define a function of `np` under all its names, and the method of arrays. */
function define(names, most, defaults, body) {
  const all = names.split(' ');
  const run = optioned(all[0], most, defaults, body);
  for (const name of all) {
    np[name] = (...given) => run(given);
    NdArray.prototype[name] = function method(...given) {
      given.unshift(this);
      return run(given);
    };
  }
}

/** Define a function whose first argument is not an array. */
function defineCreator(names, most, defaults, body) {
  const all = names.split(' ');
  const run = optioned(all[0], most, defaults, body);
  for (const name of all) np[name] = (...given) => run(given);
}

/** Define functions whose operation is named as they are. */
function defineAll(names, most, defaults, body) {
  for (const each of names) {
    const op = each.split(' ')[0].replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    define(each, most, defaults, (options, a, b, c) => body(op, options, a, b, c));
  }
}

function isOptions(value) {
  if (typeof value !== 'object') return typeof value === 'string';
  return !(value instanceof NdArray || value === null || Array.isArray(value) || isArray(value) ||
    value instanceof Body);
}

function misused(name, most, defaults, what) {
  const keys = Object.keys(defaults).join(', ');
  const options = keys === '' ? 'no options' : `options { ${keys} }`;
  const count = most === 1 ? '1 argument' : `up to ${most} arguments`;
  return new TypeError(`np.${name} takes ${count} and ${options}, ${what}`);
}

const NONE = {};
const ALONG = { axis: null };
const LAST = { axis: -1 };

defineAll([
  'negative', 'sign', 'square', 'absolute abs fabs', 'floor', 'ceil', 'trunc', 'rint', 'isnan', 'isinf',
  'isfinite', 'logicalNot', 'invert bitwiseNot bitwiseInvert', 'exp', 'exp2', 'expm1', 'log', 'log2',
  'log10', 'log1p', 'sqrt', 'reciprocal', 'sigmoid', 'sin', 'cos', 'tan', 'arcsin asin', 'arccos acos',
  'arctan atan', 'sinh', 'cosh', 'tanh',
], 1, NONE, (op, options, a) => make(op, [asarray(a)]));

defineAll([
  'add', 'subtract', 'multiply', 'divide trueDivide', 'floorDivide', 'remainder mod', 'power pow',
  'minimum', 'maximum', 'hypot', 'arctan2 atan2', 'equal', 'notEqual', 'less', 'lessEqual', 'greater',
  'greaterEqual', 'logicalAnd', 'logicalOr', 'logicalXor', 'bitwiseAnd', 'bitwiseOr', 'bitwiseXor',
  'leftShift bitwiseLeftShift', 'rightShift bitwiseRightShift',
], 2, NONE, (op, options, a, b) => make(op, [operand(a), operand(b)]));

defineAll(
  ['sum', 'prod', 'mean', 'max amax', 'min amin', 'any', 'all', 'argmax', 'argmin', 'countNonzero'],
  1, { axis: null, keepdims: false }, (op, { axis, keepdims }, a) => make(op, [asarray(a)], axis, keepdims),
);
defineAll(['var', 'std'], 1, { axis: null, ddof: 0, keepdims: false }, (op, { axis, ddof, keepdims }, a) =>
  make(op, [asarray(a)], axis, keepdims, plain(ddof)));
defineAll(['cumulativeSum cumsum', 'cumulativeProd cumprod', 'flip'], 1, ALONG, (op, { axis }, a) =>
  make(op, [asarray(a)], axis));
defineAll(['softmax', 'normalize'], 1, LAST, (op, { axis }, a) => make(op, [asarray(a)], axis));
defineAll(['sort', 'argsort'], 1, { axis: -1, descending: false }, (op, { axis, descending }, a) =>
  make(op, [asarray(a)], axis, descending));
defineAll(['matmul'], 2, NONE, (op, options, a, b) => make(op, [asarray(a), asarray(b)]));
defineAll(['round'], 2, NONE, (op, options, a, decimals = 0) => make(op, [asarray(a)], decimals));
defineAll(['take'], 2, ALONG, (op, { axis }, a, indices) => make(op, [asarray(a), asarray(indices)], axis));
defineAll(['takeAlongAxis'], 2, LAST, (op, { axis }, a, indices) =>
  make(op, [asarray(a), asarray(indices)], axis));
defineAll(['repeat'], 2, ALONG, (op, { axis }, a, repeats) => make(op, [asarray(a)], repeats, axis));
define('reshape', Infinity, NONE, (options, a, ...shape) => make('reshape', [asarray(a)], ints(shape)));
define('broadcastTo', Infinity, NONE, (options, a, ...shape) =>
  make('broadcast_to', [asarray(a)], ints(shape)));
define('permuteDims transpose', Infinity, NONE, (options, a, ...axes) =>
  make('permute_dims', [asarray(a)], axes.length === 0 || axes[0] === null ? null : ints(axes)));
defineAll(['oneHot'], 2, { dtype: 'float32' }, (op, { dtype }, indices, numClasses) =>
  make(op, [asarray(indices)], numClasses, dtypeNamed(dtype)));
defineAll(['nms'], 2, { iouThreshold: 0.5, scoreThreshold: null, maxOutput: null },
  (op, { iouThreshold, scoreThreshold, maxOutput }, boxes, scores) =>
    make(op, [asarray(boxes), asarray(scores)], iouThreshold, scoreThreshold, maxOutput));

// What is made of other operations.

define('where', 3, NONE, (options, condition, x, y) =>
  (x === undefined && y === undefined ? np.nonzero(condition)
  : make('where', [asarray(condition), operand(x), operand(y)])));

define('clip', 3, NONE, (options, a, min = null, max = null) => {
  const low = min === null ? asarray(a) : np.maximum(asarray(a), min);
  return max === null ? low : low.minimum(max);
});

define('isclose', 2, { rtol: 1e-5, atol: 1e-8 }, ({ rtol, atol }, x, y) => {
  const [a, b] = [asarray(x), asarray(y)];
  const isNear = a.subtract(b.astype('float64')).abs().lessEqual(b.abs().multiply(rtol).add(atol));
  return isNear.bitwiseAnd(b.isfinite()).bitwiseOr(a.equal(b));
});
define('allclose', 2, { rtol: 1e-5, atol: 1e-8 }, (options, a, b) => np.isclose(a, b, options).all().item());
define('arrayEqual', 2, NONE, (options, x, y) => {
  const [a, b] = [asarray(x), asarray(y)];
  return String(a.shape) === String(b.shape) && a.equal(b).all().item();
});

define('meanPool', 2, NONE, (options, x, mask) => {
  const weights = asarray(mask).astype('float32').at('...', null);
  return asarray(x).multiply(weights).sum({ axis: -2 }).divide(weights.sum({ axis: -2 }).maximum(1e-9));
});

define('median', 1, ALONG, ({ axis }, a) => {
  const ordered = np.sort(a, { axis });
  const along = axis ?? -1;
  const count = ordered.shape.at(along);
  const places = [Math.floor((count - 1) / 2), Math.floor(count / 2)];
  const middle = ordered.take(places, { axis: along }).mean({ axis: along });
  // NaN is the last.
  return np.where(ordered.take(count - 1, { axis: along }).isnan(), NaN, middle);
});

define('topK', 2, LAST, ({ axis }, a, k) => {
  const found = asarray(a);
  const places = make('argtopk', [found], axis, k);
  // The host keeps the places, because they are read as a rule.
  nodeOf(places).uses += 1;
  return [found.takeAlongAxis(places, { axis }), places];
});

define('unique uniqueValues', 1, { returnCounts: false }, ({ returnCounts }, a) => {
  const found = asarray(a);
  const values = make('unique_values', [found]);
  return returnCounts ? [values, make('unique_counts', [found])] : values;
});

define('searchsorted', 2, { side: 'left' }, ({ side }, a, v) =>
  make(side === 'right' ? 'searchsorted_right' : 'searchsorted', [asarray(a), asarray(v)]));

define('nonzero', 1, NONE, (options, a) => {
  const found = make('nonzero', [asarray(a)]);
  return Array.from({ length: found.shape[0] }, (_, axis) => found.at(axis));
});
define('flatnonzero', 1, NONE, (options, a) => make('nonzero', [np.ravel(a)]).at(0));
define('argwhere', 1, NONE, (options, a) => make('nonzero', [asarray(a)]).T);

define('dot', 2, NONE, (options, a, b) => make('matmul', [asarray(a), asarray(b)], true));
define('outer', 2, NONE, (options, a, b) => np.ravel(a).at(':', null).multiply(np.ravel(b)));

define('ravel flatten', 1, NONE, (options, a) => np.reshape(a, -1));
define('atleast2d', 1, NONE, (options, a) => (asarray(a).ndim < 2 ? np.reshape(a, 1, -1) : asarray(a)));
define('expandDims', 2, NONE, (options, a, axis) => {
  const around = Array(axis < 0 ? -axis - 1 : axis).fill(':');
  return axis < 0 ? asarray(a).at('...', null, ...around) : asarray(a).at(...around, null);
});
define('squeeze', 1, ALONG, ({ axis }, a) => {
  const { shape } = asarray(a);
  const named = axis === null ? undefined : axesOf(ints([axis]), shape.length);
  if (named?.some((at) => shape[at] !== 1)) {
    throw new ArrayError('value', 'cannot select an axis to squeeze out which has size not equal to one');
  }
  return np.reshape(a, shape.filter((size, at) => size !== 1 || named?.includes(at) === false));
});
define('swapaxes', 3, NONE, (options, a, axis1, axis2) => {
  const order = [...Array(asarray(a).ndim).keys()];
  const [first, second] = axesOf([axis1, axis2], order.length);
  [order[first], order[second]] = [order[second], order[first]];
  return np.permuteDims(a, order);
});
define('moveaxis', 3, NONE, (options, a, source, destination) => {
  const order = [...Array(asarray(a).ndim).keys()];
  const [from, to] = axesOf([source, destination], order.length);
  order.splice(to, 0, ...order.splice(from, 1));
  return np.permuteDims(a, order);
});
define('tile', Infinity, NONE, (options, a, ...reps) => {
  const given = ints(reps);
  const { shape } = asarray(a);
  const ndim = Math.max(given.length, shape.length);
  const sizes = [...Array(ndim - shape.length).fill(1), ...shape];
  const times = [...Array(ndim - given.length).fill(1), ...given];
  const apart = np.reshape(a, sizes.flatMap((size) => [1, size]));
  const wide = apart.broadcastTo(sizes.flatMap((size, at) => [times[at], size]));
  return wide.reshape(sizes.map((size, at) => size * times[at]));
});

function joined(op, arrays, axis) {
  if (arrays.length <= JOINED_MAX) return make(op, arrays, axis);
  const groups = [];
  for (let at = 0; at < arrays.length; at += JOINED_MAX) {
    groups.push(joined(op, arrays.slice(at, at + JOINED_MAX), axis));
  }
  return joined('concat', groups, axis);
}

defineCreator('concatenate concat', 1, { axis: 0 }, ({ axis }, arrays) =>
  joined('concat', Array.from(arrays, (a) => asarray(a)), axis));
defineCreator('stack', 1, { axis: 0 }, ({ axis }, arrays) =>
  joined('stack', Array.from(arrays, (a) => asarray(a)), axis));
defineCreator('vstack', 1, NONE, (options, arrays) =>
  np.concatenate(Array.from(arrays, (a) => np.atleast2d(a))));
defineCreator('hstack', 1, NONE, (options, arrays) => {
  const found = Array.from(arrays, (a) => asarray(a));
  return np.concatenate(found, { axis: found[0]?.ndim < 2 ? 0 : 1 });
});
defineCreator('columnStack', 1, NONE, (options, arrays) => {
  const found = Array.from(arrays, (a) => asarray(a));
  return np.concatenate(found.map((a) => (a.ndim === 1 ? a.at(':', null) : a)), { axis: 1 });
});

// Making arrays.

defineCreator('asarray array', 1, { dtype: null }, ({ dtype }, value) => asarray(value, dtype));
defineCreator('full', 2, { dtype: null }, ({ dtype }, shape, value) =>
  make('full', [], plain(value), ints([shape]), dtypeNamed(dtype)));
defineCreator('zeros empty', 1, { dtype: 'float64' }, ({ dtype }, shape) => np.full(shape, 0, { dtype }));
defineCreator('ones', 1, { dtype: 'float64' }, ({ dtype }, shape) => np.full(shape, 1, { dtype }));
defineCreator('fullLike', 2, { dtype: null }, ({ dtype }, like, value) => {
  const a = asarray(like);
  return np.full(a.shape, value, { dtype: dtype ?? a.dtype });
});
defineCreator('zerosLike emptyLike', 1, { dtype: null }, ({ dtype }, a) => np.fullLike(a, 0, { dtype }));
defineCreator('onesLike', 1, { dtype: null }, ({ dtype }, a) => np.fullLike(a, 1, { dtype }));
defineCreator('arange', 3, { dtype: null }, ({ dtype }, start, stop, step = 1) => {
  const [first, last] = stop === undefined ? [0, start] : [start, stop];
  return make('arange', [], plain(first), plain(last), plain(step), dtypeNamed(dtype));
});
defineCreator('linspace', 3, { endpoint: true, dtype: null }, ({ endpoint, dtype }, start, stop, num = 50) =>
  make('linspace', [], plain(start), plain(stop), num, endpoint, dtypeNamed(dtype)));
defineCreator('eye identity', 1, { M: null, k: 0, dtype: 'float64' }, ({ M, k, dtype }, N) =>
  make('eye', [], N, M, k, dtypeNamed(dtype)));
defineCreator('frombuffer', 1, { dtype: 'float64' }, ({ dtype }, buffer) => {
  const kind = dtypeNamed(dtype);
  const width = kind === 'bool' ? 1 : parseInt(/\d+$/.exec(kind), 10) / 8;
  const count = (buffer instanceof Body ? buffer.size : buffer.byteLength) / width;
  if (!Number.isInteger(count)) {
    throw new ArrayError('value', 'buffer size must be a multiple of element size');
  }
  if (buffer instanceof Body) return asarray(Tensor.fromBytes(buffer, [count], kind));
  return ofTyped(ArrayBuffer.isView(buffer) ? buffer : new Uint8Array(buffer), [count], kind);
});

const norm = optioned('linalg.norm', 1, { axis: null, keepdims: false }, ({ axis, keepdims }, x) => {
  const found = asarray(x);
  // Squares of integers may not fit their dtype.
  const floats = found.dtype.startsWith('float') ? found : found.astype('float64');
  return floats.multiply(floats).sum({ axis, keepdims }).sqrt();
});
np.linalg = { norm: (...given) => norm(given), matmul: np.matmul };
Object.freeze(np);
