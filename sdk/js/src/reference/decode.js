// Decoding for unit tests, by optional packages of npm: `pngjs` for PNG, `jpeg-js` for JPEG.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { refusal } from './refusal.js';

const FORMATS = [
  { name: 'PNG', module: 'pngjs', magic: [0x89, 0x50, 0x4e, 0x47], decode: decodePng },
  { name: 'JPEG', module: 'jpeg-js', magic: [0xff, 0xd8, 0xff], decode: decodeJpeg },
];

/** The pixels of a picture's file, as bytes of red, green, blue and alpha. */
export function decodeFile(bytes) {
  const begins = (magic) => magic.every((byte, index) => bytes[index] === byte);
  const format = FORMATS.find(({ magic }) => begins(magic));
  if (format === undefined) throw refusal('unknown-format');
  const library = load(format);
  try {
    return format.decode(library, Buffer.from(bytes));
  } catch (error) {
    throw refusal('malformed', error.message);
  }
}

/** The author's project has the package, or the SDK's own folder does. */
export function load({ name, module }) {
  for (const place of [join(process.cwd(), 'package.json'), import.meta.url]) {
    try {
      return createRequire(place)(module);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
    }
  }
  throw new Error(
    `a ${name} in a unit test needs the package ${module}: npm install --save-dev ${module}`,
  );
}

function decodePng({ PNG }, bytes) {
  const { width, height, data } = PNG.sync.read(bytes);
  return { width, height, rgba: data };
}

function decodeJpeg({ decode }, bytes) {
  const { width, height, data } = decode(bytes, { formatAsRGBA: true, tolerantDecoding: false });
  return { width, height, rgba: data };
}
