import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, Internal, PluginResponse, Tensor, Tokenizer, TokenizerError } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'good', 'bad'];
const tokenizer = new Tokenizer();

/** What `ask` returns within a call of a host that has the words. */
async function within(ask) {
  let got;
  const handle = () => {
    got = ask();
    return PluginResponse.json(null);
  };
  await new TestHost().tokenizer('tokenizer.json', WORDS).handle({ handle });
  return got;
}

const numbers = (tensor) => Array.from(tensor.data(), Number);
const ids = (...args) => within(() => numbers(tokenizer.encode(...args).ids));

test('texts become rows of one length', async () => {
  const tokens = await within(() => tokenizer.encode(['good bad', 'ugly']));
  assert.deepEqual([tokens.ids.dtype, tokens.ids.shape, tokens.lengths], ['int64', [2, 4], [4, 3]]);
  assert.deepEqual(numbers(tokens.ids), [2, 4, 5, 3, 2, 1, 3, 0]);
  assert.deepEqual(numbers(tokens.attentionMask), [1, 1, 1, 1, 1, 1, 1, 0]);
  assert.equal(tokens.offsets, undefined);
  assert.deepEqual(await ids('good', { padding: 5 }), [2, 4, 3, 0, 0]);
  assert.deepEqual(await ids('good', { padding: [16, 4, 2] }), [2, 4, 3, 0]);
  const left = { padding: 5, pad: 'left', padId: 9, dtype: 'int32' };
  assert.deepEqual(await ids('good', left), [9, 9, 2, 4, 3]);
  assert.deepEqual((await within(() => tokenizer.encode([]))).ids.shape, [0, 0]);
});

test('texts may stay on the host', async () => {
  const both = () => Tensor.from(['good', 'bad']);
  const body = () => Body.fromBytes(new TextEncoder().encode('bad'));
  assert.deepEqual(await within(() => numbers(tokenizer.encode(both()).ids)), [2, 4, 3, 2, 5, 3]);
  assert.deepEqual(await within(() => numbers(tokenizer.encode(body()).ids)), [2, 5, 3]);
});

test('pairs, truncation and offsets', async () => {
  const options = { pairs: ['bad  bad'], offsets: 'characters' };
  const pair = await within(() => tokenizer.encode('g\u{1f600}d', options));
  assert.deepEqual(numbers(pair.ids), [2, 1, 3, 5, 5, 3]);
  assert.deepEqual(numbers(pair.typeIds), [0, 0, 0, 1, 1, 1]);
  assert.deepEqual(pair.offsets.shape, [1, 6, 2]);
  assert.deepEqual(numbers(pair.offsets), [0, 0, 0, 3, 0, 0, 0, 3, 5, 8, 0, 0]);
  const bytes = await within(() => tokenizer.encode('g\u{1f600}d', { offsets: 'bytes' }));
  assert.deepEqual(numbers(bytes.offsets), [0, 0, 0, 6, 0, 0]);
  assert.deepEqual(await ids('good bad', { maxLength: 3 }), [2, 4, 3]);
  assert.deepEqual(await ids('good bad', { maxLength: 3, truncate: 'left' }), [2, 5, 3]);
  assert.deepEqual(await ids('good bad', { addSpecialTokens: false }), [4, 5]);
});

test('ids become texts', async () => {
  const rows = () => Tensor.from([4, 0, 5, 5], [2, 2], 'int64');
  assert.deepEqual(await within(() => tokenizer.decode([2, 4, 5, 3])), ['good bad']);
  assert.deepEqual(await within(() => tokenizer.decode(Int32Array.of(4))), ['good']);
  assert.deepEqual(await within(() => tokenizer.decode(rows())), ['good', 'bad bad']);
  const all = await within(() => tokenizer.decode(rows(), { skipSpecialTokens: false }));
  assert.deepEqual(all, ['good [PAD]', 'bad bad']);
  assert.deepEqual(await within(() => [tokenizer.tokenToId('bad'), tokenizer.tokenToId('ugly')]), [5, undefined]);
});

test('an error of a tokenizer has a kind', async () => {
  for (const [ask, kind, message] of [
    [() => new Tokenizer('other').encode('a'), 'no-asset', /host\.tokenizer\("other", words\)/],
    [() => tokenizer.encode('good', { padding: 2 }), 'invalid-argument', /3 tokens, .* at most 2/],
    [() => tokenizer.encode('good', { pairs: ['a', 'b'] }), 'invalid-argument', /1 texts, but 2 pairs/],
    [() => tokenizer.encode('good', { dtype: 'float32' }), 'invalid-argument', /dtype is float32/],
    [() => tokenizer.decode(Tensor.from([1.5])), 'invalid-argument', /ids is a tensor of float32/],
    [() => tokenizer.decode([-1]), 'invalid-argument', /the id -1/],
  ]) {
    const caught = await within(() => {
      try {
        return ask();
      } catch (error) {
        return error;
      }
    });
    assert.ok(caught instanceof TokenizerError && caught instanceof Internal, String(caught));
    assert.equal(caught.kind, kind);
    assert.match(caught.message, message);
  }
  assert.throws(() => new TokenizerError('gone', 'x'), /the kinds of TokenizerError are/);
});

test('arguments of another type are named', async () => {
  for (const [ask, message] of [
    [() => new Tokenizer(7), /asset is not a string/],
    [() => tokenizer.encode(7), /texts is neither a string, an array/],
    [() => tokenizer.encode(['a', 7]), /one of texts is not a string/],
    [() => tokenizer.encode('a', { padding: 'shortest' }), /padding is "shortest"/],
    [() => tokenizer.encode('a', { padding: -1 }), /padding is -1, not a whole number/],
    [() => tokenizer.encode('a', { truncate: 'up' }), /truncate is "up", not one of left, right/],
    [() => tokenizer.encode('a', { maxLength: 1.5 }), /maxLength is 1.5/],
    [() => tokenizer.decode(7), /ids is neither a Tensor nor an array/],
    [() => tokenizer.decode(null), /ids is neither a Tensor nor an array/],
    [() => tokenizer.tokenToId(7), /token is not a string/],
  ]) {
    await assert.rejects(within(ask), { message });
  }
});
