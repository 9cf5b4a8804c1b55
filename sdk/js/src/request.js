// The request, read from the host when it is asked for.

import { Body, valueOf } from './body.js';
import { Internal, InvalidInput } from './failure.js';
import { hold } from './resources.js';
import { Tensor } from './tensor.js';

/** Named values in order: headers or query parameters. Iterable: pairs of a name and a value. */
export class Fields {
  #fields;

  constructor(fields) {
    this.#fields = fields;
  }

  get(name) {
    return this.#fields.find((field) => field.name === name)?.value ?? null;
  }

  getAll(name) {
    return this.#fields.filter((field) => field.name === name).map((field) => field.value);
  }

  has(name) {
    return this.#fields.some((field) => field.name === name);
  }

  *[Symbol.iterator]() {
    for (const { name, value } of this.#fields) yield [name, value];
  }
}

/** One part of a `multipart/form-data` body. */
class Part {
  constructor({ name, filename, contentType, body }) {
    this.name = name;
    this.filename = filename;
    this.contentType = contentType;
    this.body = new Body(body);
  }

  bytes() {
    return this.body.bytes();
  }

  text() {
    return this.body.text();
  }

  json() {
    return this.body.json();
  }
}

/** One request to the pipeline. */
export class PluginRequest {
  #raw;
  #body;
  #parts;
  #headers;
  #query;

  constructor(raw) {
    this.#raw = raw;
  }

  get contentType() {
    return this.#raw.contentType();
  }

  get headers() {
    return (this.#headers ??= new Fields(this.#raw.headers()));
  }

  get query() {
    return (this.#query ??= new Fields(this.#raw.query()));
  }

  get body() {
    return (this.#body ??= new Body(this.#raw.body()));
  }

  get parts() {
    return (this.#parts ??= this.#raw.parts().map((part) => new Part(part)));
  }

  part(name) {
    return this.parts.find((part) => part.name === name);
  }

  bytes() {
    return this.body.bytes();
  }

  text() {
    return this.body.text();
  }

  file(name) {
    const part = this.part(name);
    if (part !== undefined) return part;
    if (this.parts.length === 0) throw new InvalidInput(`the body is not a form with a part '${name}'`);
    const names = this.parts.slice(0, 10).map((other) => `'${other.name}'`);
    throw new InvalidInput(`the form has no part '${name}', but ${names.join(', ')}`);
  }

  json(...at) {
    if (at.length === 0 || at[0] === '') return this.body.json();
    const [pointer, fallback] = at;
    const found = asked(() => this.#raw.jsonValue(pointer));
    if (found !== undefined) return valueOf(found);
    if (at.length < 2) throw new InvalidInput(`invalid JSON: ${pointer} is missing`);
    return fallback;
  }

  jsonTensor(pointer = '', dtype = 'float32', { keys = [] } = {}) {
    return new Tensor(hold(asked(() => this.#raw.jsonTensor(pointer, keys, dtype))), dtype);
  }

  jsonBody(pointer) {
    return new Body(asked(() => this.#raw.jsonBlob(pointer)));
  }
}

/** What the host gives, or the failure that it names. */
function asked(ask) {
  try {
    return ask();
  } catch (error) {
    const { tag, val } = error?.payload ?? {};
    if (tag === 'invalid-json') throw new InvalidInput(val);
    if (tag === 'invalid-argument') throw new Internal(val);
    throw error;
  }
}
