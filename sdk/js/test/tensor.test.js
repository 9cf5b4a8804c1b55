import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor, TensorError } from '../src/index.js';

const DTYPES = {
  bool: Uint8Array.of(0, 1, 1),
  uint8: Uint8Array.of(0, 128, 255),
  int8: Int8Array.of(-128, 0, 127),
  uint16: Uint16Array.of(0, 1, 65535),
  int16: Int16Array.of(-32768, 0, 32767),
  uint32: Uint32Array.of(0, 1, 4294967295),
  int32: Int32Array.of(-2147483648, 0, 2147483647),
  uint64: BigUint64Array.of(0n, 1n, 18446744073709551615n),
  int64: BigInt64Array.of(-9223372036854775808n, 0n, 9223372036854775807n),
  float16: Float32Array.of(-1.5, 0, 65504),
  bfloat16: Float32Array.of(-1.5, 0, 2 ** 100),
  float32: Float32Array.of(-1.5, 0, Infinity),
  float64: Float64Array.of(-1.5, 0, 1e300),
  string: ['', 'ä', 'two words'],
};

for (const [dtype, elements] of Object.entries(DTYPES)) {
  test(`${dtype}: elements there and back`, () => {
    const tensor = Tensor.from(elements, [3], dtype);
    assert.equal(tensor.dtype, dtype);
    assert.deepEqual(tensor.data(), elements);
    const again = Tensor.fromBytes(tensor.bytes(), [3], dtype);
    assert.deepEqual(again.data(), elements);
    const rows = Tensor.stack([tensor, tensor]);
    assert.deepEqual(rows.shape, [2, 3]);
    assert.deepEqual(rows.row(1), elements);
  });
}

test('plain arrays have the dtype of their values', () => {
  const dtypes = [[1.5], [true], [5n], ['a']].map((array) => Tensor.from(array).dtype);
  assert.deepEqual(dtypes, ['float32', 'bool', 'int64', 'string']);
  assert.deepEqual(Tensor.from([1, 2], [2], 'int64').data(), BigInt64Array.of(1n, 2n));
});

test('the first value of a plain array and its integers give the dtype', () => {
  const dtypes = [[1, 5n], [5n, 1], [1.5, 5n], [5n, 1.5]].map((array) => Tensor.from(array).dtype);
  assert.deepEqual(dtypes, ['float32', 'int64', 'float32', 'float32']);
  assert.throws(() => Tensor.from([1, null], [2], 'uint8'), { message: /^null is out of uint8's range/ });
  assert.deepEqual(Tensor.from([7n, 2.9], [2], 'uint8').data(), Uint8Array.of(7, 2));
});

for (const [value, dtype] of [
  [300, 'uint8'], [-1, 'uint8'], [NaN, 'int8'], [300n, 'uint8'], [2 ** 16, 'int16'], [2 ** 32, 'uint32'],
  [2n ** 64n - 1n, 'int64'], [-(2n ** 63n) - 1n, 'int64'], [-1, 'uint64'], [2n ** 64n, 'uint64'], [256, 'bool'],
]) {
  test(`a value of another range: ${value} as ${dtype}`, () => {
    const message = new RegExp(`^${value} is out of ${dtype}'s range`);
    assert.throws(() => Tensor.from([0, value], [2], dtype), { name: 'TensorError', message });
  });
}

test('typed arrays are cast to another dtype', () => {
  const tensor = Tensor.from(Float64Array.of(1.9, -7, NaN, 1e9), [4], 'uint8');
  assert.deepEqual(tensor.data(), Uint8Array.of(1, 0, 0, 255));
  assert.deepEqual(tensor.cast('bool').data(), Uint8Array.of(1, 0, 0, 1));
});

test('float16 rounds to the nearest, to even between two', () => {
  const halves = Tensor.from(Float32Array.of(1 + 2 ** -11, 1 + 3 * 2 ** -11, 65520, 2 ** -24, 2 ** -26), [5], 'float16');
  assert.deepEqual(halves.data(), Float32Array.of(1, 1 + 2 ** -9, Infinity, 2 ** -24, 0));
});

test('the largest elements', () => {
  const tensor = Tensor.from([1, 3, 2, 9, 9, 0], [2, 3]);
  assert.deepEqual(tensor.argmax(), [{ index: 1, value: 3 }, { index: 0, value: 9 }]);
  assert.deepEqual(tensor.topK(2).map(({ index }) => index), [1, 2]);
  assert.deepEqual(tensor.topK(2, 1).map(({ index }) => index), [0, 1]);
  assert.deepEqual(Tensor.from(['a']).topK(1), []);
});

test('softmax over each row', () => {
  const tensor = Tensor.from([0, 0, 1000, 0], [2, 2]).softmax();
  assert.deepEqual(tensor.data(), Float32Array.of(0.5, 0.5, 1, 0));
  assert.throws(() => Tensor.from(Int8Array.of(1)).softmax(), TensorError);
});

test('concat, stack and slice along a dimension', () => {
  const a = Tensor.from([1, 2, 3, 4], [2, 2]);
  const b = Tensor.from([5, 6], [2, 1]);
  const joined = Tensor.concat([a, b], 1);
  assert.deepEqual(joined.shape, [2, 3]);
  assert.deepEqual([...joined.data()], [1, 2, 5, 3, 4, 6]);
  assert.deepEqual([...joined.slice(1, 3, 1).data()], [2, 5, 4, 6]);
  assert.deepEqual([...joined.slice(1).data()], [3, 4, 6]);
  const stacked = Tensor.stack([a, a], 2);
  assert.deepEqual(stacked.shape, [2, 2, 2]);
  assert.deepEqual([...stacked.data()], [1, 1, 2, 2, 3, 3, 4, 4]);
});

const faults = [
  [() => Tensor.from([1, 2], [3]), 'the data is 8 bytes long, but dtype and shape need 12'],
  [() => Tensor.from([1], [-1]), 'shape [-1]: dimension 0 is -1'],
  [() => Tensor.from([1], [1], 'float'), 'unknown dtype "float"'],
  [() => Tensor.from(Uint8Array.of(2), [1], 'bool'), 'a bool is neither 0 nor 1'],
  [() => Tensor.concat([]), 'there are no tensors'],
  [() => Tensor.stack([Tensor.from([1]), Tensor.from([1, 2])]), 'shapes [1] and [2] differ'],
  [() => Tensor.from([1]).slice(0, 2), 'slice 0..2 of dimension 0, which is 1'],
  [() => Tensor.from([1]).row(1), 'there is no row 1, the tensor has 1'],
];

for (const [run, message] of faults) {
  test(`refused: ${message}`, () => assert.throws(run, { name: 'TensorError', message }));
}

test('a shape that is no list is refused', () => {
  assert.throws(() => Tensor.from([1], 'x'), { message: 'the shape is "x" and not a list such as [2, 3]' });
  assert.throws(() => Tensor.from([1], 1), { name: 'TensorError' });
});
