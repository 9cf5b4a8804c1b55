// Bytes that stay on the host until the plugin reads them.

import { InvalidInput } from './failure.js';
import { hold } from './resources.js';

const ALL = 0xffff_ffff_ffff_ffffn;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** The body of a request or of one of its parts. Each read copies from the host. */
export class Body {
  #raw;

  constructor(raw) {
    this.#raw = hold(raw);
  }

  get size() {
    return Number(this.#raw.len());
  }

  bytes(offset = 0, length = undefined) {
    return this.#raw.read(BigInt(offset), length === undefined ? ALL : BigInt(length));
  }

  text() {
    return text(this.bytes(), 'the body');
  }

  json() {
    const source = this.text();
    try {
      return JSON.parse(source);
    } catch (error) {
      throw new InvalidInput(`invalid JSON: ${withoutPrefix(error.message)}`);
    }
  }

  /** Not for plugins: the host's object. */
  static raw(body) {
    return body.#raw;
  }
}

/** `bytes` as UTF-8. Throws InvalidInput if they are not; `what` names them. */
function text(bytes, what) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new InvalidInput(`${what} is not UTF-8`);
  }
}

/** SpiderMonkey begins its messages with the name of the function. */
function withoutPrefix(message) {
  return message.replace(/^JSON\.parse: /, '');
}
