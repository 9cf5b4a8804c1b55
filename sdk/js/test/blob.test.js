import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, InvalidInput, Tensor, TensorError } from '../src/index.js';

test('bodies are cut, and made of bytes and base64', () => {
  const body = Body.fromBytes(new TextEncoder().encode('0123456789'));
  assert.equal(body.slice(2, 3).text(), '234');
  assert.equal(body.slice(8).text(), '89');
  assert.equal(body.slice(99).size, 0);
  const tensor = Tensor.fromBytes(body.slice(0, 4), [2, 2], 'uint8');
  assert.deepEqual([[...tensor.data()], tensor.shape], [[48, 49, 50, 51], [2, 2]]);
  assert.throws(() => Tensor.fromBytes(body, [2, 2], 'float32'), TensorError);
  for (const base64 of ['TWFu', ' TW\r\nFu', 'data:image/png;base64,TWFu', 'DATA:;BASE64,TWFu']) {
    assert.equal(Body.fromBase64(base64).text(), 'Man');
  }
  assert.equal(Body.fromBase64('TQ').text(), 'M');
  assert.deepEqual(Body.fromBase64('_-__').bytes(), Body.fromBase64('/+//').bytes());
});

test('other texts are the fault of the client', () => {
  for (const [base64, message] of [
    ['TWF%', "base64 has '%' at position 3"],
    ['TQ==T', "base64 has 'T' at position 4 after its end"],
    ['T===', "base64 has '=' at position 1"],
    ['TWFuT', 'base64 ends within a group of four characters'],
    ['data:image/png,abc', 'a data URL whose data are not in base64: it has no ";base64"'],
    ['data:image/png;base64', 'a data URL without a comma'],
    [undefined, 'base64 is a text, not undefined'],
    [[1], 'base64 is a text, not array'],
  ]) {
    assert.throws(() => Body.fromBase64(base64), (error) => error instanceof InvalidInput && error.message === message);
  }
});
