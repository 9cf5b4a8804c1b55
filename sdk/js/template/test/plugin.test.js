import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Tensor } from 'gristmill-plugin';
import { TestHost } from 'gristmill-plugin/testing';
import * as plugin from '../plugin.js';

const host = new TestHost();

test("rows become the model's input", async () => {
  const body = await readFile(new URL('../requests/rows.json', import.meta.url));
  const { inputs } = await host.preprocess(plugin, { body });
  assert.deepEqual(inputs.input.shape, [2, 4]);
  assert.deepEqual([...inputs.input.row(1)], [5, 6, 7, 8]);
});

test('any other body is refused', async () => {
  for (const body of ['', '{}', '[]', '[[1], [2, 3]]', '[["x"]]']) {
    await assert.rejects(host.preprocess(plugin, { body }), { status: 400 });
  }
});

test('outputs become lists', async () => {
  const answer = await host.postprocess(plugin, { output: Tensor.from([0.5, 0.25], [2, 1]) });
  assert.deepEqual(answer.json(), { outputs: [[0.5], [0.25]] });
});
