import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PluginResponse, Records, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

/** The body of the answer that `value` makes. */
async function body(value) {
  const answer = await new TestHost().handle({ handle: () => PluginResponse.json(value()) });
  return answer.text();
}

test('columns are a list of objects', async () => {
  const items = () => ({
    items: new Records({
      'product-id': Tensor.from([2n ** 53n + 1n, -7n]),
      score: Tensor.from(Float32Array.of(0.2, -4)),
      name: Tensor.from(['a"', 'ü']),
    }),
  });
  const objects = '{"product-id":9007199254740993,"score":0.2,"name":"a\\""},'
    + '{"product-id":-7,"score":-4,"name":"ü"}';
  assert.equal(await body(items), `{"items":[${objects}]}`);
});

test('columns that do not fit are refused', async () => {
  const ids = () => Tensor.from([1n, 2n]);
  const refused = (columns, message) => assert.rejects(body(() => new Records(columns())), { message });
  await refused(() => ({}), /has no column/);
  await refused(() => ({ id: ids(), x: Tensor.from([1n]) }), /has 1 elements, but "id" has 2/);
  await refused(() => ({ id: [1, 2] }), /neither a Tensor nor an NdArray/);
});
