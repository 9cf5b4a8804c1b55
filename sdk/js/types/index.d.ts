/// <reference path="./files.d.ts" />

/** The element types: those of ONNX. */
export type Dtype =
  | 'bool' | 'uint8' | 'int8' | 'uint16' | 'int16' | 'uint32' | 'int32' | 'uint64' | 'int64'
  | 'float16' | 'bfloat16' | 'float32' | 'float64' | 'string';

/** The form in which `Tensor.data` gives the elements of a dtype. */
export interface ElementsOf {
  /** 0 or 1. */
  bool: Uint8Array;
  uint8: Uint8Array;
  int8: Int8Array;
  uint16: Uint16Array;
  int16: Int16Array;
  uint32: Uint32Array;
  int32: Int32Array;
  uint64: BigUint64Array;
  int64: BigInt64Array;
  /** The same values as float32. */
  float16: Float32Array;
  /** The same values as float32. */
  bfloat16: Float32Array;
  float32: Float32Array;
  float64: Float64Array;
  string: string[];
}

export type Elements = ElementsOf[Dtype];

/** One element found by `argmax` or `topK`. */
export interface Scored {
  /** Position in the row. */
  index: number;
  value: number;
}

/**
 * An immutable n-dimensional array, row-major, that the host holds. Dimension 0 is rows. Making one
 * copies its elements to the host once; `data`, `row` and `bytes` copy them back. All other
 * operations run on the host.
 */
export class Tensor {
  private constructor();

  /**
   * A tensor of `shape` with these elements, row-major. Without `shape` it has one dimension.
   * Without `dtype` it has that of the typed array; plain arrays become float32, which holds seven
   * digits, or string, bool or int64 if they begin with a string, a boolean or a bigint. Name
   * `int64` for ids. If `dtype` is not that of the typed array, the host casts.
   *
   * @throws {TensorError} if the shape needs another number of elements, or a value of a plain array
   *   is out of the range of its integers.
   */
  static from(
    data: ArrayBufferView | readonly (number | bigint | boolean | string)[],
    shape?: readonly number[],
    dtype?: Dtype,
  ): Tensor;

  /**
   * A tensor from its elements' bytes: little-endian, no padding. float16 and bfloat16 are two
   * bytes, a string is its length (u32) and its UTF-8. Those of a `Body` stay on the host.
   *
   * @throws {TensorError} if the length does not fit dtype and shape.
   */
  static fromBytes(bytes: Uint8Array | Body, shape: readonly number[], dtype: Dtype): Tensor;

  /**
   * The tensors one after another along dimension `axis`. They have the same dtype and the same
   * shape apart from that dimension.
   *
   * @throws {TensorError} if they do not fit together.
   */
  static concat(tensors: readonly Tensor[], axis?: number): Tensor;

  /**
   * The tensors along a new dimension `axis`. They have the same dtype and shape.
   *
   * @throws {TensorError} if they do not fit together.
   */
  static stack(tensors: readonly Tensor[], axis?: number): Tensor;

  readonly dtype: Dtype;
  readonly shape: number[];

  /** All elements, row-major. Name the dtype for the type: `data<'int64'>()`. */
  data<D extends Dtype = 'float32'>(): ElementsOf[D];

  /** The elements of one row: everything after dimension 0. Only they are copied. */
  row<D extends Dtype = 'float32'>(index: number): ElementsOf[D];

  /** All elements' bytes, in the form that `fromBytes` takes. */
  bytes(): Uint8Array;

  /** The largest element of each row. Empty if the dtype is not float32. */
  argmax(): Scored[];

  /** The `k` largest elements of a row, largest first. Empty if the dtype is not float32. */
  topK(k: number, row?: number): Scored[];

  /**
   * The softmax over each row.
   *
   * @throws {TensorError} if the dtype is not float32.
   */
  softmax(): Tensor;

  /**
   * The part from `start` up to, not including, `end` along dimension `axis`.
   *
   * @throws {TensorError} if it is not within the tensor.
   */
  slice(start: number, end?: number, axis?: number): Tensor;

  /**
   * The same values in another dtype. A float becomes an integer by dropping its fraction; a value
   * out of range becomes the nearest in range, and NaN becomes 0.
   *
   * @throws {TensorError} for strings.
   */
  cast(dtype: Dtype): Tensor;
}

/** A tensor could not be made. If the plugin does not catch it, the client gets 500. */
export class TensorError extends Error {}

/** The dtypes of arrays. */
export type ArrayDtype = Exclude<Dtype, 'string'>;

/** A number of an array. Integers of 64 bits beyond 2^53 - 1 are bigints. */
export type ArrayValue = number | bigint | boolean;

/** Nested lists; a value if there is no dimension. */
export type Nested = ArrayValue | Nested[];

/**
 * What an operation takes as an array. A number alone takes the dtype of the array that it meets, as
 * in NumPy: a number without a fraction is an integer, also `1.0`, so `a.multiply(1.0)` of integers
 * has integers. In a list it is int64, and any other number makes the list float64.
 */
export type ArrayInput = NdArray | Tensor | ArrayBufferView | ArrayValue | readonly ArrayInput[];

/** One axis, several, or null for all. The last one is -1. */
export type Axes = number | readonly number[] | null;

export interface AxisOptions {
  axis?: Axes;
}
export interface ReduceOptions extends AxisOptions {
  /** Keep the axes, with length 1. */
  keepdims?: boolean;
}
export interface SortOptions {
  /** -1 unless it is given; null for the flat array. */
  axis?: number | null;
  descending?: boolean;
}
/** A dtype alone stands for `{ dtype }`. */
export type DtypeOption = ArrayDtype | { dtype?: ArrayDtype | null };

/** A part of a dimension: `np.slice(1, 3)`, or a text as in NumPy: `':'`, `'1:3'`, `'::-1'`. */
export type ArraySlice = { readonly ends: readonly (number | null)[] } | `${string}:${string}`;

/** What `NdArray.at` takes for a dimension. null is a new axis, `'...'` all that are left. */
export type ArrayIndex = number | bigint | null | '...' | ArraySlice | ArrayInput;

