import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Tensor } from 'gristmill-plugin';
import { CHUNK, CONTEXT, Stream } from '../stream.js';

const RATE = 16000;
/** So many chunks of a probability, one run after another. */
const chunks = (...runs) => runs.flatMap(([count, probability]) => Array(count).fill(probability));
const inSamples = (spans) => spans.map(({ start, end }) => [Math.round(start * RATE), Math.round(end * RATE)]);

test('speech ends when it has been silent for 100 ms, with 30 ms around it', () => {
  const stream = new Stream();
  const ended = stream.follow(chunks([10, 0], [20, 0.9], [2, 0.1], [10, 0.9], [3, 0.4], [5, 0.1]));
  // The short silence is within; between 0.35 and 0.5 it goes on.
  assert.deepEqual(inSamples(ended), [[10 * CHUNK - 480, 45 * CHUNK + 480]]);
  assert.deepEqual([stream.position, stream.start, stream.quiet], [50 * CHUNK, -1, -1]);
  assert.deepEqual(stream.end(50 * CHUNK), []);
});

test('speech of 250 ms and less is left out', () => {
  assert.deepEqual(new Stream().follow(chunks([7, 0.9], [5, 0])), []);
  assert.deepEqual(inSamples(new Stream().follow(chunks([8, 0.9], [5, 0]))), [[0, 8 * CHUNK + 480]]);
});

test('the end of the recording ends speech', () => {
  const stream = new Stream();
  assert.deepEqual(stream.follow(chunks([2, 0], [20, 0.5], [1, 0])), []);
  assert.deepEqual(inSamples(stream.end(23 * CHUNK - 100)), [[2 * CHUNK - 480, 23 * CHUNK - 100]]);
  assert.deepEqual(stream.end(23 * CHUNK), []);
});

test('a state goes on where it was', () => {
  const all = chunks([10, 0], [20, 0.9], [5, 0.1], [9, 0.9]);
  const whole = new Stream();
  const expected = [...whole.follow(all), ...whole.end(all.length * CHUNK)];
  for (let cut = 0; cut <= all.length; cut++) {
    const first = new Stream();
    const found = first.follow(all.slice(0, cut));
    first.memory = Tensor.from(Float32Array.from({ length: 256 }, (_, at) => at), [2, 1, 128]);
    first.tail = Tensor.from(Int16Array.from({ length: CONTEXT + 7 }, (_, at) => at));
    const second = Stream.decode(Buffer.from(first.encode().bytes()).toString('base64'));
    assert.deepEqual(second.memory.data(), first.memory.data());
    assert.deepEqual(second.tail.data(), first.tail.data());
    found.push(...second.follow(all.slice(cut)), ...second.end(all.length * CHUNK));
    assert.deepEqual(found, expected);
  }
});

test('other states are refused', () => {
  const state = (numbers, tail = CONTEXT, memory = 1) => {
    const bytes = new Uint8Array(24 + 1024 + 2 * tail);
    bytes.set(new Uint8Array(Float64Array.from(numbers).buffer));
    bytes.set(new Uint8Array(Float32Array.of(memory).buffer), 24 + 1020);
    return Buffer.from(bytes).toString('base64');
  };
  Stream.decode(state([512, 0, -1]));
  for (const other of [
    '', 'AAAA', state([0, -1, -1], CONTEXT - 1), state([0, -1, -1], CONTEXT + CHUNK), state([0, 0, -1]),
    state([-512, -1, -1]), state([NaN, -1, -1]), state([100, -1, -1]), state([512, 512, -1]),
    state([512, -2, -1]), state([512, 0, 0.5]), state([2 ** 60, -1, -1]),
    state([512, 0, -1], CONTEXT, NaN), state([512, 0, -1], CONTEXT, Infinity),
  ]) {
    assert.throws(() => Stream.decode(other), { status: 400, message: 'the state is not one of an answer' });
  }
  assert.throws(() => Stream.decode('no base64!'), { status: 400, message: /base64 has/ });
});
