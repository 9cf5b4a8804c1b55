// The request, read from the host when it is asked for.

import { Body } from './body.js';

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

  json() {
    return this.body.json();
  }
}
