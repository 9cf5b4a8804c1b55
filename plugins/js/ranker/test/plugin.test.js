import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from 'gristmill-plugin';
import { TestHost } from 'gristmill-plugin/testing';
import * as plugin from '../plugin.js';

const host = new TestHost();
const item = (id, value = 0.5, length = 32) => ({ id, features: new Array(length).fill(value) });

test('features become rows, ids the state', async () => {
  const json = { items: [item('a', 0.25), item('b', -1)] };
  const { inputs, state } = await host.preprocess(plugin, { json });
  assert.deepEqual(inputs.input.shape, [2, 32]);
  assert.equal(inputs.input.dtype, 'float32');
  assert.deepEqual([...inputs.input.row(1)], new Array(32).fill(-1));
  assert.deepEqual(state.json(), ['a', 'b']);
});

test('items are ordered by score, the best first', async () => {
  const scores = Tensor.from([0.5, 2, -1], [3, 1]);
  const answer = await host.postprocess(plugin, { output: scores }, '["a","b","c"]');
  assert.deepEqual(answer.json(), {
    items: [{ id: 'b', score: 2 }, { id: 'a', score: 0.5 }, { id: 'c', score: -1 }],
  });
});

const refusals = [
  [{ json: { items: [] } }, 'items is empty: at least one is needed'],
  [{ json: { items: [item('a', 1, 31)] } }, 'items[0].features has 31 numbers, not 32'],
  [
    { json: { items: [item('a'), item('b', 1, 31)] } },
    'invalid JSON: /items/1/features has 31 values, not 32 as in the objects before it',
  ],
  [{ json: { items: [{ id: 'a' }] } }, 'invalid JSON: /items/0/features is missing'],
  [{ json: {} }, 'invalid JSON: /items is missing'],
  [{ json: { items: [item(5)] } }, 'invalid JSON: /items/0/id is a number, not a text'],
  [{ json: { items: [item('a', 'x')] } }, 'invalid JSON: /items/0/features/0 is a text, not a number'],
  [{ body: '{"items":' }, /^invalid JSON: /],
  [{ body: new Uint8Array([0xff]) }, /^invalid JSON: /],
];

for (const [request, message] of refusals) {
  test(`refused: ${message}`, async () => {
    await assert.rejects(host.preprocess(plugin, request), { status: 400, message });
  });
}