/** The operations that are both functions of `np` and methods of arrays. */
export interface ArrayOperations {
  negative(): NdArray;
  sign(): NdArray;
  square(): NdArray;
  absolute(): NdArray;
  abs(): NdArray;
  fabs(): NdArray;
  floor(): NdArray;
  ceil(): NdArray;
  trunc(): NdArray;
  /** To the nearest integer; a half goes to the even one. */
  rint(): NdArray;
  isnan(): NdArray;
  isinf(): NdArray;
  isfinite(): NdArray;
  logicalNot(): NdArray;
  /** Each bit. */
  invert(): NdArray;
  bitwiseNot(): NdArray;
  bitwiseInvert(): NdArray;
  exp(): NdArray;
  exp2(): NdArray;
  expm1(): NdArray;
  log(): NdArray;
  log2(): NdArray;
  log10(): NdArray;
  log1p(): NdArray;
  sqrt(): NdArray;
  reciprocal(): NdArray;
  /** 1 / (1 + e^-a). */
  sigmoid(): NdArray;
  sin(): NdArray;
  cos(): NdArray;
  tan(): NdArray;
  arcsin(): NdArray;
  asin(): NdArray;
  arccos(): NdArray;
  acos(): NdArray;
  arctan(): NdArray;
  atan(): NdArray;
  sinh(): NdArray;
  cosh(): NdArray;
  tanh(): NdArray;
  add(b: ArrayInput): NdArray;
  subtract(b: ArrayInput): NdArray;
  multiply(b: ArrayInput): NdArray;
  divide(b: ArrayInput): NdArray;
  trueDivide(b: ArrayInput): NdArray;
  floorDivide(b: ArrayInput): NdArray;
  remainder(b: ArrayInput): NdArray;
  mod(b: ArrayInput): NdArray;
  power(b: ArrayInput): NdArray;
  pow(b: ArrayInput): NdArray;
  minimum(b: ArrayInput): NdArray;
  maximum(b: ArrayInput): NdArray;
  hypot(b: ArrayInput): NdArray;
  arctan2(b: ArrayInput): NdArray;
  atan2(b: ArrayInput): NdArray;
  equal(b: ArrayInput): NdArray;
  notEqual(b: ArrayInput): NdArray;
  less(b: ArrayInput): NdArray;
  lessEqual(b: ArrayInput): NdArray;
  greater(b: ArrayInput): NdArray;
  greaterEqual(b: ArrayInput): NdArray;
  logicalAnd(b: ArrayInput): NdArray;
  logicalOr(b: ArrayInput): NdArray;
  logicalXor(b: ArrayInput): NdArray;
  bitwiseAnd(b: ArrayInput): NdArray;
  bitwiseOr(b: ArrayInput): NdArray;
  bitwiseXor(b: ArrayInput): NdArray;
  leftShift(b: ArrayInput): NdArray;
  bitwiseLeftShift(b: ArrayInput): NdArray;
  rightShift(b: ArrayInput): NdArray;
  bitwiseRightShift(b: ArrayInput): NdArray;
  sum(options?: ReduceOptions): NdArray;
  prod(options?: ReduceOptions): NdArray;
  mean(options?: ReduceOptions): NdArray;
  max(options?: ReduceOptions): NdArray;
  amax(options?: ReduceOptions): NdArray;
  min(options?: ReduceOptions): NdArray;
  amin(options?: ReduceOptions): NdArray;
  any(options?: ReduceOptions): NdArray;
  all(options?: ReduceOptions): NdArray;
  argmax(options?: ReduceOptions): NdArray;
  argmin(options?: ReduceOptions): NdArray;
  countNonzero(options?: ReduceOptions): NdArray;
  /** The variance. The sum is divided by the count less `ddof`. */
  var(options?: ReduceOptions & { ddof?: number }): NdArray;
  /** The standard deviation: the root of `var`. */
  std(options?: ReduceOptions & { ddof?: number }): NdArray;
  median(options?: { axis?: number | null }): NdArray;
  /** The sums of all elements up to each. */
  cumsum(options?: { axis?: number | null }): NdArray;
  cumulativeSum(options?: { axis?: number | null }): NdArray;
  cumprod(options?: { axis?: number | null }): NdArray;
  cumulativeProd(options?: { axis?: number | null }): NdArray;
  /** 1, divided among the elements along an axis by their powers of e; -1 unless it is given. */
  softmax(options?: { axis?: number }): NdArray;
  /** Divided by the Euclidean length along an axis; -1 unless it is given. */
  normalize(options?: { axis?: number }): NdArray;
  /**
   * The means over the tokens of texts that the mask does not leave out. The array is
   * [.., tokens, width], as the last layer of an encoder gives it, and `mask` [.., tokens], 1 for
   * tokens and 0 for padding. A text without tokens gives 0.
   */
  meanPool(mask: ArrayInput): NdArray;
  /** `x` where the array is true, `y` elsewhere. Without them, as `nonzero`. */
  where(x: ArrayInput, y: ArrayInput): NdArray;
  /** No less than `min`, no more than `max`; null is no bound. */
  clip(min?: ArrayInput | null, max?: ArrayInput | null): NdArray;
  /** To so many decimals, 0 unless they are given; a half goes to the even digit. */
  round(decimals?: number): NdArray;
  isclose(b: ArrayInput, options?: { rtol?: number; atol?: number }): NdArray;
  allclose(b: ArrayInput, options?: { rtol?: number; atol?: number }): boolean;
  /** Whether both have the same shape and elements. */
  arrayEqual(b: ArrayInput): boolean;
  /** A new array in order; NaN comes last. */
  sort(options?: SortOptions): NdArray;
  /** The places of the elements in sorted order; equal ones stay in their order. */
  argsort(options?: SortOptions): NdArray;
  /** The `k` largest elements along an axis, largest first, and their places. */
  topK(k: number, options?: { axis?: number }): [values: NdArray, places: NdArray];
  /** The different elements in order, and how often each is there. */
  unique(options: { returnCounts: true }): [values: NdArray, counts: NdArray];
  unique(options?: { returnCounts?: false }): NdArray;
  uniqueValues(): NdArray;
  /** Where in this sorted array each value would be put in. */
  searchsorted(v: ArrayInput, options?: { side?: 'left' | 'right' }): NdArray;
  /** The places of the elements that are not 0, one array for each dimension. */
  nonzero(): NdArray[];
  flatnonzero(): NdArray;
  argwhere(): NdArray;
  /** The elements at these indices along an axis; of the flat array unless it is given. */
  take(indices: ArrayInput, options?: { axis?: number | null }): NdArray;
  /** For each place of `indices`, the element that it names along the axis, -1 unless it is given. */
  takeAlongAxis(indices: ArrayInput, options?: { axis?: number | null }): NdArray;
  /** Each element so many times along an axis; of the flat array unless it is given. */
  repeat(repeats: number, options?: { axis?: number | null }): NdArray;
  tile(...reps: number[] | [readonly number[]]): NdArray;
  /** In the opposite order along an axis, or along all. */
  flip(options?: AxisOptions): NdArray;
  /** Another shape of as many elements. One dimension may be -1. */
  reshape(...shape: number[] | [readonly number[]]): NdArray;
  ravel(): NdArray;
  flatten(): NdArray;
  broadcastTo(...shape: number[] | [readonly number[]]): NdArray;
  /** The dimensions in another order; without axes, in the opposite one. */
  permuteDims(...axes: number[] | [readonly number[]]): NdArray;
  transpose(...axes: number[] | [readonly number[]]): NdArray;
  swapaxes(axis1: number, axis2: number): NdArray;
  moveaxis(source: number, destination: number): NdArray;
  expandDims(axis: number): NdArray;
  /** Without these dimensions, or all, of length 1. */
  squeeze(options?: AxisOptions): NdArray;
  atleast2d(): NdArray;
  /** The product of matrices; a vector is a row on the left and a column on the right. */
  matmul(b: ArrayInput): NdArray;
  /** As `matmul`, and as `multiply` for a number. */
  dot(b: ArrayInput): NdArray;
  outer(b: ArrayInput): NdArray;
  /** 1 at each index along a new last axis, 0 elsewhere; float32 unless a dtype is given. */
  oneHot(numClasses: number, options?: DtypeOption): NdArray;
  /**
   * Which boxes `[n, 4]` (x1, y1, x2, y2) stay, best first. A box goes if it overlaps a better one
   * that stays by more than `iouThreshold`, 0.5 unless it is given: by the area that both share over
   * the area that they cover.
   */
  nms(
    scores: ArrayInput,
    options?: { iouThreshold?: number; scoreThreshold?: number | null; maxOutput?: number | null },
  ): NdArray;
}

