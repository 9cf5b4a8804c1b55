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

/** Is asked for what a state does not have: elements and a length would be `undefined`. */
const lacking = new Proxy({}, {
  get(target, name, receiver) {
    if (name === 'length' || (typeof name === 'string' && /^\d+$/.test(name))) {
      const read = name === 'length' ? 'state.bytes().length' : `state.bytes()[${name}]`;
      throw new TypeError(`a state is not an array: use ${read}, state.json() or state.text()`);
    }
    return Reflect.get(target, name, receiver);
  },
});
Object.setPrototypeOf(State.prototype, lacking);

/** The bytes of a state: bytes as they are, a string as UTF-8, any other value as JSON. */
export function stateBytes(value) {
  if (value === undefined) return new Uint8Array(0);
  if (value instanceof Uint8Array) return value;
  return encoder.encode(typeof value === 'string' ? value : stringify(value));
}
