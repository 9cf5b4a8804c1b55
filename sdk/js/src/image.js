// Pictures, decoded and worked on by the host at native speed.

import * as host from '#host';
import { Body } from './body.js';
import { InvalidInput, Unprocessable, UnsupportedMediaType } from './failure.js';
import { ours } from './realm.js';
import { hold } from './resources.js';
import { wrap } from './tensor.js';

/**
 * An argument of an operation on a picture is out of range. It is the plugin's fault: if it is not
 * caught, the client gets 500.
 */
export class ImageError extends Error {}
Object.defineProperty(ImageError.prototype, 'name', { value: 'ImageError' });

/** Mean and standard deviation of ImageNet's red, green and blue, for `toTensor`. */
export const IMAGENET = Object.freeze({
  mean: Object.freeze([0.485, 0.456, 0.406]),
  std: Object.freeze([0.229, 0.224, 0.225]),
});

const NONE = new Float32Array(0);

/** Where `letterbox` put a picture. */
export class Placement {
  constructor({ scaleX, scaleY, left, top, width, height }) {
    this.scaleX = scaleX;
    this.scaleY = scaleY;
    this.left = left;
    this.top = top;
    this.width = width;
    this.height = height;
  }

  toOriginal([x1, y1, x2, y2]) {
    const x = (value) => within((value - this.left) / this.scaleX, this.width);
    const y = (value) => within((value - this.top) / this.scaleY, this.height);
    return [x(x1), y(y1), x(x2), y(y2)];
  }
}

function within(value, largest) {
  return Math.min(Math.max(value, 0), largest);
}

/** A picture that the host holds, 8 bits a channel. */
export class Pixels {
  #raw;
  #color;

  /** Not for plugins: use `Pixels.decode` or `Pixels.fromBytes`. */
  constructor(raw, color) {
    this.#raw = hold(raw);
    this.#color = color;
  }

  static decode(body, { color = 'rgb', upright = true, lenient = false } = {}) {
    const data = Body.raw(bodyOf(body));
    const options = { color, upright };
    return made(color === 'bgr' ? 'rgb' : color, () =>
      lenient ? host.Pixels.decodeLeniently(data, options) : host.Pixels.decode(data, options),
    );
  }

  static decodeResized(body, options = {}) {
    const { shorter, size, filter = 'bilinear', color = 'rgb', upright = true } = options;
    if ((shorter === undefined) === (size === undefined)) {
      throw new TypeError('decodeResized takes `shorter` or `size`: one of the two');
    }
    const target =
      size === undefined ? { tag: 'shorter', val: shorter } : { tag: 'exact', val: [size[0], size[1]] };
    const data = Body.raw(bodyOf(body));
    return made(color === 'bgr' ? 'rgb' : color, () =>
      host.Pixels.decodeResized(data, { color, upright }, target, filter),
    );
  }

  static decodeLetterboxed(body, width, height, options = {}) {
    const { filter = 'bilinear', fill = 0, color = 'rgb', upright = true } = options;
    const data = Body.raw(bodyOf(body));
    const held = color === 'bgr' ? 'rgb' : color;
    return letterboxed(held, () => {
      const decode = { color, upright };
      return host.Pixels.decodeLetterboxed(data, decode, width, height, filter, fillOf(held, fill));
    });
  }

  static fromBytes(width, height, bytes, color = 'rgb') {
    return made(color, () => host.Pixels.fromBytes(width, height, color, bytes));
  }

  get width() {
    return this.#raw.width();
  }

  get height() {
    return this.#raw.height();
  }

  get color() {
    return this.#color;
  }