/** The functions of `np` that make arrays, and its constants. */
export interface ArrayFunctions extends Record<ArrayDtypeName, ArrayDtype> {
  /** A new array, of a tensor, a typed array, a number, or nested lists. */
  asarray(value: ArrayInput, options?: DtypeOption): NdArray;
  array(value: ArrayInput, options?: DtypeOption): NdArray;
  /** An array of one dimension of bytes; those of a `Body` stay on the host. float64 is the default. */
  frombuffer(buffer: Body | ArrayBufferView | ArrayBuffer, options?: DtypeOption): NdArray;
  /** float64 unless a dtype is given. */
  zeros(shape: number | readonly number[], options?: DtypeOption): NdArray;
  /** float64 unless a dtype is given. */
  ones(shape: number | readonly number[], options?: DtypeOption): NdArray;
  empty(shape: number | readonly number[], options?: DtypeOption): NdArray;
  full(shape: number | readonly number[], value: NdArray | ArrayValue, options?: DtypeOption): NdArray;
  zerosLike(a: ArrayInput, options?: DtypeOption): NdArray;
  onesLike(a: ArrayInput, options?: DtypeOption): NdArray;
  emptyLike(a: ArrayInput, options?: DtypeOption): NdArray;
  fullLike(a: ArrayInput, value: NdArray | ArrayValue, options?: DtypeOption): NdArray;
  /** Numbers from `start` up to, not including, `stop`. */
  arange(stop: NdArray | ArrayValue, options?: DtypeOption): NdArray;
  arange(
    start: NdArray | ArrayValue,
    stop: NdArray | ArrayValue,
    step?: NdArray | ArrayValue,
    options?: DtypeOption,
  ): NdArray;
  /** Numbers at equal distances, `stop` among them unless `endpoint` is false. */
  linspace(
    start: NdArray | ArrayValue,
    stop: NdArray | ArrayValue,
    num: number,
    options?: ArrayDtype | { endpoint?: boolean; dtype?: ArrayDtype | null },
  ): NdArray;
  /** Ones on a diagonal, zeros elsewhere; `M` columns. */
  eye(N: number, options?: ArrayDtype | { M?: number | null; k?: number; dtype?: ArrayDtype }): NdArray;
  identity(n: number, options?: DtypeOption): NdArray;
  /** One after another along an axis, 0 unless it is given; null: all flat. */
  concatenate(arrays: Iterable<ArrayInput>, options?: { axis?: number | null }): NdArray;
  concat(arrays: Iterable<ArrayInput>, options?: { axis?: number | null }): NdArray;
  /** Along a new axis, 0 unless it is given. */
  stack(arrays: Iterable<ArrayInput>, options?: { axis?: number }): NdArray;
  vstack(arrays: Iterable<ArrayInput>): NdArray;
  hstack(arrays: Iterable<ArrayInput>): NdArray;
  columnStack(arrays: Iterable<ArrayInput>): NdArray;
  /** A part of a dimension, as `Array.slice`, with a step; null is an end. */
  slice(start?: number | null, stop?: number | null, step?: number | null): ArraySlice;
  /** Without `x` and `y`, as `nonzero`. */
  where(condition: ArrayInput): NdArray[];
  readonly linalg: {
    /** The Euclidean length, of all or along axes. */
    norm(x: ArrayInput, options?: ReduceOptions): NdArray;
    matmul(a: ArrayInput, b: ArrayInput): NdArray;
  };
  readonly pi: number;
  readonly e: number;
  readonly inf: number;
  readonly nan: number;
  readonly newaxis: null;
}

type ArrayDtypeName = Exclude<ArrayDtype, 'bfloat16'>;

/** The methods as functions whose first argument is the array. */
type FunctionsOf<T> = {
  [Name in keyof T]: T[Name] extends (...args: infer Args) => infer Result
    ? (a: ArrayInput, ...args: Args) => Result
    : never;
};

