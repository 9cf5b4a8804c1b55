// A photo of a handwritten digit in, its label out.
//
// The model takes 28x28 values from 0 to 1, with bright ink on black (models/digits/README.md).

import { Pixels, PluginResponse } from 'gristmill-plugin';

const SIZE = 28;
const DIGITS = 10;

/** @type {import('gristmill-plugin').Preprocess} */
export function preprocess(context, request) {
  const photo = Pixels.decode(request.parts[0]?.body ?? request.body, { color: 'gray' });
  const small = photo.resize(SIZE, SIZE);
  return { inputs: { input: small.toTensor(toInk(small.data())) } };
}

/** @type {import('gristmill-plugin').Postprocess} */
export function postprocess(context, outputs) {
  const logits = outputs.get('output', [1, DIGITS], 'float32');
  const top = logits.softmax().topK(3).map(({ index, value }) => ({ label: index, probability: value }));
  return PluginResponse.json({ ...top[0], top });
}

/**
 * How the host makes ink of luma: bright on black, stretched to 0 to 1. A bright picture shows dark
 * ink on paper and is inverted: its brightest value becomes 0, and it is divided by -range.
 */
function toInk(luma) {
  const darkest = Math.min.apply(null, luma) / 255;
  const brightest = Math.max.apply(null, luma) / 255;
  const range = brightest - darkest;
  const inverted = sum(luma) / luma.length > 127.5;
  if (range === 0) return inverted ? { mean: [1], std: [-1] } : {};
  return inverted ? { mean: [brightest], std: [-range] } : { mean: [darkest], std: [range] };
}

/**
 * The sum of SIZE x SIZE bytes. It adds eight bytes in each step, two to an addition: the engine
 * interprets this code, and a plain loop would take four times as long.
 */
function sum(bytes) {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
  let low = 0;
  let high = 0;
  for (let i = 0; i < words.length; i += 2) {
    const a = words[i];
    const b = words[i + 1];
    low += (a & 0xff00ff) + (b & 0xff00ff);
    high += ((a >>> 8) & 0xff00ff) + ((b >>> 8) & 0xff00ff);
  }
  return (low & 0xffff) + (low >>> 16) + (high & 0xffff) + (high >>> 16);
}
