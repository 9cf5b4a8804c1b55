// The reference host's pictures: pixels in this process, with the rules of `wit/image.wit`.

import { ReferenceBlob } from './blob.js';
import { decodeFile } from './decode.js';
import { drawInto } from './draw.js';
import { encodeFile } from './encode.js';
import { refusal } from './refusal.js';
import { resample } from './resample.js';
import { ReferenceTensor } from './tensor.js';

const CHANNELS = { rgb: 3, bgr: 3, gray: 1 };
const BOXES_MAX = 1024;
const FILTERS = ['nearest', 'bilinear', 'bicubic', 'lanczos3'];

export class ReferencePixels {
  #width;
  #height;
  #color;
  #data;

  constructor(width, height, color, data) {
    this.#width = width;
    this.#height = height;
    this.#color = color;
    this.#data = data;
  }

  static decode(blob, { color }) {
    const { width, height, rgba } = decodeFile(blob.read(0n, blob.len()));
    const kept = color === 'gray' ? 'gray' : 'rgb';
    return new ReferencePixels(width, height, kept, fromRgba(rgba, kept));
  }

  static decodeLeniently(blob, options) {
    return ReferencePixels.decode(blob, options);
  }

  static decodeResized(blob, options, { tag, val }, filter) {
    const pixels = ReferencePixels.decode(blob, options);
    return tag === 'shorter' ? pixels.resizeShorter(val, filter) : pixels.resize(...val, filter);
  }

  static decodeLetterboxed(blob, options, width, height, filter, fill) {
    return ReferencePixels.decode(blob, options).letterbox(width, height, filter, fill);
  }

  static fromBytes(width, height, color, data) {
    checkSize(width, height);
    if (color === 'bgr') throw refusal('invalid-argument', 'color is bgr: must be rgb or gray');
    const expected = width * height * CHANNELS[color];
    if (data.length !== expected) {
      const text = `${width}x${height} pixels of ${color} are ${expected} bytes, not ${data.length}`;
      throw refusal('invalid-argument', text);
    }
    return new ReferencePixels(width, height, color, Uint8Array.from(data));
  }

  width() {
    return this.#width;
  }

  height() {
    return this.#height;
  }

  color() {
    return this.#color;
  }