/**
 * Arrays with NumPy's names, in camel case, and its rules; options stand last, in an object. The host
 * holds the elements and works on them. An operation only notes what is to be done, and the host does
 * it when a result is read, so that a formula costs one call of the host. `np.sum(a, { axis: 1 })` and
 * `a.sum({ axis: 1 })` are the same. The guide `numpy.md` lists the differences from NumPy.
 *
 * A module may note arrays while it is loaded, such as means and tables, and read them in calls only.
 */
export const np: ArrayFunctions & FunctionsOf<ArrayOperations>;

/** An immutable array. `np.asarray`, `np.zeros` and others make one. */
export interface NdArray extends ArrayOperations, Iterable<any> {
  /** Reading it runs what is noted; so do `dtype`, `ndim` and `size`. */
  readonly shape: number[];
  readonly dtype: Dtype;
  readonly ndim: number;
  readonly size: number;
  /** The dimensions in the opposite order. */
  readonly T: NdArray;
  /** The last two dimensions in place of each other. */
  readonly mT: NdArray;
  /** The elements as nested lists; a value if there is no dimension. */
  toArray(): any;
  /** All elements, row-major, as `Tensor.data` gives them. */
  data<D extends Dtype = 'float32'>(): ElementsOf[D];
  /**
   * The element of an array of one, or the one at these indices. JavaScript's operators take it, too:
   * `a.max() > 0.5`. An array is always true: `if (a.any().item())`.
   */
  item(...index: ArrayIndex[]): any;
  /** The same elements as a tensor. */
  tensor(): Tensor;
  /** A part: `a.at(0)`, `a.at(':', 1)`, `a.at('...', np.slice(1, 3))`, `a.at(mask)`, `a.at([2, 0])`. */
  at(...index: ArrayIndex[]): NdArray;
  /** The same values in another dtype, as `Tensor.cast`. */
  astype(dtype: ArrayDtype): NdArray;
}
export class NdArray {
  private constructor();
}

/**
 * An operation on arrays was refused. Its stack is that of the operation, and not where a result was
 * read. If the plugin does not catch it, the client gets 500.
 */
export class ArrayError extends Error {
  /** What does not fit: a value or a shape, an index, a dtype, or the program as a whole. */
  readonly kind: 'value' | 'index' | 'type' | 'program';
}

/** Bytes that stay on the host until they are read. Each read copies them. */
export class Body {
  private constructor();
  /** A copy of these bytes on the host. */
  static fromBytes(bytes: Uint8Array): Body;
  /**
   * The bytes that a text in base64 stands for, decoded by the host. It may be a data URL, as
   * `data:image/png;base64,iVBO..`. Both alphabets are read, white space is left out, and padding
   * may be missing.
   *
   * @throws {InvalidInput} if the text is not in base64; it says where.
   */
  static fromBase64(text: string): Body;
  /** Up to `length` bytes from `offset` on, as a body of the same memory. */
  slice(offset?: number, length?: number): Body;
  /** Length in bytes. */
  readonly size: number;
  /** Up to `length` bytes from `offset` on; without arguments all. */
  bytes(offset?: number, length?: number): Uint8Array;
  /** @throws {InvalidInput} if the bytes are not UTF-8. */
  text(): string;
  /**
   * The bytes as JSON. An integer beyond 2^53 - 1, which a number cannot hold, is a bigint, so that
   * ids keep their digits.
   *
   * @throws {InvalidInput} if the bytes are not JSON.
   */
  json(): any;
}

/** Named values in their order. */
export interface Fields extends Iterable<[name: string, value: string]> {
  /** The first value of this name, or null. Names of headers are in lower case. */
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
}

/** One part of a `multipart/form-data` body. */
export interface Part {
  /** The form field's name; empty if it has none. */
  readonly name: string;
  readonly filename?: string;
  readonly contentType?: string;
  readonly body: Body;
  bytes(): Uint8Array;
  text(): string;
  json(): any;
}

/** One request. Each property is read from the host when it is asked for. */
export interface PluginRequest {
  /** The media type in lower case, without parameters. */
  readonly contentType?: string;
  /** `accept`, `accept-language`, `user-agent` and all that begin with `x-`. */
  readonly headers: Fields;
  readonly query: Fields;
  /** The whole body; empty for a multipart request. */
  readonly body: Body;
  /** The parts of a multipart request, in order. */
  readonly parts: Part[];
  /** The first part of this name. */
  part(name: string): Part | undefined;
  /** The body's bytes. */
  bytes(): Uint8Array;
  /** @throws {InvalidInput} if the body is not UTF-8. */
  text(): string;
  /**
   * The first part of this name.
   *
   * @throws {InvalidInput} if there is none; it says which parts there are.
   */
  file(name: string): Part;
  /**
   * The body as JSON, or the value at a JSON Pointer (RFC 6901) in it, as `json('/threshold', 0.5)`.
   * With a pointer only that value is copied into the plugin. `fallback` is the result if there is
   * no such value.
   *
   * @throws {InvalidInput} if the body is not JSON, or there is neither a value nor a fallback.
   */
  json(pointer?: string, fallback?: unknown): any;
  /**
   * The values at `pointer` of a JSON body as a tensor, read by the host: nothing of it is copied
   * into the plugin. Lists of lists are dimensions: `[[1,2,3],[4,5,6]]` has the shape [2, 3].
   *
   * With `keys` the value is a list of objects, and each makes a row of its values at these keys, in
   * their order. A value may be a flat list; its values stand in the row one after another.
   *
   * Dtypes of floats take numbers, those of integers take integers in their range, `bool` takes
   * true and false, `string` takes texts.
   *
   * @throws {InvalidInput} if the body is something else; it says where and what is there.
   * @throws {Internal} if `pointer` is not a JSON Pointer, or a key is given twice.
   */
  jsonTensor(pointer?: string, dtype?: Dtype, options?: { keys?: readonly string[] }): Tensor;
  /**
   * The bytes of the text in base64 at `pointer` of a JSON body, as `Body.fromBase64` reads it.
   * Neither the text nor the bytes are copied into the plugin.
   *
   * @throws {InvalidInput} if there is no such text; it says where and what is there.
   */
  jsonBody(pointer: string): Body;
}

