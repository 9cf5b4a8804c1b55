// Unit tests without a server and without WebAssembly: a small host in this process that calls a
// plugin's functions as the server does.

import { exportPostprocess, exportPreprocess } from './call.js';
import { fromContract } from './failure.js';
import { FetchError } from './fetch.js';
import { exportHandle } from './handler.js';
import { parse, stringify } from './json.js';
import { InferError } from './models.js';
import { NdArray } from './numpy.js';
import { useFiles } from './reference/assets.js';
import { ReferenceBlob } from './reference/blob.js';
import { jsonBlob, jsonTensor, jsonValue } from './reference/json.js';
import { useServices } from './reference/http.js';
import { useKept } from './reference/keep.js';
import { takeLines } from './reference/log.js';
import { useModels } from './reference/models.js';
import { refusal } from './reference/refusal.js';
import { useStores } from './reference/store.js';
import { useTables } from './reference/tables.js';
import { useTokenizers } from './reference/tokenizer.js';
import { State } from './state.js';
import { Tensor } from './tensor.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A host for tests. It keeps the log of the calls that it made. */
export class TestHost {
  #context;
  #models = new Map();
  #stores = new Map();
  #services = new Map();
  #assets = new Map();
  #tokenizers = new Map();
  #tables = new Map();
  #kept = new Map();

