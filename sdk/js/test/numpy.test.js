// Without a host, operations are noted and not run: the server's tests evaluate `array-table.js`.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ArrayError, NdArray, np, PluginResponse, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';
import { names, TABLE } from './array-table.js';

const NO_HOST = /arrays are computed by the host.*gristmill plugin test/;

/** What an array notes. */
function noted(array) {
  const { op, args, params } = NdArray.node(array);
  return [op, args.map((arg) => [arg.op, ...arg.params]), params];
}

test('the expressions of the table are noted', () => {
  const known = names(np);
  assert.ok(TABLE.length > 1000);
  for (const [expression] of TABLE) {
    const run = new Function(...Object.keys(known), `return (${expression});`);
    try {
      run(...Object.values(known));
    } catch (error) {
      const isKnown = error instanceof ArrayError || NO_HOST.test(error.message) ||
        /numbers only/.test(error.message);
      assert.ok(isKnown, `${expression}: ${error.stack}`);
    }
  }
});

test('all functions have types', () => {
  const types = readFileSync(new URL('../types/index.d.ts', import.meta.url), 'utf8');
  const methods = Object.getOwnPropertyNames(NdArray.prototype);
  const own = ['0', 'constructor', 'length', 'toJSON', 'toString'];
  const all = [...Object.keys(np), ...methods].filter((name) => !own.includes(name));
  const missing = all.filter((name) => np[name] !== name && !new RegExp(`^  (readonly )?${name}\\b`, 'm').test(types));
  assert.deepEqual(missing, []);
});

test('a function is a method, too', () => {
  const a = np.array([1.5]);
  assert.deepEqual(noted(a.sum({ axis: 0, keepdims: true })), noted(np.sum(a, { axis: 0, keepdims: true })));
  assert.deepEqual(noted(a.sum()), ['sum', [['literal', 'float64', [1], [1.5]]], [null, false]]);
  assert.deepEqual(noted(a.notEqual(2)), ['not_equal', [['literal', 'float64', [1], [1.5]], ['number', 2]], []]);
});

test('numbers as a program has them', () => {
  const a = np.zeros(1);
  const number = (value) => noted(a.add(value))[1][1][1];
  assert.deepEqual([1.0, 0.5, NaN, Infinity, -Infinity, true, 2n ** 63n].map(number), [
    1, 0.5, 'nan', 'inf', '-inf', true, 2n ** 63n,
  ]);
  assert.throws(() => a.add(2n ** 64n), RangeError);
  const dtypes = [[1], [1, 2n ** 63n], [1, true], [true], [1, 0.5], [2 ** 60], []];
  assert.deepEqual(dtypes.map((list) => noted(np.array(list))[2][0]), [
    'int64', 'uint64', 'int64', 'bool', 'float64', 'float64', 'float64',
  ]);
});

test('indices', () => {
  const index = (...given) => noted(np.zeros([2, 2]).at(...given))[2][0];
  const given = [0, null, '...', ':', '1:', ' -3 : -1 ', '::-1', np.slice(1, 3), 5n, true, [0, 1]];
  assert.deepEqual(index(...given), [
    0, null, '...', [null, null, null], [1, null, null], [-3, -1, null], [null, null, -1], [1, 3, null], 5,
    'array', 'array',
  ]);
  assert.throws(() => index('x'), { name: 'ArrayError', kind: 'index' });
  assert.throws(() => index(1.5), { name: 'ArrayError', kind: 'index' });
});

const wrong = [
  [() => np.sum([1], 0), 'np.sum takes 1 argument and options { axis, keepdims }, not 2 arguments'],
  [() => np.sum([1], { axes: 0 }), 'np.sum takes 1 argument and options { axis, keepdims }, not axes'],
  [() => np.add([1], 2, 3), 'np.add takes up to 2 arguments and no options, not 3 arguments'],
  [() => np.add([1]), 'an array has numbers only: undefined is none'],
  [() => np.array(['a']), 'an array has numbers only: string is none'],
  [() => np.array([1]).astype('float'), /^"float" is not a dtype: one of bool, int8/],
  [() => np.array([[1, 2], [3]]), 'lists of different lengths: 1 after 2'],
  [() => np.array([[1], 2]), '2 stands beside lists'],
  [() => np.array(Array(300).fill(300), 'uint8'), '300 is out of bounds for uint8'],
];
for (const [run, message] of wrong) {
  test(`refused: ${message}`, () => assert.throws(run, { message }));
}

test('reading an array says that it needs the host', async () => {
  const array = np.arange(3).multiply(2);
  for (const read of [
    () => array.shape, () => array.toArray(), () => array.item(), () => array.data(), () => [...array],
    () => array + 1, () => PluginResponse.json({ array }),
  ]) {
    assert.throws(read, { message: NO_HOST });
  }
  const preprocess = () => ({ inputs: { x: array } });
  await assert.rejects(new TestHost().preprocess({ preprocess }), { name: 'Internal', message: NO_HOST });
});

test('an array of a tensor gives it back', async () => {
  const preprocess = () => ({ inputs: { x: np.asarray(Tensor.from([1.5, 2])) } });
  const { inputs } = await new TestHost().preprocess({ preprocess });
  assert.deepEqual([...inputs.x.data()], [1.5, 2]);
  const own = np.asarray(Tensor.from([1, 2, 3, 4], [2, 2], 'int64'));
  assert.deepEqual([own.dtype, own.shape, own.ndim, own.size], ['int64', [2, 2], 2, 4]);
  assert.deepEqual(own.toArray(), [[1, 2], [3, 4]]);
  const large = np.asarray(Tensor.from([2n ** 60n]));
  assert.deepEqual([large.item(), large > 1, `${large}`], [2n ** 60n, true, 'NdArray(int64, [1])']);
  assert.deepEqual(np.asarray(Float32Array.of(0.5)).data(), Float32Array.of(0.5));
  const answer = PluginResponse.json({ own });
  assert.equal(new TextDecoder().decode(answer.body), '{"own":[[1,2],[3,4]]}');
});

test('an array of an earlier call stands on a tensor that is gone', async () => {
  let kept;
  const first = () => {
    kept ??= np.asarray(Tensor.from([1]));
    return { inputs: { x: kept } };
  };
  const host = new TestHost();
  await host.preprocess({ preprocess: first });
  await assert.rejects(host.preprocess({ preprocess: first }), { message: /the array is of an earlier call/ });
});

test('an index or a length as of a list is refused, not undefined', () => {
  const array = np.array([1, 2]);
  assert.throws(() => array[0], { name: 'ArrayError', message: /a\.at\(0\)/ });
  assert.throws(() => array.length, { name: 'ArrayError', message: /a\.shape\[0\]/ });
  const tensor = Tensor.from([1, 2]);
  assert.throws(() => tensor[0], { name: 'TensorError', message: /tensor\.data\(\)\[0\]/ });
  assert.throws(() => tensor.length, { name: 'TensorError', message: /tensor\.shape\[0\]/ });
});