/** The circumstances of a call. Each property is read from the host when it is asked for. */
export interface Context {
  readonly tenant: string;
  readonly pipeline: string;
  /** In a handler that of the first of its models. */
  readonly model: string;
  /** As in the server's log and in the answer's header `x-request-id`. */
  readonly requestId: string;
  /** The pipeline's settings, a JSON value; `{}` if it has none. */
  readonly settings: any;
  /** Milliseconds until the host ends the call. */
  readonly timeLeftMs: number;
}

/** The state that `preprocess` returned. */
export interface State {
  bytes(): Uint8Array;
  text(): string;
  json(): any;
}

/** This request's rows of the model's outputs, in the model's order. */
export interface Outputs extends Iterable<[name: string, tensor: Tensor]> {
  readonly names: string[];
  /**
   * The output of this name. `shape` and `dtype`, if given, are checked; null means any size.
   *
   * @throws {Internal} if the model has no such output, or its shape or dtype is another.
   */
  get(name: string, shape?: readonly (number | null)[], dtype?: Dtype): Tensor;
  /** The elements of an output: `get(name, shape, dtype).data()`. */
  view<D extends Dtype = 'float32'>(
    name: string,
    shape?: readonly (number | null)[],
    dtype?: D,
  ): ElementsOf[D];
}

/** What `preprocess` returns. */
export interface Prepared {
  /** One tensor or array for each of the model's inputs; all have the same number of rows. */
  inputs: Record<string, Tensor | NdArray>;
  /** For `postprocess`: bytes as they are, a string as UTF-8, any other value as JSON. */
  state?: unknown;
  /**
   * For `kept` in `postprocess`: the host keeps them, and copies nothing. Each is an object of its
   * own, no input, and cannot be used any more. At most 256, with names of at most 1024 bytes.
   */
  keep?: Record<string, Pixels | Tensor | NdArray | Body>;
}

/**
 * What `preprocess` of this request kept under this name, for `postprocess`. Each is taken once. Name
 * the type: `kept<Pixels>('photo')`.
 *
 * @throws {Internal} if nothing is kept under this name, or it was taken before.
 */
export function kept<T extends Pixels | Tensor | Body = Pixels | Tensor | Body>(name: string): T;

/** The type of a plugin's export `preprocess`. */
export type Preprocess = (context: Context, request: PluginRequest) => Prepared | Promise<Prepared>;

/** The type of a plugin's export `postprocess`. */
export type Postprocess = (
  context: Context,
  outputs: Outputs,
  state: State,
) => PluginResponse | Promise<PluginResponse>;

/**
 * The type of a plugin's export `handle`, which answers a request itself with the runs of models that
 * it needs. An `InferError` that it does not catch becomes the request's answer.
 */
export type Handle = (
  context: Context,
  request: PluginRequest,
) => PluginResponse | Promise<PluginResponse>;

/** One run of a model. */
export interface Run {
  /** The model's name, as the pipeline's document has it under `models`. */
  model: string;
  /** A tensor or array for each of the model's inputs; all have the same number of rows. */
  inputs: Record<string, Tensor | NdArray>;
}

/** The pipeline's models, for `handle`. Each run goes through the model's batcher. */
export const models: {
  /**
   * Run a model. Returns this request's rows of all its outputs. The inputs stay the plugin's, so a
   * tensor can be an input of several runs.
   *
   * @throws {InferError} if the model gives no outputs.
   */
  infer(model: string, inputs: Run['inputs']): Outputs;
  /**
   * Run models side by side, or one model several times: the runs may share batches. Returns when all
   * have ended, with the outcome of each, in order: its outputs, or the error that `infer` would
   * throw, which is not thrown here.
   */
  inferAll(runs: readonly Run[]): (Outputs | InferError)[];
};

/**
 * Files: those in the plugin's folder `assets/`, and those of the tenant that the pipeline's document
 * names under `assets`, which hide the plugin's.
 */
export const assets: {
  /**
   * The file of this name, such as `labels.txt`. Its bytes lie on the host once, for all calls.
   *
   * @throws {Internal} if there is none. The message says which files there are.
   */
  open(name: string): Body;
};

/** Texts for a tokenizer: one, several, a tensor of strings of one dimension, or one text in UTF-8. */
export type Texts = string | readonly string[] | Tensor | Body;

/** How texts are encoded. What is not given is as the file says. */
export interface EncodeOptions {
  /** As many other texts: each text and its pair make one row. */
  pairs?: Texts;
  /** Maximum tokens of a text or a pair, special tokens included. More are cut off. */
  maxLength?: number;
  /** The side on which tokens are cut off. */
  truncate?: 'left' | 'right';
  /**
   * The length of the rows: that of the longest, a length, or lengths of which the smallest that
   * fits is taken. `longest` unless it is given.
   */
  padding?: 'longest' | number | readonly number[];
  /** The side that is padded. */
  pad?: 'left' | 'right';
  padId?: number;
  /** Add the special tokens of the file; true unless it is given. */
  addSpecialTokens?: boolean;
  /** `int64` unless it is given. */
  dtype?: 'int64' | 'int32';
  /** Make offsets, which count characters as Python does, or bytes of UTF-8. */
  offsets?: 'characters' | 'bytes';
}

/** The tokens of texts: one row for each text or pair. */
export interface Encoded {
  /** [texts, length] */
  ids: Tensor;
  /** 1 for tokens, 0 for padding: [texts, length]. */
  attentionMask: Tensor;
  /** 0 for tokens of the first text of a pair, 1 for the second: [texts, length]. */
  typeIds: Tensor;
  /** Tokens of each row, without padding. */
  lengths: number[];
  /** Where each token begins and ends in its text, if they are asked for: [texts, length, 2]. */
  offsets?: Tensor;
}

/**
 * A tokenizer by the name of its file, a `tokenizer.json` among the assets. The host reads the file
 * once, at the first call that needs it, and makes the ids of the Python package `tokenizers`. This
 * object holds nothing, so a module can have one. Texts are at most 4096 in a call, with at most
 * 128 KiB each and 4 MiB in all.
 *
 * Each function throws a `TokenizerError` if the file or an argument is wrong.
 */
