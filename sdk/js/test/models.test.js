import assert from 'node:assert/strict';
import { test } from 'node:test';
import { InferError, InvalidInput, models, PluginResponse, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const row = (...values) => Tensor.from(values, [1, values.length]);
const doubled = ({ input }) => ({ output: row(...input.data().map((value) => 2 * value)) });
const raising = (error) => () => { throw error; };
const STATUSES = {
  'not-granted': 500, 'invalid-input': 500, overloaded: 503, unavailable: 503, failed: 500,
};

test('a handler runs models one after another', async () => {
  const host = new TestHost({ tenant: 'acme' }).model('first', doubled).model('second', doubled);
  const handle = (context, request) => {
    const first = models.infer('first', { input: request.jsonTensor() });
    const second = models.infer('second', { input: first.get('output') });
    return PluginResponse.json([context.tenant, second.get('output', [1, null])], { status: 201 });
  };
  const answer = await host.handle({ handle }, { json: [[1, 2]] });
  assert.deepEqual([answer.status, answer.json()], [201, ['acme', [[4, 8]]]]);
});

test('runs side by side give each its outcome, also later', async () => {
  const uneven = (inputs) => {
    if (inputs.input.data()[0] === 2) throw new InferError('overloaded', 'busy');
    return doubled(inputs);
  };
  const host = new TestHost().model('uneven', uneven);
  const handle = async () => {
    await undefined;
    const found = models.inferAll([1, 2, 3].map((value) => ({ model: 'uneven', inputs: { input: row(value) } })));
    return PluginResponse.json(found.map((one) => (one instanceof InferError ? one.kind : one.get('output'))));
  };
  assert.deepEqual((await host.handle({ handle })).json(), [[[2]], 'overloaded', [[6]]]);
  assert.deepEqual(models.inferAll([]), []);
});

test('a tensor can be an input of several runs', async () => {
  const host = new TestHost().model('m', ({ a, b }) => ({ b, a }));
  const handle = () => {
    const tensor = row(1);
    const run = { model: 'm', inputs: { a: tensor, b: tensor } };
    const [first] = models.inferAll([run, run]);
    return PluginResponse.json([first.names, models.infer('m', run.inputs).names, tensor]);
  };
  assert.deepEqual((await host.handle({ handle })).json(), [['b', 'a'], ['b', 'a'], [[1]]]);
});

for (const [kind, status] of Object.entries(STATUSES)) {
  test(`an error ${kind} is ${status} and no fault`, async () => {
    const host = new TestHost().model('m', raising(new InferError(kind, 'why')));
    const handle = () => models.infer('m', {});
    const wanted = { name: 'InferError', kind, status, message: 'why' };
    await assert.rejects(host.handle({ handle }), wanted);
    await assert.rejects(host.handle({ handle: async () => handle() }), wanted);
    assert.deepEqual(host.log, []);
  });
}

test('a handler can take care of an error', async () => {
  const host = new TestHost().model('large', raising(new InferError('overloaded', 'busy')));
  const handle = () => {
    try {
      return models.infer('large', {});
    } catch (error) {
      return PluginResponse.text(error.kind);
    }
  };
  assert.equal((await host.handle({ handle })).text(), 'overloaded');
});

test('a model that the test does not have', async () => {
  const handle = () => models.infer('detect', {});
  const message = 'the test has no model "detect": give it one with host.model("detect", run)';
  await assert.rejects(new TestHost().handle({ handle }), { kind: 'not-granted', message });
});

test('failures and other exceptions', async () => {
  const host = new TestHost();
  await assert.rejects(host.handle({ handle: raising(new InvalidInput('no')) }), { status: 400, message: 'no' });
  assert.deepEqual(host.log, []);
  await assert.rejects(host.handle({ handle: () => null.items }), { name: 'Internal' });
  assert.match(host.log[0].message, /^uncaught TypeError: .*models\.test\.js:\d+$/);
  await assert.rejects(host.handle({ handle: () => ({}) }), { message: /handle returned Object, not a PluginResponse/ });
});

test('an error of a model in another call is a fault', async () => {
  const host = new TestHost();
  const preprocess = () => models.infer('m', {});
  await assert.rejects(host.preprocess({ preprocess }), { name: 'Internal', message: /InferError: the test has no/ });
  assert.equal(host.log.length, 1);
});

const wrong = [
  [() => models.infer(1, {}), /infer: the model's name is not a string/],
  [() => models.infer('m'), /infer: the inputs of model "m" are not \{ NAME: tensor \}/],
  [() => models.infer('m', { x: [1] }), /infer: input "x" of model "m" is not a Tensor/],
  [() => models.inferAll({}), /inferAll: the runs are not an array/],
  [() => models.inferAll([undefined]), /inferAll: the model's name is not a string/],
  [() => new InferError('busy', 'why'), /the kinds of InferError are not-granted, .*, not busy/],
];
for (const [handle, message] of wrong) {
  test(`a wrong argument: ${message}`, async () => {
    const host = new TestHost();
    await assert.rejects(host.handle({ handle }), { message });
    assert.match(host.log[0].fields.file, /models\.test\.js$/);
  });
}

test('a model of a test returns tensors', async () => {
  const host = new TestHost().model('m', () => ({ scores: [1] }));
  const message = /output "scores" of the test's model "m" is not a Tensor/;
  await assert.rejects(host.handle({ handle: () => models.infer('m', {}) }), { message });
});
