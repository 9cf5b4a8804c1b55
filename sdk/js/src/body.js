// Bytes that stay on the host until the plugin reads them.

import * as host from '#host';
import { placed } from './answer.js';
import { InvalidInput } from './failure.js';
import { parse } from './json.js';
import { ours } from './realm.js';
import { hold } from './resources.js';

const ALL = 0xffff_ffff_ffff_ffffn;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** The body of a request or of one of its parts, or bytes of the plugin. Each read copies. */
export class Body {
  #raw;

  /** Not for plugins: use `Body.fromBytes` or `Body.fromBase64`. */
  constructor(raw) {
    this.#raw = hold(raw);
  }

  static fromBytes(bytes) {
    return new Body(host.Blob.fromBytes(bytes));
  }

  static fromBase64(text) {
    if (typeof text !== 'string') throw new InvalidInput(`base64 is a text, not ${kindOf(text)}`);
    try {
      return new Body(host.Blob.fromBase64(text));
    } catch (error) {
      throw error?.payload?.tag === 'invalid-base64' ? new InvalidInput(error.payload.val) : error;
    }
  }

  slice(offset = 0, length = undefined) {
    return new Body(this.#raw.slice(BigInt(offset), length === undefined ? ALL : BigInt(length)));
  }

  get size() {
    return Number(this.#raw.len());
  }

  bytes(offset = 0, length = undefined) {
    return ours(this.#raw.read(BigInt(offset), length === undefined ? ALL : BigInt(length)));
  }

  text() {
    return text(this.bytes(), 'the body');
  }

  /** In `PluginResponse.json` the host writes its bytes. */
  toJSON() {
    return placed({ tag: 'base64', val: this.#raw }, 'Body');
  }

  json() {
    return valueOf(this.bytes());
  }

  /** Not for plugins: the host's object. */
  static raw(body) {
    return body.#raw;
  }
}

/** The value of a JSON document. */
export function valueOf(bytes) {
  const source = text(bytes, 'the body');
  try {
    return parse(source);
  } catch (error) {
    throw new InvalidInput(`invalid JSON: ${withoutPrefix(error.message)}`);
  }
}

function kindOf(value) {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value;
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
