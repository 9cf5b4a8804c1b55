import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as sdk from '../src/index.js';
import { TestHost } from '../src/testing.js';

const { InvalidInput, PluginResponse, Tensor, log } = sdk;
const input = () => ({ input: Tensor.from([1]) });

/** What `preprocess` sees, through the state. */
async function seen(look, request, context) {
  const plugin = { preprocess: (...args) => ({ inputs: input(), state: look(...args) }) };
  return (await new TestHost(context).preprocess(plugin, request)).state.json();
}

test('a request: type, headers, query, body', async () => {
  const request = {
    json: { a: 1 },
    headers: { 'X-Trace': 'abc' },
    query: [['k', '1'], ['k', 2]],
  };
  const look = (context, req) => [
    req.contentType, req.headers.get('x-trace'), req.headers.get('accept'), req.query.getAll('k'),
    [...req.query], req.json(), req.text(), req.body.size, [...req.body.bytes(1, 3)],
  ];
  assert.deepEqual(await seen(look, request), [
    'application/json', 'abc', null, ['1', '2'], [['k', '1'], ['k', '2']], { a: 1 }, '{"a":1}', 7,
    [...Buffer.from('"a"')],
  ]);
});

test('the parts of a multipart request', async () => {
  const parts = [{ name: 'photo', filename: 'a.png', body: [1, 2] }, { name: 'meta', body: '{"b":2}' }];
  const look = (context, req) => [
    req.parts.map((part) => [part.name, part.filename, part.body.size]), req.part('meta').json(),
  ];
  assert.deepEqual(await seen(look, { parts }), [[['photo', 'a.png', 2], ['meta', null, 7]], { b: 2 }]);
});

test('the context', async () => {
  const given = { tenant: 'acme', model: 'm', settings: { limit: 3 }, timeLeftMs: 12 };
  const look = ({ tenant, pipeline, model, requestId, settings, timeLeftMs }) =>
    [tenant, pipeline, model, requestId, settings.limit, timeLeftMs];
  assert.deepEqual(await seen(look, {}, given), ['acme', 'test', 'm', 'test-request', 3, 12]);
});

for (const [state, text] of [[undefined, ''], ['äb', 'äb'], [Uint8Array.of(65), 'A'], [{ a: [1] }, '{"a":[1]}']]) {
  test(`a state ${JSON.stringify(state)} arrives as "${text}"`, async () => {
    const host = new TestHost();
    const prepared = await host.preprocess({ preprocess: () => ({ inputs: input(), state }) });
    const postprocess = (context, outputs, got) => PluginResponse.text(got.text());
    const answer = await host.postprocess({ postprocess }, prepared.inputs, prepared.state);
    assert.equal(answer.text(), text);
  });
}

test('a state is not an array of bytes', async () => {
  const host = new TestHost();
  const preprocess = () => ({ inputs: input(), state: Uint8Array.of(65, 66) });
  const { state } = await host.preprocess({ preprocess });
  const text = 'a state is not an array: use state.bytes()[1], state.json() or state.text()';
  assert.throws(() => state[1], new TypeError(text));
  assert.throws(() => state.length, { name: 'TypeError', message: /state\.bytes\(\)\.length/ });
  assert.deepEqual([state.bytes()[1], state.other, await state], [66, undefined, state]);
});

test('outputs: names, order, checks', async () => {
  const postprocess = (context, outputs) => {
    assert.deepEqual(outputs.names, ['b', 'a']);
    assert.deepEqual([...outputs].map(([name, tensor]) => [name, tensor.dtype]), [['b', 'float32'], ['a', 'int64']]);
    assert.deepEqual([...outputs.view('b', [null, 2])], [1, 2]);
    const refused = (run, message) => assert.throws(run, { name: 'Internal', message });
    refused(() => outputs.get('c'), 'the model has no output "c", it has "b", "a"');
    refused(() => outputs.view('a'), 'output "a" is int64, wanted float32');
    refused(() => outputs.get('b', [2, null]), 'output "b" has shape [1, 2], wanted [2, any]');
    return new PluginResponse();
  };
  const outputs = { b: Tensor.from([1, 2], [1, 2]), a: Tensor.from([5n]) };
  assert.equal((await new TestHost().postprocess({ postprocess }, outputs)).body.length, 0);
});

