// The state that a preprocessor leaves for the postprocessor of the same request.

import { parse, stringify } from './json.js';
import { ours } from './realm.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The state as a postprocessor reads it. */
export class State {
  #bytes;

  constructor(bytes) {
    this.#bytes = ours(bytes);
  }

  bytes() {
    return this.#bytes;
  }

  text() {
    return decoder.decode(this.#bytes);
  }

  json() {
    return parse(this.text());
  }
}

/** The bytes of a state: bytes as they are, a string as UTF-8, any other value as JSON. */
export function stateBytes(value) {
  if (value === undefined) return new Uint8Array(0);
  if (value instanceof Uint8Array) return value;
  return encoder.encode(typeof value === 'string' ? value : stringify(value));
}
