import { InvalidInput, PluginResponse } from 'gristmill-plugin';

/**
 * The client's rows of numbers, [[1, 2], [3, 4]], as the model's input.
 *
 * @type {import('gristmill-plugin').Preprocess}
 */
export function preprocess(context, request) {
  const rows = request.jsonTensor();
  if (rows.shape.length !== 2) {
    throw new InvalidInput('the body is not a list of rows: [[1, 2], [3, 4]]');
  }
  return { inputs: { input: rows } };
}

/**
 * The model's numbers for each row: {"outputs": [[..], [..]]}.
 *
 * @type {import('gristmill-plugin').Postprocess}
 */
export function postprocess(context, outputs) {
  return PluginResponse.json({ outputs: outputs.get('output') });
}