test('responses', async () => {
  const answer = async (response) => new TestHost().postprocess({ postprocess: () => response }, {});
  const json = await answer(PluginResponse.json({ a: 1 }, { status: 201, headers: { 'x-plugin-n': 5 } }));
  assert.deepEqual({ ...json, body: json.text() }, {
    status: 201, contentType: 'application/json', headers: { 'x-plugin-n': '5' }, body: '{"a":1}',
  });
  assert.equal((await answer(PluginResponse.text('ä'))).text(), 'ä');
  assert.throws(() => new PluginResponse('', { status: 99 }), { message: 'status is 99: must be 200 to 599' });
  assert.throws(() => PluginResponse.json(undefined), { message: 'undefined cannot be written as JSON' });
});

for (const [kind, status] of [['InvalidInput', 400], ['UnsupportedMediaType', 415], ['Unprocessable', 422], ['Internal', 500]]) {
  test(`${kind} is ${status} and no fault`, async () => {
    const host = new TestHost();
    const preprocess = () => { throw new sdk[kind]('why'); };
    await assert.rejects(host.preprocess({ preprocess }), { name: kind, status, message: 'why' });
    assert.deepEqual(host.log, []);
  });
}

test('any other exception is a line with its place, and an internal failure', async () => {
  const host = new TestHost();
  const preprocess = () => null.items;
  await assert.rejects(host.preprocess({ preprocess }), { name: 'Internal' });
  const [{ level, message, fields }] = host.log;
  assert.equal(level, 'error');
  assert.match(message, /^uncaught TypeError: Cannot read properties of null .*call\.test\.js:\d+$/);
  assert.equal(fields.uncaught, 'true');
  assert.match(fields.file, /call\.test\.js$/);
  assert.match(fields.line, /^\d+$/);
  assert.match(fields.stack, /preprocess \(.*call\.test\.js:\d+\)/);
});

test('of a deep stack both ends are told', async () => {
  const host = new TestHost();
  const deep = (n) => (n === 0 ? null.items : deep(n - 1));
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 100;
  try {
    await assert.rejects(host.preprocess({ preprocess: () => deep(60) }), { name: 'Internal' });
  } finally {
    Error.stackTraceLimit = limit;
  }
  const stack = host.log[0].fields.stack.split('\n');
  assert.equal(stack.length, 17);
  assert.match(stack[11], /^deep /);
  assert.match(stack[12], /^\.\. \d+ more \.\.$/);
});

for (const [thrown, text] of [
  [{ code: 7 }, 'thrown: {"code":7}'],
  [null, 'thrown: null'],
  [undefined, 'thrown: undefined'],
  [new Error('outer', { cause: new TypeError('inner') }), 'Error: outer; caused by TypeError: inner'],
  [new Error('outer', { cause: 'why' }), 'Error: outer; caused by thrown: why'],
]) {
  test(`what is thrown is told: ${text}`, async () => {
    const host = new TestHost();
    await assert.rejects(host.preprocess({ preprocess: () => { throw thrown; } }), { name: 'Internal' });
    assert.ok(host.log[0].message.startsWith(`uncaught ${text}`), host.log[0].message);
  });
}

test('asynchronous functions', async () => {
  const host = new TestHost();
  const preprocess = async () => ({ inputs: input(), state: await Promise.resolve('later') });
  assert.equal((await host.preprocess({ preprocess })).state.text(), 'later');
  const failing = async () => { throw new InvalidInput('no'); };
  await assert.rejects(host.preprocess({ preprocess: failing }), { status: 400, message: 'no' });
});

const wrong = [
  [() => undefined, /preprocess returned undefined, not \{ inputs/],
  [() => [1], /preprocess returned Array, not \{ inputs/],
  [() => ({ inputs: { x: [1] } }), /input "x" is Array, not a Tensor/],
  [() => { const x = Tensor.from([1]); return { inputs: { x, y: x } }; }, /input "y" is a tensor of another/],
];
for (const [preprocess, message] of wrong) {
  test(`a wrong result: ${message}`, () => assert.rejects(new TestHost().preprocess({ preprocess }), { message }));
}

test('log lines, their levels and fields', async () => {
  const host = new TestHost();
  const preprocess = () => {
    log.info('items', { count: 3, ids: ['a'], none: undefined });
    log.warn(5);
    return { inputs: input() };
  };
  await host.preprocess({ preprocess });
  assert.deepEqual(host.log, [
    { level: 'info', message: 'items', fields: { count: '3', ids: '["a"]', none: 'undefined' } },
    { level: 'warn', message: '5', fields: {} },
  ]);
});

test('the reader of JSON refuses what is not', async () => {
  const preprocess = (context, request) => request.json();
  await assert.rejects(new TestHost().preprocess({ preprocess }, { body: '{' }), { status: 400, message: /^invalid JSON: / });
});