  constructor(context = {}) {
    this.#context = {
      tenant: 'test',
      pipeline: 'test',
      model: 'test',
      requestId: 'test-request',
      settings: {},
      timeLeftMs: 10_000,
      ...context,
    };
    /** The lines of all calls so far: `{ level, message, fields }`. */
    this.log = [];
  }

  /** Let `run` be the model of this name: from inputs by name to outputs by name. */
  model(name, run) {
    this.#models.set(name, (inputs) => {
      const named = inputs.map(([input, tensor]) => [input, new Tensor(tensor)]);
      let outputs;
      try {
        outputs = run(Object.fromEntries(named));
      } catch (error) {
        throw error instanceof InferError ? refusal(error.kind, error.message) : error;
      }
      return Object.entries(outputs).map(([output, given]) => {
        const tensor = given instanceof NdArray ? given.tensor() : given;
        if (Tensor.is(tensor)) return { name: output, tensor: Tensor.raw(tensor) };
        throw new TypeError(`output "${output}" of the test's model "${name}" is not a Tensor`);
      });
    });
    return this;
  }

  /** Let the store of this name have these values, by key. Returns the host. */
  store(bucket, values = {}) {
    this.#stores.set(bucket, new Map(Object.entries(values).map(([key, value]) => [key, bytesOf(value)])));
    return this;
  }

  /** Let `answer` answer the requests of `fetch` to URLs of this origin. Returns the host. */
  service(origin, answer) {
    this.#services.set(origin, ({ method, url, headers, body, timeoutMs }) => {
      const named = Object.fromEntries(headers.map(({ name, value }) => [name.toLowerCase(), value]));
      const bytes = body === undefined ? new Uint8Array(0) : body.read(0n, body.len());
      const time = timeoutMs === undefined ? undefined : Number(timeoutMs);
      let found;
      try {
        found = answer({ method, url, headers: named, body: bytes, text: decoder.decode(bytes), timeoutMs: time });
      } catch (error) {
        throw error instanceof FetchError ? refusal(error.kind, error.message) : error;
      }
      const { status = 200, headers: answerHeaders = {}, body: content, json } = found;
      const answered = json === undefined ? bytesOf(content) : encoder.encode(stringify(json));
      const type = json === undefined ? {} : { 'content-type': 'application/json' };
      const all = fields({ ...type, ...answerHeaders }).map(({ name, value }) => ({ name: name.toLowerCase(), value }));
      return { status, headers: all, body: new ReferenceBlob(answered) };
    });
    return this;
  }

  /** Let plugins open a file of this name, a text or bytes, as if the pipeline named it. */
  asset(name, content) {
    this.#assets.set(name, bytesOf(content));
    return this;
  }

  /**
   * Let the `Tokenizer` of this file split texts at white space. A word's id is its place in `words`;
   * `[CLS]`, `[SEP]`, `[PAD]` and `[UNK]` are what BERT has them for.
   */
  tokenizer(asset, words) {
    this.#tokenizers.set(asset, [...words]);
    return this;
  }

  /** Let the table of this name have these rows, by key, and these names of columns. Returns the host. */
  table(asset, rows, columns = []) {
    const listed = new Map(Object.entries(rows).map(([key, row]) => [key, Array.from(row)]));
    const [first = []] = listed.values();
    const width = columns.length || first.length;
    for (const [key, row] of listed) {
      if (row.length !== width) {
        throw new TypeError(`the row ${JSON.stringify(key)} has ${row.length} numbers, not ${width}`);
      }
    }
    this.#tables.set(asset, { rows: listed, columns: [...columns] });
    return this;
  }

  async preprocess(plugin, request = {}) {
    const run = exportPreprocess(plugin.preprocess);
    const { inputs, state } = await this.#call(() => run(this.#rawContext(), rawRequest(request)));
    const named = inputs.map(({ name, tensor }) => [name, new Tensor(tensor)]);
    return { inputs: Object.fromEntries(named), state: new State(state) };
  }

  async postprocess(plugin, outputs, state = new Uint8Array(0)) {
    const run = exportPostprocess(plugin.postprocess);
    const raw = Object.entries(outputs).map(([name, tensor]) => ({ name, tensor: Tensor.raw(tensor) }));
    const bytes = state instanceof State ? state.bytes() : bytesOf(state);
    return new TestAnswer(await this.#call(() => run(this.#rawContext(), raw, bytes)));
  }

  async handle(plugin, request = {}) {
    const run = exportHandle(plugin.handle);
    return new TestAnswer(await this.#call(() => run(this.#rawContext(), rawRequest(request))));
  }

  async #call(run) {
    takeLines();
    useModels(this.#models);
    useStores(this.#stores);
    useServices(this.#services);
    useFiles(this.#assets);
    useTokenizers(this.#tokenizers);
    useTables(this.#tables);
    useKept(this.#kept);
    try {
      return await run();
    } catch (error) {
      const { tag, val } = error ?? {};
      if (tag === 'infer') throw new InferError(val.tag, val.val);
      if (tag === undefined) throw error;
      throw fromContract(tag === 'failure' ? val : error);
    } finally {
      this.log.push(...takeLines());
    }
  }

  #rawContext() {
    const context = this.#context;
    return {
      tenant: () => context.tenant,
      pipeline: () => context.pipeline,
      model: () => context.model,
      requestId: () => context.requestId,
      settings: () =>
        typeof context.settings === 'string' ? context.settings : stringify(context.settings),
      timeLeft: () => BigInt(context.timeLeftMs),
      [Symbol.dispose ?? Symbol.for('dispose')]() {},
    };
  }
}

/** A response as a test looks at it. */
class TestAnswer {
  constructor({ status, contentType, headers, body }) {
    this.status = status;
    this.contentType = contentType;
    this.headers = Object.fromEntries(headers.map(({ name, value }) => [name, value]));
    this.body = body;
  }

  text() {
    return decoder.decode(this.body);
  }

  json() {
    return parse(this.text());
  }
}

function rawRequest({ body, json, contentType, headers = {}, query = {}, parts = [] }) {
  const bytes = json === undefined ? bytesOf(body) : encoder.encode(stringify(json));
  const type = contentType ?? (json === undefined ? undefined : 'application/json');
  return {
    contentType: () => type,
    headers: () => fields(headers).map(({ name, value }) => ({ name: name.toLowerCase(), value })),
    query: () => fields(query),
    body: () => new ReferenceBlob(bytes),
    jsonTensor: (pointer, keys, dtype) => jsonTensor(bytes, pointer, keys, dtype),
    jsonBlob: (pointer) => jsonBlob(bytes, pointer),
    jsonValue: (pointer) => jsonValue(bytes, pointer),
    parts: () =>
      parts.map(({ name = '', filename, contentType: partType, body: content }) => ({
        name,
        filename,
        contentType: partType,
        body: new ReferenceBlob(bytesOf(content)),
      })),
    [Symbol.dispose ?? Symbol.for('dispose')]() {},
  };
}

/** Fields of an object, or of pairs if a name stands more than once. */
function fields(values) {
  const pairs = Symbol.iterator in values ? [...values] : Object.entries(values);
  return pairs.map(([name, value]) => ({ name, value: String(value) }));
}

function bytesOf(value = '') {
  return typeof value === 'string' ? encoder.encode(value) : new Uint8Array(value);
}
