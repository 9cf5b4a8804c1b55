import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body } from 'gristmill-plugin';
import { samplesOf } from '../audio.js';

const text = (value) => [...new TextEncoder().encode(value)];
const u16 = (value) => [value & 255, value >> 8];
const u32 = (value) => [...u16(value & 65535), ...u16(value >>> 16)];
const chunk = (name, bytes, size = bytes.length) => [...text(name), ...u32(size), ...bytes];
const format = ({ format = 1, channels = 1, rate = 16000, bits = 16 } = {}) =>
  chunk('fmt ', [...u16(format), ...u16(channels), ...u32(rate), ...u32(2 * rate), ...u16(2), ...u16(bits)]);
const wav = (...chunks) =>
  Body.fromBytes(Uint8Array.from([...text('RIFF'), ...u32(0), ...text('WAVE'), ...chunks.flat()]));
const bytes = (...values) => Body.fromBytes(Uint8Array.from(values));
const read = (body, type) => [...samplesOf(body, type).bytes()];

test('a WAV file, whatever its type is called, and what else it has', () => {
  assert.deepEqual(read(wav(format(), chunk('data', [1, 2, 3, 4])), undefined), [1, 2, 3, 4]);
  const list = chunk('LIST', [9, 9, 9]);
  assert.deepEqual(read(wav(list, [0], format(), list, [0], chunk('data', [1, 2]), list), 'audio/wav'), [1, 2]);
  assert.deepEqual(read(wav(format(), chunk('data', [1, 2], 0xffff_ffff)), 'audio/wav'), [1, 2]);
});

test('samples alone', () => {
  for (const type of ['audio/pcm', 'application/octet-stream']) {
    assert.deepEqual(read(bytes(1, 2), type), [1, 2]);
  }
  assert.deepEqual(read(bytes(), 'audio/pcm'), []);
});

const refused = [
  ['another media type', bytes(1, 2), 'audio/mpeg', 415, /not a WAV file: .*audio\/pcm/],
  ['no media type', bytes(1, 2), undefined, 415, /not a WAV file/],
  ['half a sample', bytes(1), 'audio/pcm', 400, /has 1 bytes, but a sample has 2/],
  ['another rate', wav(format({ rate: 44100, channels: 2 }), chunk('data', [])), 'audio/wav', 422,
    /has channels 2, Hz 44100, not channels 1, Hz 16000/],
  ['floats', wav(format({ format: 3, bits: 32 }), chunk('data', [])), 'audio/wav', 422, /has format 3, bits 32/],
  ['no samples', wav(format()), 'audio/wav', 400, /malformed WAV file/],
  ['no format', wav(chunk('data', [1, 2])), 'audio/wav', 400, /malformed WAV file/],
  ['a format that is cut off', wav([...text('fmt '), ...u32(16), 1]), 'audio/wav', 400, /malformed/],
  ['a head that is too long', wav(chunk('LIST', Array(5000).fill(0)), format(), chunk('data', [])),
    'audio/wav', 400, /first 4096 bytes/],
];
for (const [what, body, type, status, message] of refused) {
  test(`refused: ${what}`, () => assert.throws(() => samplesOf(body, type), { status, message }));
}
