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
   * Without `dtype` it has that of the typed array; plain arrays become float32, or string, bool
   * or int64 if they hold strings, booleans or bigints. If `dtype` is not that of the typed array,
   * the host casts.
   *
   * @throws {TensorError} if the shape needs another number of elements.
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
  /** One tensor for each of the model's inputs; all have the same number of rows. */
  inputs: Record<string, Tensor>;
  /** For `postprocess`: bytes as they are, a string as UTF-8, any other value as JSON. */
  state?: unknown;
}

/** The type of a plugin's export `preprocess`. */
export type Preprocess = (context: Context, request: PluginRequest) => Prepared | Promise<Prepared>;

/** The type of a plugin's export `postprocess`. */
export type Postprocess = (
  context: Context,
  outputs: Outputs,
  state: State,
) => PluginResponse | Promise<PluginResponse>;

export interface ResponseOptions {
  /** 200 to 599; 200 unless it is given. */
  status?: number;
  contentType?: string;
  /** The client gets only some of them: see `response.headers` in `wit/types.wit`. */
  headers?: Record<string, string | number>;
}

/**
 * The answer to the client. It is not the DOM's `Response`: its body is ready, and the host decides
 * which headers the client gets.
 */
export class PluginResponse {
  /** A body of `contentType`, `application/octet-stream` unless it is given. */
  constructor(body?: Uint8Array | string, options?: ResponseOptions);
  /**
   * `value` as JSON. A bigint is written as an integer, and a typed array as an array. Tensors and
   * bodies may stand in it, and the host writes them: a tensor as lists of lists of its shape, with
   * the fewest digits that mean the same value of its dtype; a body as a text in base64.
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
