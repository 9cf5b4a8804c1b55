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
  [{ json: { items: [item('a'), item('b', 1, 31)] } }, 'items[1].features has 31 numbers, not 32'],
  [{ json: { items: [{ id: 'a' }] } }, 'invalid JSON: missing field `features`'],
  [{ json: {} }, 'invalid JSON: missing field `items`'],
  [{ json: { items: [item(5)] } }, 'invalid JSON: items[0].id is not a string'],
  [{ json: { items: [item('a', 'x')] } }, 'invalid JSON: items[0].features[0] is not a number'],
  [{ body: '{"items":' }, /^invalid JSON: /],
  [{ body: new Uint8Array([0xff]) }, 'the body is not UTF-8'],
];

for (const [request, message] of refusals) {
  test(`refused: ${message}`, async () => {
    await assert.rejects(host.preprocess(plugin, request), { status: 400, message });
  });
}
