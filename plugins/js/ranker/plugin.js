// `{"items":[{"id":..,"features":[32 numbers]}..]}` in, a tensor [items, 32] out; then scores in,
// the items ordered by score out, the best first.

import { InvalidInput, PluginResponse } from 'gristmill-plugin';

const FEATURES = 32;

/** @type {import('gristmill-plugin').Preprocess} */
export function preprocess(context, request) {
  const input = request.jsonTensor('/items', 'float32', { keys: ['features'] });
  const [items, features] = input.shape;
  if (items === 0) throw new InvalidInput('items is empty: at least one is needed');
  if (features !== FEATURES) {
    throw new InvalidInput(`items[0].features has ${features} numbers, not ${FEATURES}`);
  }
  const ids = request.jsonTensor('/items', 'string', { keys: ['id'] });
  return { inputs: { input }, state: ids.data() };
}

/** @type {import('gristmill-plugin').Postprocess} */
export function postprocess(context, outputs, state) {
  const ids = state.json();
  const scores = outputs.view('output', [ids.length, 1]);
  const items = ids.map((id, index) => ({ id, score: scores[index] }));
  items.sort((a, b) => b.score - a.score);
  return PluginResponse.json({ items });
}
