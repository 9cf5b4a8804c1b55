// Requests over HTTP to other services, as the fetch standard names them.

import * as host from '#host';
import { errorOf } from './arguments.js';
import { Body } from './body.js';
import { parse } from './json.js';

const KINDS = [
  'not-granted',
  'invalid-argument',
  'prohibited-address',
  'connection',
  'timed-out',
  'too-large',
];
const OPTIONS = ['method', 'headers', 'body', 'timeoutMs'];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Why a service gave no answer. If nothing catches it: 500, with the text in the log only. */
export const FetchError = errorOf('FetchError', KINDS);

/** The headers of an answer, by names of any case. */
class AnswerHeaders {
  #fields;

  constructor(fields) {
    this.#fields = Array.from(fields, ({ name, value }) => [name, value]);
  }

  /** The values of this name, with commas between them; null if there is none. */
  get(name) {
    const wanted = String(name).toLowerCase();
    const values = this.#fields.filter(([own]) => own === wanted).map(([, value]) => value);
    return values.length === 0 ? null : values.join(', ');
  }

  has(name) {
    return this.get(name) !== null;
  }

  [Symbol.iterator]() {
    return this.#fields[Symbol.iterator]();
  }
}

/** The answer of a service. */
class Answer {
  constructor({ status, headers, body }) {
    this.status = status;
    this.headers = new AnswerHeaders(headers);
    this.body = new Body(body);
  }

  get ok() {
    return this.status >= 200 && this.status <= 299;
  }

  async bytes() {
    return this.body.bytes();
  }

  async arrayBuffer() {
    const { buffer, byteOffset, byteLength } = this.body.bytes();
    return buffer.slice(byteOffset, byteOffset + byteLength);
  }

  async text() {
    return decoder.decode(this.body.bytes());
  }

  async json() {
    return parse(decoder.decode(this.body.bytes()));
  }
}

/** Send a request, and wait for the whole answer. */
export async function fetch(url, options = {}) {
  const unknown = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new TypeError(`fetch has no option ${unknown}: it has ${OPTIONS.join(', ')}`);
  }
  const { method = 'GET', headers = {}, body, timeoutMs } = options;
  if (timeoutMs !== undefined && !(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
    throw new TypeError(`timeoutMs is not a time in milliseconds: ${String(timeoutMs)}`);
  }
  const fields = fieldsOf(headers);
  if (typeof body === 'string' && !fields.some(({ name }) => name.toLowerCase() === 'content-type')) {
    fields.push({ name: 'content-type', value: 'text/plain;charset=UTF-8' });
  }
  const asked = {
    method: String(method).toUpperCase(),
    url: String(url).replace(/[^\x21-\x7e]+/g, encodeURIComponent),
    headers: fields,
    body: body == null ? undefined : Body.raw(bodyOf(body)),
    // A double may be more than 64 bits can hold.
    timeoutMs: timeoutMs === undefined ? undefined : BigInt(Math.min(Math.ceil(timeoutMs), Number.MAX_SAFE_INTEGER)),
  };
  try {
    return new Answer(host.sendRequest(asked));
  } catch (error) {
    const { tag, val } = error?.payload ?? {};
    throw KINDS.includes(tag) ? new FetchError(tag, val) : error;
  }
}

function fieldsOf(headers) {
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return pairs.map(([name, value]) => ({ name: String(name), value: String(value) }));
}

function bodyOf(body) {
  if (body instanceof Body) return body;
  if (typeof body === 'string') return Body.fromBytes(encoder.encode(body));
  if (body instanceof ArrayBuffer) return Body.fromBytes(new Uint8Array(body));
  if (ArrayBuffer.isView(body)) {
    return Body.fromBytes(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
  }
  throw new TypeError('the body of a request is a string, bytes or a Body');
}