  resize(width, height, filter = 'bilinear') {
    return made(this.#color, () => this.#raw.resize(width, height, filter));
  }

  resizeShorter(size, filter = 'bilinear') {
    return made(this.#color, () => this.#raw.resizeShorter(size, filter));
  }

  crop(x, y, width, height) {
    return made(this.#color, () => this.#raw.crop(x, y, width, height));
  }

  cropMany(boxes, size = undefined, filter = 'bilinear') {
    const parts = boxes.map(([x, y, width, height]) => ({ x, y, width, height }));
    try {
      return this.#raw.cropMany(parts, size, filter).map((raw) => new Pixels(raw, this.#color));
    } catch (error) {
      throw describe(error);
    }
  }

  draw(shapes) {
    const drawn = shapes.map(shapeOf);
    return made(this.#color, () => this.#raw.draw(drawn));
  }

  encode(format = 'jpeg', { quality = 85 } = {}) {
    const encoding = encodingOf(format, quality);
    try {
      return new Body(this.#raw.encode(encoding));
    } catch (error) {
      throw describe(error);
    }
  }

  cropCenter(width, height) {
    return made(this.#color, () => this.#raw.centerCrop(width, height));
  }

  pad({ left = 0, top = 0, right = 0, bottom = 0 }, fill = 0) {
    const border = { left, top, right, bottom };
    return made(this.#color, () => this.#raw.pad(border, fillOf(this.#color, fill)));
  }

  letterbox(width, height, { filter = 'bilinear', fill = 0 } = {}) {
    return letterboxed(this.#color, () =>
      this.#raw.letterbox(width, height, filter, fillOf(this.#color, fill)),
    );
  }

  toTensor(options = {}) {
    const { dtype = 'float32', layout = 'nchw', color = this.#color } = options;
    const { scale = dtype === 'uint8' ? 1 : 1 / 255 } = options;
    const mean = options.mean === undefined ? NONE : floats('mean', options.mean);
    const std = options.std === undefined ? NONE : floats('std', options.std);
    try {
      return wrap(this.#raw.toTensor({ dtype, layout, color, scale, mean, std }), dtype);
    } catch (error) {
      throw describe(error);
    }
  }

  statistics() {
    return this.#raw.statistics();
  }

  data() {
    return ours(this.#raw.data());
  }

  /** Not for plugins: the host's object. */
  static raw(pixels) {
    return pixels.#raw;
  }
}

/** A request, one of its parts, a body, or bytes of the plugin. */
function bodyOf(value) {
  if (value instanceof Body) return value;
  return ArrayBuffer.isView(value) ? Body.fromBytes(value) : value.body;
}

const RED = [255, 0, 0];

/** The host's shape: one with a `box`, with `points`, or with a `label`. */
function shapeOf(shape) {
  const { color = RED, thickness = 2, size = 2 } = shape;
  if (color.length !== 3 || color.some((value) => !(value >= 0 && value <= 255))) {
    throw new RangeError(`color is ${color}: must be three values from 0 to 255`);
  }
  if (shape.box !== undefined) {
    const [x, y, right, bottom] = shape.box.map(pixel);
    const [width, height] = [Math.max(right - x, 0), Math.max(bottom - y, 0)];
    return { tag: 'rectangle', val: { x, y, width, height, thickness, color } };
  }
  if (shape.points !== undefined) {
    const points = shape.points.map(([x, y]) => [pixel(x), pixel(y)]);
    return { tag: 'polygon', val: { points, thickness, color } };
  }
  if (typeof shape.label !== 'string') throw new TypeError('a shape has a box, points or a label');
  const [x, y] = shape.at.map(pixel);
  return { tag: 'label', val: { x, y, text: shape.label, size, color } };
}

/** The nearest pixel, within the contract's integers. */
function pixel(value) {
  if (Number.isNaN(Number(value))) throw new TypeError(`${value} is not a number`);
  return Math.floor(Math.min(Math.max(value, -(2 ** 31)), 2 ** 31 - 1) + 0.5);
}

/** The host's format of a file. */
function encodingOf(format, quality) {
  switch (format) {
    case 'jpeg':
      if (!(quality >= 1 && quality <= 100)) {
        throw new ImageError(`the quality of a JPEG is 1 to 100, not ${quality}`);
      }
      return { tag: 'jpeg', val: Math.round(quality) };
    case 'png':
      return { tag: 'png' };
    case 'webp':
      return { tag: 'webp-lossless' };
    default:
      throw new TypeError(`format is ${format}: must be jpeg, png or webp`);
  }
}

/** One value for each channel. */
function fillOf(color, fill) {
  if (typeof fill !== 'number') return Uint8Array.from(fill);
  return new Uint8Array(color === 'gray' ? 1 : 3).fill(fill);
}

/** The host's list of `values`. The bindings copy a typed array in one piece. */
function floats(name, values) {
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] !== 'number') throw new TypeError(`${name}: ${values[i]} is not a number`);
  }
  return new Float32Array(values);
}

function letterboxed(color, make) {
  let placement;
  const pixels = made(color, () => {
    const result = make();
    placement = new Placement(result.placement);
    return result.pixels;
  });
  return { pixels, placement };
}

function made(color, make) {
  try {
    return new Pixels(make(), color);
  } catch (error) {
    throw describe(error);
  }
}

/** The host's image error as an exception; any other error as it is. */
function describe(error) {
  const payload = error?.payload;
  switch (payload?.tag) {
    case 'unknown-format':
      return new UnsupportedMediaType('not a JPEG, PNG, WebP, BMP or GIF');
    case 'malformed':
      return new InvalidInput(`malformed image: ${payload.val}`);
    case 'too-large':
      return new Unprocessable(payload.val);
    case 'invalid-argument':
      return new ImageError(payload.val);
    default:
      return error;
  }
}
