import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pixels, Tensor } from 'gristmill-plugin';
import { TestHost } from 'gristmill-plugin/testing';
import * as plugin from '../plugin.js';

const SIZE = 28;

/** Runs preprocess on a picture of raw pixels: without a decoder, decode is this picture. */
async function inkOf(t, luma) {
  const picture = Pixels.fromBytes(SIZE, SIZE, luma, 'gray');
  t.mock.method(Pixels, 'decode', () => picture);
  const { inputs } = await new TestHost().preprocess(plugin, {});
  assert.deepEqual(inputs.input.shape, [1, 1, SIZE, SIZE]);
  return inputs.input.data();
}

function gradient(from, to) {
  const last = SIZE * SIZE - 1;
  return Uint8Array.from({ length: SIZE * SIZE }, (_, i) => from + ((to - from) * i) / last);
}

function close(actual, expected) {
  assert.ok(Math.abs(actual - expected) < 1e-6, `${actual} is not ${expected}`);
}

test('dark pictures are stretched to 0 to 1', async (t) => {
  const ink = await inkOf(t, gradient(10, 110));
  close(ink[0], 0);
  close(ink.at(-1), 1);
});

test('bright pictures are inverted', async (t) => {
  const ink = await inkOf(t, gradient(110, 250));
  close(ink[0], 1);
  close(ink.at(-1), 0);
});

test('a picture of mean 0.5 and less is not inverted, one above is', async (t) => {
  const half = new Uint8Array(SIZE * SIZE).fill(255, SIZE * SIZE / 2);
  close((await inkOf(t, half))[0], 0);
  half[0] = 1;
  close((await inkOf(t, half))[1], 1);
});

test('a picture of one value is not stretched', async (t) => {
  close((await inkOf(t, new Uint8Array(SIZE * SIZE).fill(51)))[0], 0.2);
  close((await inkOf(t, new Uint8Array(SIZE * SIZE).fill(204)))[0], 0.2);
});

test('the three likeliest digits, the likeliest first', async () => {
  const logits = [0, 1, 2, 3, 4, 5, 6, 9, 8, 7];
  const answer = await new TestHost().postprocess(plugin, { output: Tensor.from(logits, [1, 10]) });
  const sum = logits.reduce((total, logit) => total + Math.exp(logit - 9), 0);
  const { label, probability, top } = answer.json();
  assert.equal(label, 7);
  close(probability, 1 / sum);
  assert.deepEqual(top.map((candidate) => candidate.label), [7, 8, 9]);
  close(top[2].probability, Math.exp(-2) / sum);
});

test('outputs of another shape are an internal failure', async () => {
  const run = new TestHost().postprocess(plugin, { output: Tensor.from([1, 2], [1, 2]) });
  await assert.rejects(run, { status: 500, message: 'output "output" has shape [1, 2], wanted [1, 10]' });
});