export class Tokenizer {
  /** `tokenizer.json` unless `asset` is given. */
  constructor(asset?: string);
  readonly asset: string;
  /**
   * The tokens of texts. Texts in a tensor or a body, and the ids, do not pass through the plugin.
   *
   * @throws {Unprocessable} for texts that are over a limit.
   */
  encode(texts: Texts, options?: EncodeOptions): Encoded;
  /** The texts of ids, one for each row of an integer tensor. A list of ids is one row. */
  decode(
    ids: Tensor | NdArray | readonly (number | bigint)[] | ArrayBufferView,
    options?: { skipSpecialTokens?: boolean },
  ): string[];
  /** The id of a token, such as `[MASK]`; undefined if there is no such token. */
  tokenToId(token: string): number | undefined;
}

/**
 * What is wrong with a tokenizer:
 *
 * - `no-asset`: there is no asset of this name
 * - `malformed`: the asset is not a `tokenizer.json`, or one that does not run here
 * - `invalid-argument`: an argument is out of range, or does not fit the file
 */
export type TokenizerErrorKind = 'no-asset' | 'malformed' | 'invalid-argument';

/** A file or an argument is wrong. If nothing catches it: 500, with the text in the log only. */
export class TokenizerError extends Internal {
  constructor(kind: TokenizerErrorKind, message: string);
  readonly kind: TokenizerErrorKind;
}

/**
 * Rows of numbers by key, in files among the assets: prices, features of products, embeddings. A file
 * is CSV or Parquet, with a column of keys and columns of numbers, or an `.npy` of two dimensions,
 * whose keys are the numbers of its rows. The host reads it once for each version.
 *
 * Each function throws a `TableError` if the file or an argument is wrong.
 */
export const tables: {
  /**
   * The rows of keys, as a float32 tensor of the shape [keys, columns]. Keys in a tensor, of int64 or
   * of strings of one dimension, and the rows do not pass through the plugin. At most 4096 in a call.
   * `columns` is the number of columns that the file has besides its keys, or the names of some of
   * them. The row of a key that the file does not have is filled with `missing`, 0 unless it is given.
   *
   * @throws {Unprocessable} for keys that are over a limit.
   */
  gather(
    asset: string,
    keys: readonly (string | number | bigint)[] | Tensor,
    columns: number | readonly string[],
    missing?: number,
  ): Tensor;
};

/**
 * What is wrong with a table:
 *
 * - `no-asset`: there is no asset of this name
 * - `malformed`: the asset is not a table, or is over a limit
 * - `invalid-argument`: an argument is out of range, or does not fit the file
 */
export type TableErrorKind = 'no-asset' | 'malformed' | 'invalid-argument';

/** A file or an argument is wrong. If nothing catches it: 500, with the text in the log only. */
export class TableError extends Internal {
  constructor(kind: TableErrorKind, message: string);
  readonly kind: TableErrorKind;
}

/**
 * Why a model gave no outputs:
 *
 * - `not-granted`: the pipeline's document does not name this model under `models`
 * - `invalid-input`: the inputs are not what the model takes
 * - `overloaded`: the model is too busy, or the tenant has as much under way as it may have. The same
 *   run can succeed later
 * - `unavailable`: the model cannot run now
 * - `failed`: the model failed on these inputs
 */
export type InferErrorKind = 'not-granted' | 'invalid-input' | 'overloaded' | 'unavailable' | 'failed';

/** Why a model gave no outputs. The message says what is wrong, and what to set or to do. */
export class InferError extends Error {
  constructor(kind: InferErrorKind, message: string);
  readonly kind: InferErrorKind;
  /** The HTTP status that the client gets if `handle` does not catch it. */
  readonly status: number;
}

/**
 * Values by key, in stores that the operator binds, such as Redis. A bucket is a store's name on the
 * server; the tenant's document grants it under `stores`. Keys have 1 to 1024 bytes, at most 4096 in a
 * call; values have at most 1 MiB. While a call waits for a store it uses no CPU time. In a trial,
 * such as a sample or a shadow, `set` and `increment` answer without changing anything.
 *
 * Each function throws a `StoreError` if the store gives no answer.
 */
export const store: {
  /** The value of a key; undefined if the bucket does not have the key. */
  get(bucket: string, key: string): Uint8Array | undefined;
  /** The values of keys, in their order, with one request to the store. They stay on the host. */
  getMany(bucket: string, keys: readonly string[]): (Body | undefined)[];
  /**
   * The rows of keys, as a float32 tensor of the shape [keys, width], with one request. A value is
   * `width` little-endian float32. The row of a key that the bucket does not have, or with an empty
   * value, is filled with `missing`, 0 unless it is given.
   *
   * Keys are texts, or a tensor of int64 or of strings of one dimension, whose elements never reach
   * the plugin's memory. Each key begins with `prefix`.
   */
  gather(
    bucket: string,
    keys: readonly string[] | Tensor,
    width: number,
    missing?: number,
    options?: { prefix?: string },
  ): Tensor;
  /** Set the value of a key. After `ttlMs` milliseconds the store forgets it. */
  set(bucket: string, key: string, value: string | Uint8Array, options?: { ttlMs?: number }): void;
  /**
   * Add to the whole number that a key has as decimal text, or to 0; 1 unless `delta` is given.
   * Returns the sum.
   *
   * @throws {RangeError} if the sum is beyond `Number.MAX_SAFE_INTEGER`. It is added all the same.
   */
  increment(bucket: string, key: string, delta?: number): number;
};

/**
 * Why a store gave no answer:
 *
 * - `not-granted`: the tenant's document does not grant this bucket, or there is no such bucket
 * - `invalid-argument`: an argument is out of range, or a value in the store is not what the function
 *   needs
 * - `unavailable`: the store did not answer in time, or cannot be reached. It may answer later
 * - `read-only`: the tenant's document grants this bucket for reading only
 */
export type StoreErrorKind = 'not-granted' | 'invalid-argument' | 'unavailable' | 'read-only';

/** Why a store gave no answer. If nothing catches it: 500, with the text in the log only. */
export class StoreError extends Internal {
  constructor(kind: StoreErrorKind, message: string);
  readonly kind: StoreErrorKind;
}

