// JSON for answers in which tensors and bodies stand. The host writes them.

import * as host from '#host';
import { stringify } from './json.js';
import { ours } from './realm.js';

/** Of the answer under way: the text in place of each resource, and the pieces that the host writes. */
let answer;

/** What stands for a resource in the answer under way: the `toJSON` of tensors and bodies. */
export function placed(piece, what) {
  if (answer === undefined) throw new TypeError(`a ${what} can be written by PluginResponse.json only`);
  answer.pieces.push(piece);
  return answer.mark;
}

/** `value` as JSON: a text, or bytes if resources stand in it; undefined for a function. */
export function written(value) {
  for (let mark = '\0'; ; mark += mark) {
    answer = { mark, pieces: [] };
    let text;
    let pieces;
    try {
      text = stringify(value);
    } finally {
      ({ pieces } = answer);
      answer = undefined;
    }
    if (pieces.length === 0) return text;
    const texts = text.split(JSON.stringify(mark));
    // Otherwise a text of the value is the mark.
    if (texts.length === pieces.length + 1) return write(texts, pieces);
  }
}

function write(texts, pieces) {
  const all = texts.flatMap((text, at) => [{ tag: 'text', val: text }, ...pieces.slice(at, at + 1)]);
  try {
    return ours(host.writeJson(all));
  } catch (error) {
    throw typeof error?.payload === 'string' ? new TypeError(error.payload) : error;
  }
}
