import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Internal, PluginResponse, TableError, tables, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const PRODUCTS = { 7: [9.5, 4], b: [2, 3] };

/** What `ask` returns within a call of a host that has the products. */
async function within(ask) {
  let got;
  const handle = () => {
    got = ask();
    return PluginResponse.json(null);
  };
  await new TestHost().table('products.csv', PRODUCTS, ['price', 'rating']).handle({ handle });
  return got;
}

const gathered = (...args) =>
  within(() => {
    const rows = tables.gather('products.csv', ...args);
    return [rows.dtype, rows.shape, Array.from(rows.data())];
  });

test('rows are gathered and missing ones filled', async () => {
  assert.deepEqual(await gathered(['b', 8, 7n], 2, -1), ['float32', [3, 2], [2, 3, -1, -1, 9.5, 4]]);
  assert.deepEqual(await gathered([], 2), ['float32', [0, 2], []]);
  const chosen = await gathered(['7', 'none'], ['rating', 'price', 'rating']);
  assert.deepEqual(chosen, ['float32', [2, 3], [4, 9.5, 4, 0, 0, 0]]);
});

test('keys can be a tensor', async () => {
  const of = (data, dtype) => within(() => {
    const keys = Tensor.from(data, [data.length], dtype);
    return Array.from(tables.gather('products.csv', keys, 2).data());
  });
  assert.deepEqual(await of([7, 8], 'int64'), [9.5, 4, 0, 0]);
  assert.deepEqual(await of(['b', '7']), [2, 3, 9.5, 4]);
});

test('an error of a table has a kind', async () => {
  for (const [ask, kind, message] of [
    [() => tables.gather('other', ['b'], 2), 'no-asset', /host\.table\("other", rows\)/],
    [() => tables.gather('products.csv', ['b'], 3), 'invalid-argument', /has 2 columns .* width is 3/],
    [() => tables.gather('products.csv', ['b'], ['stock']), 'invalid-argument', /"stock": .* price, rating/],
    [() => tables.gather('products.csv', Tensor.from([1.5]), 2), 'invalid-argument', /int64 or strings/],
  ]) {
    const caught = await within(() => {
      try {
        return ask();
      } catch (error) {
        return error;
      }
    });
    assert.ok(caught instanceof TableError && caught instanceof Internal, String(caught));
    assert.equal(caught.kind, kind);
    assert.match(caught.message, message);
    await assert.rejects(within(ask), { message });
  }
  assert.throws(() => new TableError('gone', 'x'), /the kinds of TableError are/);
});

test('arguments of another type are named', async () => {
  const gather = (...args) => within(() => tables.gather(...args));
  await assert.rejects(gather(1, ['b'], 2), { message: /asset is not a string/ });
  await assert.rejects(gather('products.csv', 'b', 2), { message: /keys is neither an array nor a Tensor/ });
  await assert.rejects(gather('products.csv', [1.5], 2), { message: /a key is 1.5, not a string/ });
  await assert.rejects(gather('products.csv', ['b'], 'price'), { message: /columns is neither a number/ });
  await assert.rejects(gather('products.csv', ['b'], 1.5), { message: /columns is 1.5, not a whole number/ });
  await assert.rejects(gather('products.csv', ['b'], [1]), { message: /a column is not a string/ });
  await assert.rejects(gather('products.csv', ['b'], 2, '0'), { message: /missing is not a number/ });
  const uneven = () => new TestHost().table('x', { a: [1, 2], b: [1] });
  assert.throws(uneven, /the row "b" has 1 numbers, not 2/);
});
