// `{"items":[{"id":..,"features":[32 numbers]}..]}` in, a tensor [items, 32] out; then scores in,
// the items ordered by score out, the best first.

import { InvalidInput, PluginResponse, Tensor } from 'gristmill-plugin';

const FEATURES = 32;

/** @type {import('gristmill-plugin').Preprocess} */
export function preprocess(context, request) {
  const items = field(request.json(), 'items');
  if (!Array.isArray(items)) throw new InvalidInput('invalid JSON: items is not an array');
  if (items.length === 0) throw new InvalidInput('items is empty: at least one is needed');
  const rows = new Float32Array(items.length * FEATURES);
  const ids = items.map((item, index) => {
    const id = field(item, 'id');
    if (typeof id !== 'string') {
      throw new InvalidInput(`invalid JSON: items[${index}].id is not a string`);
    }
    rows.set(features(item, index), index * FEATURES);
    return id;
  });
  return { inputs: { input: Tensor.from(rows, [items.length, FEATURES]) }, state: ids };
}

/** @type {import('gristmill-plugin').Postprocess} */
export function postprocess(context, outputs, state) {
  const ids = state.json();
  const scores = outputs.view('output', [ids.length, 1]);
  const items = ids.map((id, index) => ({ id, score: scores[index] }));
  items.sort((a, b) => b.score - a.score);
  return PluginResponse.json({ items });
}

function features(item, index) {
  const values = field(item, 'features');
  const where = `items[${index}].features`;
  if (!Array.isArray(values)) throw new InvalidInput(`invalid JSON: ${where} is not an array`);
  for (let i = 0; i < values.length; i++) {
    if (typeof values[i] === 'bigint') values[i] = Number(values[i]);
    if (typeof values[i] !== 'number') {
      throw new InvalidInput(`invalid JSON: ${where}[${i}] is not a number`);
    }
  }
  if (values.length !== FEATURES) {
    throw new InvalidInput(`${where} has ${values.length} numbers, not ${FEATURES}`);
  }
  return values;
}

function field(object, name) {
  const value = object?.[name];
  if (value === undefined) throw new InvalidInput(`invalid JSON: missing field \`${name}\``);
  return value;
}