/** What `fetch` sends besides the URL. */
export interface FetchOptions {
  /** GET unless it is given. */
  method?: string;
  headers?: Record<string, string | number> | Iterable<readonly [string, string]>;
  /** A text has `content-type: text/plain` unless `headers` have another. A `Body` stays on the host. */
  body?: string | ArrayBuffer | ArrayBufferView | Body | null;
  /** The time for all of it. Without one, and at the latest, all ends at the request's deadline. */
  timeoutMs?: number;
}

/** The answer of a service. A status of errors, such as 404, is an answer, too. */
export interface FetchAnswer {
  readonly status: number;
  /** Whether the status is 200 to 299. */
  readonly ok: boolean;
  readonly headers: {
    get(name: string): string | null;
    has(name: string): boolean;
    [Symbol.iterator](): IterableIterator<[string, string]>;
  };
  /** The body, which stays on the host: `Pixels.decode` takes it. */
  readonly body: Body;
  bytes(): Promise<Uint8Array>;
  arrayBuffer(): Promise<ArrayBuffer>;
  text(): Promise<string>;
  json(): Promise<any>;
}

/**
 * Send a request over HTTP to another service, and wait for the whole answer. The tenant's document
 * grants services under `http`. A call sends at most 64 requests, one after another; bodies have at
 * most 16 MiB each way. A redirect is an answer as any other: nothing follows it. While a call waits
 * it uses no CPU time. Use it in `handle`: a call of a pair keeps its place among the tenant's calls
 * meanwhile. In a trial, such as a sample or a shadow, only GET and HEAD are sent.
 *
 * @throws {FetchError} if there is no answer
 */
export function fetch(url: string | { toString(): string }, options?: FetchOptions): Promise<FetchAnswer>;

/**
 * Why a service gave no answer:
 *
 * - `not-granted`: the tenant's document does not grant it, or a trial wanted to change something. The
 *   message has the grant that is missing
 * - `invalid-argument`: the method, the URL or a header cannot be sent
 * - `prohibited-address`: the host has an address that is not public, and that the grant does not name
 * - `connection`: the service cannot be reached, or the connection ended before the whole answer was
 *   there
 * - `timed-out`: there was no whole answer in time
 * - `too-large`: a body or the headers are over a limit, or the call has sent 64 requests already
 */
export type FetchErrorKind =
  | 'not-granted'
  | 'invalid-argument'
  | 'prohibited-address'
  | 'connection'
  | 'timed-out'
  | 'too-large';

/** Why a service gave no answer. If nothing catches it: 500, with the text in the log only. */
export class FetchError extends Internal {
  constructor(kind: FetchErrorKind, message: string);
  readonly kind: FetchErrorKind;
}

export interface ResponseOptions {
  /** 200 to 599; 200 unless it is given. */
  status?: number;
  contentType?: string;
  /** The client gets only some of them: see `response.headers` in `wit/types.wit`. */
  headers?: Record<string, string | number>;
}

/**
 * A list of objects in an answer, one for each element of its columns, as
 * `PluginResponse.json({ items: new Records({ id: ids, score: scores }) })`. Columns are tensors or
 * arrays of one dimension and the same length, by the objects' keys. The host writes them.
 */
export class Records {
  constructor(columns: Record<string, Tensor | NdArray>);
}

/**
 * The answer to the client. It is not the DOM's `Response`: its body is ready, and the host decides
 * which headers the client gets.
 */
export class PluginResponse {
  /** A body of `contentType`, `application/octet-stream` unless it is given. */
  constructor(body?: Uint8Array | string, options?: ResponseOptions);
  /**
   * `value` as JSON. A bigint is written as an integer, and a typed array as an array. Tensors, arrays,
   * bodies and `Records` may stand in it, and the host writes them: a tensor as lists of lists of its
   * shape, with the fewest digits that mean the same value of its dtype; a body as a text in base64;
   * `Records` as a list of objects.
   *
   * @throws {TypeError} for what JSON has no form for, as NaN in a tensor.
   */
  static json(value: unknown, options?: ResponseOptions): PluginResponse;
  static text(text: string, options?: ResponseOptions): PluginResponse;
}

/** The base class of the four failures. */
export class Failure extends Error {
  /** The HTTP status that the client gets. */
  readonly status: number;
}
/** The request cannot be understood: 400 with the message. */
export class InvalidInput extends Failure {}
/** This plugin does not take the request's media type: 415 with the message. */
export class UnsupportedMediaType extends Failure {}
/** The request is understood, but cannot be served: 422 with the message. */
export class Unprocessable extends Failure {}
/** The plugin's own fault: 500. The message goes to the server's log only. */
export class Internal extends Failure {}

export type Color = 'rgb' | 'bgr' | 'gray';
/** All but `nearest` are antialiased when shrinking. */
export type Filter = 'nearest' | 'bilinear' | 'bicubic' | 'lanczos3';
/** One value from 0 to 255, or one for each channel. */
export type Fill = number | readonly number[];
/** Left, top, right, bottom. */
export type Box = readonly [x1: number, y1: number, x2: number, y2: number];

export interface DecodeOptions {
  /** `rgb` unless it is given. */
  color?: 'rgb' | 'gray';
  /** Turn the picture as its EXIF orientation says; true unless it is given. */
  upright?: boolean;
  /** Decode also the readable part of a damaged JPEG, PNG or GIF; false unless it is given. */
  lenient?: boolean;
}

/** How pixels become numbers: `(value * scale - mean[c]) / std[c]`. */
export interface TensorOptions {
  /** `float32` unless it is given. */
  dtype?: 'float32' | 'uint8';
  /** `nchw` unless it is given. */
  layout?: 'nchw' | 'nhwc';
  /** The picture's own unless it is given. */
  color?: Color;
  /** 1/255 unless it is given; 1 for uint8. */
  scale?: number;
  /** One value for each channel, in the tensor's order. */
  mean?: readonly number[];
  /** One value for each channel, in the tensor's order. */
  std?: readonly number[];
}

/** Red, green, blue: 0 to 255. Red unless it is given. */
export type Rgb = readonly [red: number, green: number, blue: number];

/**
 * What `Pixels.draw` draws. Numbers of pixels are rounded to the nearest. `thickness` is the width of
 * lines, 1 to 64 pixels, 2 unless it is given.
 */
