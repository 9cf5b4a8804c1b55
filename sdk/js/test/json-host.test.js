import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, Internal, InvalidInput, PluginResponse, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

/** What `read` gives of a request, which it reads in a call. */
async function reading(request, read) {
  let found;
  const preprocess = (context, own) => {
    found = read(own);
    return { inputs: {} };
  };
  await new TestHost().preprocess({ preprocess }, request);
  return found;
}

const tensor = (value, dtype, options) =>
  reading({ json: { x: value } }, (request) => {
    const found = request.jsonTensor('/x', dtype, options);
    return { shape: found.shape, data: [...found.data()] };
  });

test('lists are dimensions, objects are rows', async () => {
  assert.deepEqual(await tensor([[1, 2.5, -300], [4, 5, 6]]), {
    shape: [2, 3], data: [1, 2.5, -300, 4, 5, 6],
  });
  assert.deepEqual(await tensor(7, 'uint8'), { shape: [], data: [7] });
  assert.deepEqual(await tensor([[], []]), { shape: [2, 0], data: [] });
  assert.deepEqual(await tensor([9007199254740993n], 'int64'), { shape: [1], data: [9007199254740993n] });
  assert.deepEqual(await tensor([true, false], 'bool'), { shape: [2], data: [1, 0] });
  const items = [{ id: 'p', b: [2, 3], a: 1 }, { a: 4, b: [5, 6], id: 'q' }];
  assert.deepEqual(await tensor(items, 'float32', { keys: ['a', 'b'] }), {
    shape: [2, 3], data: [1, 2, 3, 4, 5, 6],
  });
  assert.deepEqual(await tensor(items, 'string', { keys: ['id'] }), { shape: [2, 1], data: ['p', 'q'] });
  assert.deepEqual((await tensor([], 'float32', { keys: ['a', 'b'] })).shape, [0, 2]);
});

for (const [value, dtype, keys, fault] of [
  [[[1, 2], [3, '4']], 'float32', [], '/x/1/1 is a text, not a number'],
  [[[1, 2], [3]], 'float32', [], '/x/1 has 1 values, not 2 as the lists before it'],
  [[[1, 2], 3], 'float32', [], '/x/1 is a number, not a list as the values before it'],
  [[1, [2]], 'float32', [], '/x/1 is a list, not a number'],
  [[1, null], 'float32', [], '/x/1 is null, not a number'],
  [[1], 'bool', [], '/x/0 is a number, not true or false'],
  [[256], 'uint8', [], "/x/0 is out of UINT8's range"],
  [[1.5], 'int32', [], '/x/0 is 1.5, not an integer'],
  [[1e39], 'float32', [], "/x/0 is out of FP32's range"],
  [[{ a: 1 }, { b: 2 }], 'float32', ['a'], '/x/1/a is missing'],
  [[{ a: 1 }, { a: [2, 3] }], 'float32', ['a'], '/x/1/a has 2 values, not 1 as in the objects before it'],
  [{ a: 1 }, 'float32', ['a'], '/x is an object, not a list'],
]) {
  test(`refused: ${fault}`, async () => {
    const error = new InvalidInput(`invalid JSON: ${fault}`);
    await assert.rejects(tensor(value, dtype, { keys }), error);
  });
}

test('arguments that cannot be are the fault of the plugin', async () => {
  const ask = (pointer, options) => reading({ json: [] }, (own) => own.jsonTensor(pointer, 'int8', options));
  await assert.rejects(ask('x'), new Internal('the JSON Pointer "x" does not begin with /, as /instances'));
  await assert.rejects(ask('', { keys: ['a', 'a'] }), new Internal('the key "a" is given twice'));
});

test('a value is read at a pointer', async () => {
  const json = { 'a/b': [{ '~': 0.5 }], n: null };
  const found = await reading({ json }, (request) => [
    request.json('/a~1b/0/~0'), request.json('/n', 1), request.json('/none', 0.25), request.json('').n,
  ]);
  assert.deepEqual(found, [0.5, null, 0.25, null]);
  const missing = reading({ json }, (request) => request.json('/none'));
  await assert.rejects(missing, new InvalidInput('invalid JSON: /none is missing'));
});

test('base64 in JSON is a body', async () => {
  const json = { image: 'data:image/png;base64,TWFu', n: 1 };
  assert.equal(await reading({ json }, (request) => request.jsonBody('/image').text()), 'Man');
  const refused = reading({ json }, (request) => request.jsonBody('/n'));
  await assert.rejects(refused, new InvalidInput('invalid JSON: /n is a number, not a text in base64'));
});

test('a file of a form is found by its name', async () => {
  const parts = [{ name: 'photo', body: 'data' }];
  assert.equal(await reading({ parts }, (request) => request.file('photo').text()), 'data');
  const refused = reading({ parts }, (request) => request.file('image'));
  await assert.rejects(refused, new InvalidInput("the form has no part 'image', but 'photo'"));
});

test('tensors and bodies stand in an answer', () => {
  const text = (value) => new TextDecoder().decode(PluginResponse.json(value).body);
  const scores = Tensor.from([0.1, -2, 1e-7, 3e38], [2, 2], 'float32');
  const names = Tensor.from(['a"', 'ü'], [2], 'string');
  const value = { scores, rest: ['\0', { names }], image: Body.fromBytes(new TextEncoder().encode('Man')) };
  assert.equal(
    text(value),
    '{"scores":[[0.1,-2],[1e-7,3e+38]],"rest":["\\u0000",{"names":["a\\"","ü"]}],"image":"TWFu"}',
  );
  const nan = Tensor.from([1, NaN], [1, 2], 'float32');
  assert.throws(() => text({ nan }), { name: 'TypeError', message: /shape \[1, 2\] has NaN at \[0, 1\]/ });
  assert.throws(() => JSON.stringify({ nan }), /by PluginResponse.json only/);
});
