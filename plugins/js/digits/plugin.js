// A photo of a handwritten digit in, its label out. The photo is the body, the first part of a form,
// or base64 or a data URL in JSON: `{"image": ".."}`.
//
// The model takes 28x28 values from 0 to 1, with bright ink on black (models/digits/README.md).

import { Pixels, PluginResponse } from 'gristmill-plugin';

const SIZE = 28;
const DIGITS = 10;

/** @type {import('gristmill-plugin').Preprocess} */
export function preprocess(context, request) {
  const photo = Pixels.decode(photoOf(request), { color: 'gray' });
  const small = photo.resize(SIZE, SIZE);
  return { inputs: { input: small.toTensor(toInk(small.statistics()[0])) } };
}

/** The file of the photo. */
function photoOf(request) {
  if (request.contentType === 'application/json') return request.jsonBody('/image');
  return request.parts[0]?.body ?? request.body;
}

/** @type {import('gristmill-plugin').Postprocess} */
export function postprocess(context, outputs) {
  const logits = outputs.get('output', [1, DIGITS], 'float32');
  const top = logits.softmax().topK(3).map(({ index, value }) => ({ label: index, probability: value }));
  return PluginResponse.json({ ...top[0], top });
}

/**
 * How the host makes ink of luma with these statistics: bright on black, stretched to 0 to 1. A
 * bright picture shows dark ink on paper and is inverted: its brightest value becomes 0, and it is
 * divided by -range.
 */
function toInk({ min, max, mean }) {
  const darkest = min / 255;
  const brightest = max / 255;
  const range = brightest - darkest;
  const inverted = mean > 127.5;
  if (range === 0) return inverted ? { mean: [1], std: [-1] } : {};
  return inverted ? { mean: [brightest], std: [-range] } : { mean: [darkest], std: [range] };
}
