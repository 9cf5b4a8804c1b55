// Misbehaves through SpiderMonkey and its event loop. `?do=` names the deed, as for the plugin
// `hostile`.
//
// It is for the model `digits`, which gets a blank picture if nothing ends the deed. The answer is the
// number of calls that this instance has begun: 1 in a fresh one.

import { PluginResponse, Tensor, log } from 'gristmill-plugin';

const MEBIBYTE = 1 << 20;
const blank = () => Tensor.from(new Float32Array(784), [1, 1, 28, 28]);

let calls = 0;

/** @type {import('gristmill-plugin').Preprocess} */
export function preprocess(context, request) {
  calls += 1;
  const name = request.query.get('do') ?? '';
  if (name === 'echo') return { inputs: { input: blank() }, state: echo(request) };
  if (name !== '' && !(name in DEEDS) && !(name in ANSWERS)) throw new Error(`there is no deed "${name}"`);
  const done = DEEDS[name]?.();
  if (name === 'wrong-type') return done;
  const prepared = (made) => ({ inputs: { input: made ?? blank() }, state: `${name} ${calls}` });
  return typeof done?.then === 'function' ? done.then(prepared) : prepared(done);
}

/** @type {import('gristmill-plugin').Postprocess} */
export function postprocess(context, outputs, state) {
  const text = state.text();
  if (text.startsWith('{')) return PluginResponse.json({ ...state.json(), again: JSON.parse(text).least });
  const [name, count] = text.split(' ');
  return ANSWERS[name]?.() ?? PluginResponse.text(count);
}

/** Not hostile: the body and labels of int64, in all the ways in which a plugin can write them. */
function echo(request) {
  const body = request.json();
  const labels = Tensor.from([9007199254740993n, -1n]).data();
  const texts = [JSON.stringify(body), JSON.stringify(labels), JSON.stringify([...labels])];
  const flags = Tensor.from([true, false]).data();
  return { body, labels, label: labels[0], flags, texts, least: -9007199254740991 };
}

function loop() {
  for (;;);
}

function memory() {
  const held = [];
  for (;;) held.push(new Uint8Array(MEBIBYTE).fill(1));
}

/** Takes all memory and does not accept that there is no more. */
function stubborn() {
  const held = [];
  for (;;) {
    try {
      held.push(new Uint8Array(MEBIBYTE).fill(1));
    } catch {
      // Once more.
    }
  }
}

function recurse(depth = 0) {
  return recurse(depth + 1) + 1;
}

/** A search in the engine's own code, which takes longer than the universe lasts. */
function regex() {
  /^(a+)+$/.test('a'.repeat(64) + 'b');
}

function flood(write) {
  const line = 'x'.repeat(1000);
  for (let index = 0; index < 100_000; index += 1) write(line);
}

function random() {
  for (;;) crypto.getRandomValues(new Uint8Array(65536));
}

function fail() {
  throw new Error('as told');
}

/** Throws what cannot be described. */
function failOddly() {
  throw {
    get message() {
      throw new Error('as told');
    },
  };
}

/** Keeps the event loop busy without a timer. */
function microtasks() {
  const again = () => Promise.resolve().then(again);
  return again();
}

const DEEDS = {
  loop,
  memory,
  stubborn,
  recurse,
  regex,
  print: () => flood(console.log),
  log: () => flood(log.info),
  sleep: () => new Promise((wake) => setTimeout(wake, 3_600_000)),
  pending: () => new Promise(() => {}),
  microtasks,
  interval: () => void setInterval(() => {}, 0),
  random,
  fail,
  'fail-oddly': failOddly,
  reject: () => Promise.reject(new Error('as told')),
  'wrong-dtype': () => Tensor.from(new BigInt64Array(784), [1, 1, 28, 28]),
  'wrong-shape': () => Tensor.from(new Float32Array(784), [1, 784]),
  'wrong-type': () => 'nothing',
};

const ANSWERS = {
  'huge-answer': () => new PluginResponse(new Uint8Array(20 * MEBIBYTE)),
  'answer-loop': loop,
};
