import { InvalidInput, PluginResponse, Tensor } from 'gristmill-plugin';

/**
 * The client's numbers, {"values": [..]}, as the model's input of one row.
 *
 * @type {import('gristmill-plugin').Preprocess}
 */
export function preprocess(context, request) {
  const values = request.json()?.values;
  if (!Array.isArray(values) || values.length === 0) {
    throw new InvalidInput('values must be an array of numbers');
  }
  return { inputs: { input: Tensor.from(values, [1, values.length]) } };
}

/**
 * The model's numbers: {"values": [..]}.
 *
 * @type {import('gristmill-plugin').Postprocess}
 */
export function postprocess(context, outputs) {
  return PluginResponse.json({ values: [...outputs.view('output')] });
}