  statistics() {
    const channels = CHANNELS[this.#color];
    return Array.from({ length: channels }, (_, channel) => {
      const values = this.#data.filter((_, at) => at % channels === channel);
      const sum = values.reduce((total, value) => total + value, 0);
      const [min, max] = values.reduce(
        ([low, high], value) => [Math.min(low, value), Math.max(high, value)],
        [255, 0],
      );
      return { min, max, mean: Math.fround(sum / values.length) };
    });
  }

  data() {
    return this.#data.slice();
  }

  resize(width, height, filter) {
    checkSize(width, height);
    if (!FILTERS.includes(filter)) throw new TypeError(`"${filter}" is not one of the cases of filter`);
    const from = [this.#width, this.#height];
    const data = resample(this.#data, CHANNELS[this.#color], from, [width, height], filter);
    return new ReferencePixels(width, height, this.#color, data);
  }

  resizeShorter(size, filter) {
    const [width, height] = [this.#width, this.#height];
    const longer = Math.floor((size * Math.max(width, height)) / Math.min(width, height));
    return width <= height ? this.resize(size, longer, filter) : this.resize(longer, size, filter);
  }

  pad({ left, top, right, bottom }, fill) {
    const channels = CHANNELS[this.#color];
    if (fill.length !== 0 && fill.length !== channels) {
      throw refusal('invalid-argument', `fill has ${fill.length} values, the picture ${channels} channels`);
    }
    const width = left + this.#width + right;
    const height = top + this.#height + bottom;
    const data = new Uint8Array(width * height * channels);
    for (let i = 0; fill.length > 0 && i < data.length; i++) data[i] = fill[i % channels];
    const line = this.#width * channels;
    for (let y = 0; y < this.#height; y++) {
      const source = this.#data.subarray(y * line, (y + 1) * line);
      data.set(source, ((top + y) * width + left) * channels);
    }
    return new ReferencePixels(width, height, this.#color, data);
  }

  letterbox(width, height, filter, fill) {
    checkSize(width, height);
    const scale = Math.min(width / this.#width, height / this.#height);
    const side = (length, most) => Math.min(most, Math.max(1, Math.round(length * scale)));
    const [inWidth, inHeight] = [side(this.#width, width), side(this.#height, height)];
    const left = Math.floor((width - inWidth) / 2);
    const top = Math.floor((height - inHeight) / 2);
    const border = { left, top, right: width - inWidth - left, bottom: height - inHeight - top };
    const pixels = this.resize(inWidth, inHeight, filter).pad(border, fill);
    const placement = {
      scaleX: Math.fround(inWidth / this.#width),
      scaleY: Math.fround(inHeight / this.#height),
      left,
      top,
      width: this.#width,
      height: this.#height,
    };
    return { pixels, placement };
  }

  crop(x, y, width, height) {
    return this.#cropped([x, y, width, height], '');
  }

  /** A part; `where` is the beginning of a refusal. */
  #cropped([x, y, width, height], where) {
    if (!(width >= 1 && height >= 1) || x + width > this.#width || y + height > this.#height) {
      const text = `${where}crop ${width}x${height} at (${x}, ${y}): the picture is ${this.#width}x${this.#height}`;
      throw refusal('invalid-argument', text);
    }
    const channels = CHANNELS[this.#color];
    const data = new Uint8Array(width * height * channels);
    for (let row = 0; row < height; row++) {
      const start = ((y + row) * this.#width + x) * channels;
      data.set(this.#data.subarray(start, start + width * channels), row * width * channels);
    }
    return new ReferencePixels(width, height, this.#color, data);
  }

  cropMany(boxes, size, filter) {
    if (boxes.length > BOXES_MAX) {
      throw refusal('invalid-argument', `${boxes.length} boxes are given; the limit is ${BOXES_MAX}`);
    }
    return boxes.map(({ x, y, width, height }, index) => {
      const part = this.#cropped([x, y, width, height], `boxes[${index}]: `);
      return size === undefined ? part : part.resize(size[0], size[1], filter);
    });
  }

  draw(shapes) {
    const data = this.#data.slice();
    const pixelOf = (color) => (this.#color === 'gray' ? [luma(...color)] : color);
    drawInto(data, [this.#width, this.#height], shapes, pixelOf);
    return new ReferencePixels(this.#width, this.#height, this.#color, data);
  }

  encode(format) {
    if (format.tag === 'jpeg' && !(format.val >= 1 && format.val <= 100)) {
      throw refusal('invalid-argument', `the quality of a JPEG is 1 to 100, not ${format.val}`);
    }
    const rgba = toRgba(this.#data, this.#color);
    return new ReferenceBlob(encodeFile({ width: this.#width, height: this.#height, rgba }, format));
  }

  centerCrop(width, height) {
    const start = (own, part) => {
      const half = Math.floor(Math.max(own - part, 0) / 2);
      return half + ((own - part) & half & 1);
    };
    return this.crop(start(this.#width, width), start(this.#height, height), width, height);
  }

  toTensor({ dtype, layout, color, scale, mean, std }) {
    const channels = CHANNELS[color];
    if (this.#color === 'gray' && channels === 3) {
      throw refusal('invalid-argument', 'a gray picture cannot become a coloured tensor');
    }
    if (dtype !== 'float32' && dtype !== 'uint8') {
      throw refusal('invalid-argument', `dtype is ${dtype}: must be float32 or uint8`);
    }
    for (const [name, list] of [['mean', mean], ['std', std]]) {
      if (list.length !== 0 && list.length !== channels) {
        throw refusal('invalid-argument', `${name} has ${list.length} values, not ${channels}`);
      }
    }
    const identity = scale === 1 && mean.every((m) => m === 0) && std.every((s) => s === 1);
    if (dtype === 'uint8' && !identity) {
      throw refusal('invalid-argument', 'uint8 needs scale 1, mean 0 and std 1');
    }
    const own = this.#channels(color);
    const area = this.#width * this.#height;
    const values = new (dtype === 'uint8' ? Uint8Array : Float32Array)(area * channels);
    for (let i = 0; i < area; i++) {
      for (let c = 0; c < channels; c++) {
        const value = (own[i * channels + c] * scale - (mean[c] ?? 0)) / (std[c] ?? 1);
        values[layout === 'nchw' ? c * area + i : i * channels + c] = value;
      }
    }
    const [h, w] = [this.#height, this.#width];
    const shape = layout === 'nchw' ? [1, channels, h, w] : [1, h, w, channels];
    return ReferenceTensor.create(dtype, shape, values);
  }

  [Symbol.dispose ?? Symbol.for('dispose')]() {}

  /** The bytes with the channels of `color`. */
  #channels(color) {
    if (color === this.#color) return this.#data;
    const result = new Uint8Array(this.#width * this.#height * CHANNELS[color]);
    for (let i = 0; i < this.#width * this.#height; i++) {
      const [r, g, b] = this.#data.subarray(i * 3, i * 3 + 3);
      if (color === 'gray') result[i] = luma(r, g, b);
      else result.set([b, g, r], i * 3);
    }
    return result;
  }
}

function fromRgba(rgba, color) {
  const count = rgba.length / 4;
  const data = new Uint8Array(count * CHANNELS[color]);
  for (let i = 0; i < count; i++) {
    const [r, g, b] = [0, 1, 2].map((c) => rgba[i * 4 + c]);
    if (color === 'gray') data[i] = luma(r, g, b);
    else data.set([r, g, b], i * 3);
  }
  return data;
}

function toRgba(data, color) {
  const channels = CHANNELS[color];
  const count = data.length / channels;
  const rgba = new Uint8Array(count * 4).fill(255);
  for (let i = 0; i < count; i++) {
    for (let c = 0; c < 3; c++) rgba[i * 4 + c] = data[i * channels + (channels === 1 ? 0 : c)];
  }
  return rgba;
}

/** ITU-R BT.601. */
function luma(r, g, b) {
  return Math.round(0.299 * r + 0.587 * g + 0.114 * b);
}

function checkSize(width, height) {
  if (!(width >= 1 && height >= 1)) {
    throw refusal('invalid-argument', `${width}x${height}: both sides must be at least 1`);
  }
}
