// The samples of a recording.

import { InvalidInput, Unprocessable, UnsupportedMediaType } from 'gristmill-plugin';

/** Samples in a second, as the model takes them. */
export const RATE = 16000;

/** The media types of samples alone. */
const RAW = ['audio/pcm', 'application/octet-stream'];

/** Where the samples of a WAV file must have begun. Most begin at byte 44. */
const HEAD_BYTES = 4096;
const PCM = 1;

/** The samples: 16 bits, little-endian, one channel, 16,000 in a second. They stay on the host. */
export function samplesOf(body, contentType) {
  const head = body.bytes(0, HEAD_BYTES);
  const samples = isWav(head) ? dataOf(body, head) : body;
  if (samples === body && !RAW.includes(contentType)) {
    throw new UnsupportedMediaType('not a WAV file: samples alone are sent as audio/pcm, 16 bits at 16000 Hz');
  }
  if (samples.size % 2 === 0) return samples;
  throw new InvalidInput(`the audio has ${samples.size} bytes, but a sample has 2`);
}

function isWav(head) {
  return textAt(head, 0) === 'RIFF' && textAt(head, 8) === 'WAVE';
}

/** The part of a WAV file that has the samples. */
function dataOf(body, head) {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  let hasFormat = false;
  for (let at = 12; at + 8 <= head.length; ) {
    const [name, start, size] = [textAt(head, at), at + 8, view.getUint32(at + 4, true)];
    if (name === 'fmt ' && start + 16 <= head.length) {
      checkFormat(view, start);
      hasFormat = true;
    }
    // A recorder that cannot go back writes a size that is too large, and means the rest.
    if (name === 'data' && hasFormat) return body.slice(start, size);
    at = start + size + (size % 2);
  }
  throw new InvalidInput(`malformed WAV file: its first ${HEAD_BYTES} bytes do not name a format and data`);
}

function checkFormat(view, start) {
  const found = {
    format: view.getUint16(start, true),
    channels: view.getUint16(start + 2, true),
    Hz: view.getUint32(start + 4, true),
    bits: view.getUint16(start + 14, true),
  };
  const wanted = { format: PCM, channels: 1, Hz: RATE, bits: 16 };
  const wrong = Object.keys(wanted).filter((key) => found[key] !== wanted[key]);
  if (wrong.length === 0) return;
  const told = (values) => wrong.map((key) => `${key} ${values[key]}`).join(', ');
  throw new Unprocessable(`the WAV file has ${told(found)}, not ${told(wanted)}: convert it`);
}

function textAt(bytes, at) {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}
