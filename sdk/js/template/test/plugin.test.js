import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Tensor } from 'gristmill-plugin';
import { TestHost } from 'gristmill-plugin/testing';
import * as plugin from '../plugin.js';

const host = new TestHost();

test('the sample becomes the input', async () => {
  const body = await readFile(new URL('../requests/values.json', import.meta.url));
  const { inputs } = await host.preprocess(plugin, { body });
  assert.deepEqual(inputs.input.shape, [1, 4]);
});

test('values must be there', async () => {
  await assert.rejects(host.preprocess(plugin, { json: {} }), { status: 400 });
});

test('the outputs become the answer', async () => {
  const answer = await host.postprocess(plugin, { output: Tensor.from([0.5, 2], [1, 2]) });
  assert.deepEqual(answer.json(), { values: [0.5, 2] });
});
