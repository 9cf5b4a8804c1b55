// Encoding for unit tests, by optional packages of npm: `pngjs` for PNG, `jpeg-js` for JPEG.

import { load } from './decode.js';

const FORMATS = {
  png: { name: 'PNG', module: 'pngjs', encode: encodePng },
  jpeg: { name: 'JPEG', module: 'jpeg-js', encode: encodeJpeg },
};

/** The file of a picture of red, green, blue and alpha. */
export function encodeFile(picture, { tag, val }) {
  const format = FORMATS[tag];
  if (format === undefined) throw new Error(`the reference host cannot encode ${tag}: use png or jpeg in unit tests`);
  return Uint8Array.from(format.encode(load(format), picture, val));
}

function encodePng({ PNG }, { width, height, rgba }) {
  const png = new PNG({ width, height });
  png.data = Buffer.from(rgba);
  return PNG.sync.write(png);
}

function encodeJpeg({ encode }, { width, height, rgba }, quality) {
  return encode({ width, height, data: Buffer.from(rgba) }, quality).data;
}
