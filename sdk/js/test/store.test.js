import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Internal, PluginResponse, store, StoreError, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const row = (...values) => new Uint8Array(Float32Array.from(values).buffer);

/** What `ask` returns within a call of this host. */
async function within(host, ask) {
  let got;
  const handle = () => {
    got = ask();
    return PluginResponse.json(null);
  };
  await host.handle({ handle });
  return got;
}

test('values are read, set and counted', async () => {
  const host = new TestHost().store('sessions', { a: 'one', empty: '' });
  const texts = await within(host, () => {
    store.set('sessions', 'b', 'zwei', { ttlMs: 1000 });
    store.set('sessions', 'c', Uint8Array.of(255));
    const many = store.getMany('sessions', ['b', 'none', 'empty']);
    return [new TextDecoder().decode(store.get('sessions', 'a')), many.map((body) => body?.text())];
  });
  assert.deepEqual(texts, ['one', ['zwei', undefined, '']]);
  const counted = () => [store.get('sessions', 'c'), store.get('sessions', 'x'), store.increment('sessions', 'n')];
  assert.deepEqual(await within(host, counted), [Uint8Array.of(255), undefined, 1]);
  assert.equal(await within(host, () => store.increment('sessions', 'n', -3)), -2);
});

test('rows are gathered into a tensor', async () => {
  const host = new TestHost().store('features', { a: row(1, 2.5), b: row(3, 4), empty: [] });
  const tensor = await within(host, () => {
    const rows = store.gather('features', ['b', 'none', 'a', 'empty'], 2, -1);
    return [rows.dtype, rows.shape, Array.from(rows.data())];
  });
  assert.deepEqual(tensor, ['float32', [4, 2], [3, 4, -1, -1, 1, 2.5, -1, -1]]);
});

test('rows are gathered by the elements of a tensor', async () => {
  const host = new TestHost().store('features', { 'item:7': row(1, 2), 'item:-8': row(3, 4) });
  const gathered = (keys) =>
    within(host, () => Array.from(store.gather('features', keys(), 2, -1, { prefix: 'item:' }).data()));
  assert.deepEqual(await gathered(() => Tensor.from([-8n, 9n, 7n])), [3, 4, -1, -1, 1, 2]);
  assert.deepEqual(await gathered(() => ['7']), [1, 2]);
  await assert.rejects(gathered(() => Tensor.from([1.5])), { message: /int64 or strings of one dimension/ });
});

test('an error of a store has a kind, and is internal if nothing catches it', async () => {
  const host = new TestHost().store('features', { word: 'word' });
  for (const [ask, kind, message] of [
    [() => store.get('other', 'k'), 'not-granted', /host\.store\("other", values\)/],
    [() => store.get('features', ''), 'invalid-argument', /a key is empty/],
    [() => store.gather('features', ['word'], 2), 'invalid-argument', /has 4 bytes, but 2 float32 have 8/],
    [() => store.gather('features', [], 0), 'invalid-argument', /width is 0/],
    [() => store.increment('features', 'word'), 'invalid-argument', /not an integer/],
  ]) {
    const caught = await within(host, () => {
      try {
        return ask();
      } catch (error) {
        return error;
      }
    });
    assert.ok(caught instanceof StoreError && caught instanceof Internal, String(caught));
    assert.equal(caught.kind, kind);
    assert.match(caught.message, message);
    await assert.rejects(within(host, ask), { message });
  }
  assert.throws(() => new StoreError('gone', 'x'), /the kinds of StoreError are/);
});

test('arguments of another type are named', async () => {
  const host = new TestHost().store('s');
  for (const [ask, message] of [
    [() => store.get(1, 'k'), /bucket is not a string/],
    [() => store.getMany('s', 'k'), /keys is not an array/],
    [() => store.getMany('s', [1]), /a key is not a string/],
    [() => store.gather('s', ['k'], 1.5), /width is 1.5, not a whole number/],
    [() => store.set('s', 'k', 7), /value is neither a string nor a Uint8Array/],
    [() => store.set('s', 'k', '', { ttlMs: 0 }), /ttlMs is not a whole number/],
    [() => store.increment('s', 'k', 0.5), /delta is not a whole number/],
  ]) {
    await assert.rejects(within(host, ask), { message });
  }
});