export type Shape =
  /** The outline of a box, within it. One that is as thick as half of a side fills the box. */
  | { readonly box: Box; readonly color?: Rgb; readonly thickness?: number }
  /** The outline of a polygon, of at most 1024 points [x, y] in the middle of the lines. */
  | {
      readonly points: readonly (readonly [x: number, y: number])[];
      readonly color?: Rgb;
      readonly thickness?: number;
    }
  /**
   * A line of at most 256 characters, whose upper left corner is `at`. Each is a square of 8 * `size`
   * pixels, 16 unless `size` is given. The font has ASCII, Latin-1 and Greek; other characters are a
   * box, and in unit tests all are.
   */
  | {
      readonly label: string;
      readonly at: readonly [x: number, y: number];
      readonly color?: Rgb;
      readonly size?: number;
    };

/** Where `letterbox` put a picture. */
export class Placement {
  private constructor();
  readonly scaleX: number;
  readonly scaleY: number;
  readonly left: number;
  readonly top: number;
  /** The picture's width before. */
  readonly width: number;
  /** The picture's height before. */
  readonly height: number;
  /** A box in the result as a box in the picture, cut at the picture's edges. */
  toOriginal(box: Box): [x1: number, y1: number, x2: number, y2: number];
}

/** A picture that the host holds, 8 bits a channel. Sizes are in pixels. */
export class Pixels {
  private constructor();
  /**
   * Decode a JPEG, PNG, WebP or BMP, or the first frame of a GIF.
   *
   * @throws {UnsupportedMediaType} for other bytes, {InvalidInput} for a damaged file and
   *   {Unprocessable} for a picture that is too large.
   */
  static decode(body: Body | Part | PluginRequest | Uint8Array, options?: DecodeOptions): Pixels;
  /**
   * `decode`, and then `resizeShorter(shorter)` or `resize(...size)`, faster. A JPEG whose sides are at
   * least four times as long as those of the result is decoded at a half, a quarter or an eighth of its
   * size. A photo then differs by about 2 of 255, and by 0.3 in the mean.
   *
   * @throws as `decode` does.
   */
  static decodeResized(
    body: Body | Part | PluginRequest | Uint8Array,
    options: ({ shorter: number } | { size: readonly [width: number, height: number] }) & {
      filter?: Filter;
      color?: DecodeOptions['color'];
      upright?: boolean;
    },
  ): Pixels;
  /** `decode`, and then `letterbox`, as fast as `decodeResized`. */
  static decodeLetterboxed(
    body: Body | Part | PluginRequest | Uint8Array,
    width: number,
    height: number,
    options?: {
      filter?: Filter;
      fill?: Fill;
      color?: DecodeOptions['color'];
      upright?: boolean;
    },
  ): { pixels: Pixels; placement: Placement };
  /** A picture from its bytes: row-major, channels interleaved; `rgb` unless `color` is given. */
  static fromBytes(width: number, height: number, bytes: Uint8Array, color?: 'rgb' | 'gray'): Pixels;
  readonly width: number;
  readonly height: number;
  readonly color: 'rgb' | 'gray';
  /** Stretched to another size; `bilinear` unless `filter` is given. */
  resize(width: number, height: number, filter?: Filter): Pixels;
  /**
   * Resized so that the shorter side has `size` pixels. The longer side is rounded down, as by
   * torchvision's `Resize`.
   */
  resizeShorter(size: number, filter?: Filter): Pixels;
  /** @throws {ImageError} if the rectangle is not within the picture. */
  crop(x: number, y: number, width: number, height: number): Pixels;
  /**
   * The rectangles [x, y, width, height], as `crop` takes them, in one call of the host: at most 1024.
   * If `size` is given, each is resized to it, with `bilinear` unless `filter` is given.
   *
   * @throws {ImageError} if a rectangle is not within the picture.
   */
  cropMany(
    boxes: readonly (readonly [x: number, y: number, width: number, height: number])[],
    size?: readonly [width: number, height: number],
    filter?: Filter,
  ): Pixels[];
  /**
   * With shapes on it, each over those before it: at most 4096. Parts outside of the picture are cut
   * off. On a gray picture a colour becomes its luma.
   *
   * @throws {ImageError} if a number of a shape is out of its range.
   */
  draw(shapes: readonly Shape[]): Pixels;
  /**
   * A file of the picture, whose bytes stay on the host until they are read. `jpeg` unless `format` is
   * given; `webp` is without loss. `quality` is that of a JPEG: 1 to 100, 85 unless it is given.
   *
   * @throws {ImageError} if the quality is out of range.
   */
  encode(format?: 'jpeg' | 'png' | 'webp', options?: { quality?: number }): Body;
  /**
   * The middle. Half a pixel is rounded to the even number, as by torchvision's `CenterCrop`.
   *
   * @throws {ImageError} if the picture is smaller.
   */
  cropCenter(width: number, height: number): Pixels;
  /** With a border. */
  pad(
    border: { left?: number; top?: number; right?: number; bottom?: number },
    fill?: Fill,
  ): Pixels;
  /** Resized to fit, in the middle of a picture of this size. */
  letterbox(
    width: number,
    height: number,
    options?: { filter?: Filter; fill?: Fill },
  ): { pixels: Pixels; placement: Placement };
  /** A tensor of one row: [1, c, h, w] or [1, h, w, c]. */
  toTensor(options?: TensorOptions): Tensor;
  /** Of each channel the smallest, the largest and the mean value. */
  statistics(): { min: number; max: number; mean: number }[];
  /** The bytes, row-major, channels interleaved. */
  data(): Uint8Array;
}

/** An argument is out of range. If the plugin does not catch it, the client gets 500. */
export class ImageError extends Error {}

/** Mean and standard deviation of ImageNet's red, green and blue, for `toTensor`. */
export const IMAGENET: { readonly mean: readonly number[]; readonly std: readonly number[] };

type LogFields = Record<string, unknown>;

/** Lines in the server's log. Values that are objects are written as JSON. */
export const log: {
  trace(message: unknown, fields?: LogFields): void;
  debug(message: unknown, fields?: LogFields): void;
  info(message: unknown, fields?: LogFields): void;
  warn(message: unknown, fields?: LogFields): void;
  error(message: unknown, fields?: LogFields): void;
};
