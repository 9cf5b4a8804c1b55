import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PluginResponse, Tensor } from '../src/index.js';
import { parse, stringify } from '../src/json.js';
import { TestHost } from '../src/testing.js';

const text = (response) => new TextDecoder().decode(response.body);

test('integers keep their digits in both directions', () => {
  for (const source of [
    '9007199254740993', '-9007199254740993', '18446744073709551615', '12345678901234567890',
    '{"id":9223372036854775807,"n":[1,-2,9007199254740991]}', '["9007199254740993",9007199254740993]',
  ]) {
    assert.equal(stringify(parse(source)), source);
  }
  assert.deepEqual(parse('[9007199254740993, 1, "a"]'), [9007199254740993n, 1, 'a']);
});

test('other numbers are numbers', () => {
  const source = '[0.12345678901234567, 1e300, 123456789012345678.5, 12345678901234567e2, 9007199254740991, -0]';
  for (const value of parse(source)) assert.equal(typeof value, 'number');
  assert.equal(parse('"9007199254740993"'), '9007199254740993');
});

test('texts that look like long integers stay texts', () => {
  const source = '{"a":"[9007199254740993,","b":"\\"9007199254740993","c":9007199254740993}';
  assert.equal(stringify(parse(source)), source);
});

test('an integer without end, and a broken text', () => {
  assert.throws(() => parse('9'.repeat(1001)), { name: 'RangeError', message: /1001 digits/ });
  assert.throws(() => parse('[9007199254740993'), { name: 'SyntaxError' });
});

test('a label of int64 is answered', () => {
  const labels = Tensor.from([9007199254740993n, -1n]).data();
  assert.equal(text(PluginResponse.json({ label: labels[0] })), '{"label":9007199254740993}');
  assert.equal(text(PluginResponse.json([...labels])), '[9007199254740993,-1]');
  assert.equal(text(PluginResponse.json(labels)), '[9007199254740993,-1]');
  assert.equal(text(PluginResponse.json(new Float32Array([0.5]))), '[0.5]');
});

test('ids of a request reach the response and the state', async () => {
  const plugin = {
    preprocess: (context, request) => ({ inputs: { x: Tensor.from([1]) }, state: request.json() }),
    postprocess: (context, outputs, state) => PluginResponse.json(state.json()),
  };
  const host = new TestHost();
  const body = '{"ids":[9007199254740993,18446744073709551615]}';
  const { inputs, state } = await host.preprocess(plugin, { body });
  assert.equal((await host.postprocess(plugin, inputs, state)).text(), body);
});

test('tensors take large integers of a request', () => {
  assert.deepEqual(Tensor.from(parse('[1, 9007199254740993]'), undefined, 'int64').data(),
    BigInt64Array.of(1n, 9007199254740993n));
  assert.equal(Tensor.from(parse('[9007199254740993, 1.5]')).dtype, 'float32');
  const tensor = Tensor.from(parse('[9007199254740993, 1]'));
  assert.deepEqual(tensor.data(), BigInt64Array.of(9007199254740993n, 1n));
  const large = parse('[1, 18446744073709551615]');
  const message = "18446744073709551615 is out of int64's range: name the dtype 'uint64' or 'float64'";
  assert.throws(() => Tensor.from(large, [2], 'int64'), { name: 'TensorError', message });
  assert.deepEqual(Tensor.from(large, [2], 'uint64').data(), BigUint64Array.of(1n, 2n ** 64n - 1n));
  assert.deepEqual(Tensor.from(large, [2], 'float64').data(), Float64Array.of(1, 2 ** 64));
});
