import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Body, Internal, kept, Pixels, PluginResponse, Tensor } from '../src/index.js';
import { TestHost } from '../src/testing.js';

const output = () => ({ output: Tensor.from([2], [1, 1]) });
const preparing = (keep) => ({
  preprocess: (context, request) => ({ inputs: { input: Tensor.from([1], [1, 1]) }, keep: keep(request) }),
});
const taking = (name) => ({ postprocess: () => PluginResponse.json(kept(name)) });

test('what is kept reaches postprocess, once', async () => {
  const host = new TestHost();
  await host.preprocess(preparing(({ body }) => ({
    photo: Pixels.fromBytes(2, 1, Uint8Array.of(7, 8), 'gray'), row: Tensor.from([1.5]), body,
  })), { body: 'abc' });
  const plugin = {
    postprocess() {
      const [photo, row, body] = ['photo', 'row', 'body'].map(kept);
      assert.ok(photo instanceof Pixels && row instanceof Tensor && body instanceof Body);
      return PluginResponse.json([photo.color, photo.data(), row, body.text()]);
    },
  };
  const answer = await host.postprocess(plugin, output());
  assert.deepEqual(answer.json(), ['gray', [7, 8], [1.5], 'abc']);
  await assert.rejects(host.postprocess(taking('photo'), output()), (error) => {
    assert(error instanceof Internal, `${error}`);
    return error.message.includes('nothing is kept as "photo"');
  });
});

test('hosts of other tests keep nothing of it', async () => {
  await new TestHost().preprocess(preparing(() => ({ row: Tensor.from([1]) })));
  await assert.rejects(new TestHost().postprocess(taking('row'), output()), { message: /nothing is kept/ });
});

test('what cannot be kept is named', async () => {
  const row = Tensor.from([1], [1, 1]);
  const returning = (make) => ({ preprocess: () => make(Tensor.from([1])) });
  for (const [plugin, message] of [
    [preparing(() => 7), /keep is not \{ NAME/],
    [preparing(() => ({ row: [1] })), /keep "row" is neither Pixels, a Tensor nor a Body/],
    [returning((one) => ({ inputs: {}, keep: { one, two: one } })), /keep "one" .* is kept twice/],
    [returning((input) => ({ inputs: { input }, keep: { input } })), /keep "input" is an input/],
    [returning((input) => ({ inputs: { input }, keep: { row } })), /keep "row" .* of another call/],
    [preparing(() => ({ ['n'.repeat(1025)]: Tensor.from([1]) })), /the name has 1025 bytes; the limit is 1024/],
  ]) {
    await new TestHost().handle({ handle: () => PluginResponse.json(null) });
    await assert.rejects(new TestHost().preprocess(plugin), { message });
  }
  assert.throws(() => kept(7), { name: 'TypeError', message: /the name is not a string/ });
});
