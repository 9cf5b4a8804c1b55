import type { Context, Handle, NdArray, Postprocess, Preprocess, State, Tensor } from './index.js';

type Content = string | Uint8Array | readonly number[];
/** Pairs if a name stands more than once. */
type NamedValues = Record<string, unknown> | Iterable<readonly [string, unknown]>;

/** A request for a test. */
export interface TestRequest {
  body?: Content;
  /** The body as JSON, with its content type. */
  json?: unknown;
  contentType?: string;
  headers?: NamedValues;
  query?: NamedValues;
  parts?: { name?: string; filename?: string; contentType?: string; body: Content }[];
}

/** A request that a plugin sends to a service of a test. Names of headers are in lower case. */
export interface ServiceRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
  /** The body as text. */
  readonly text: string;
  readonly timeoutMs?: number;
}

/** What a service of a test answers: with `body`, or with `json` as JSON. */
export interface ServiceAnswer {
  /** 200 unless it is given. */
  status?: number;
  headers?: Record<string, unknown>;
  body?: Content;
  json?: unknown;
}

/** A response as a test looks at it. */
export interface TestAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
  text(): string;
  json(): any;
}

export interface LogLine {
  level: 'trace' | 'debug' | 'info' | 'warn' | 'error';
  message: string;
  fields: Record<string, string>;
}

/**
 * Calls a plugin's functions as the server does, in this process. A failure is thrown, and so is an
 * `InferError` of `handle`; for any other exception the log has a line, and `Internal` is thrown.
 */
export class TestHost {
  /** The context of all calls; what is not given has a value for tests. */
  constructor(context?: Partial<Context>);
  /** The lines of all calls so far. */
  readonly log: LogLine[];
  /**
   * Let `run` be the model of this name for the calls of this host. It may throw an `InferError`.
   * Returns this host.
   */
  model(
    name: string,
    run: (inputs: Record<string, Tensor>) => Record<string, Tensor | NdArray>,
  ): this;
  /** Let the store of this name have these values, by key, for the calls of this host. */
  store(bucket: string, values?: Record<string, Content>): this;
  /**
   * Let `answer` answer the requests of `fetch` to URLs of this origin, such as
   * `https://api.example.com`. It may throw a `FetchError`. Returns this host.
   */
  service(origin: string, answer: (request: ServiceRequest) => ServiceAnswer): this;
  /** Let plugins open a file of this name, as if the pipeline named it. Returns this host. */
  asset(name: string, content: Content): this;
  /**
   * Let the `Tokenizer` of this file split texts at white space. A word's id is its place in `words`;
   * `[CLS]`, `[SEP]`, `[PAD]` and `[UNK]` are what BERT has them for, if they are there. Returns this
   * host.
   */
  tokenizer(asset: string, words: readonly string[]): this;
  /**
   * Let the table of this name have these rows, by key, for the calls of this host. `columns` are the
   * names of its columns, if it has some. Returns this host.
   */
  table(
    asset: string,
    rows: Record<string, ArrayLike<number>>,
    columns?: readonly string[],
  ): this;
  preprocess(
    plugin: { preprocess: Preprocess },
    request?: TestRequest,
  ): Promise<{ inputs: Record<string, Tensor>; state: State }>;
  /** `kept` finds what `preprocess` of this host has kept. */
  postprocess(
    plugin: { postprocess: Postprocess },
    outputs: Record<string, Tensor>,
    state?: State | Content,
  ): Promise<TestAnswer>;
  /** The models are those of `model`. */
  handle(plugin: { handle: Handle }, request?: TestRequest): Promise<TestAnswer>;
}
