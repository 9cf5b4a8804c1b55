// Calls of the admin API. Answers are documents of a server that may be older or newer than this page, so nothing here
// and nothing that reads them takes a key for granted.

/** A document of the server. */
export type Doc = Record<string, any>;

/** Why a call failed, as the server says it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly retryAfterS = 0,
  ) {
    super(detail);
  }
}

/** Answers whose tags are kept. */
const KEPT_MAX = 64;

export class Api {
  private kept = new Map<string, { tag: string; value: Doc }>();

  /** `refused` is told when the server does not take the token (any more). */
  constructor(
    private token: string,
    private refused: (why: unknown) => void = () => {},
  ) {}

  /** A document. What has not changed since the last call is not sent again. */
  async get(path: string, signal?: AbortSignal): Promise<Doc> {
    const kept = this.kept.get(path);
    const headers: Record<string, string> = kept ? { "if-none-match": kept.tag } : {};
    const answer = await this.send("GET", path, { headers, signal });
    if (answer.status === 304 && kept) return kept.value;
    const value = await answer.json();
    const tag = answer.headers.get("etag");
    this.kept.delete(path);
    if (tag) {
      this.kept.set(path, { tag, value });
      if (this.kept.size > KEPT_MAX) this.kept.delete(this.kept.keys().next().value!);
    }
    return value;
  }

  async text(path: string, signal?: AbortSignal): Promise<string> {
    return (await this.send("GET", path, { signal })).text();
  }

  /** The documents of a stream of events, each with its kind, until the server ends it. */
  async *events(path: string, signal: AbortSignal): AsyncGenerator<[kind: string, data: Doc]> {
    const headers = { accept: "text/event-stream" };
    const answer = await this.send("GET", path, { headers, signal });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    try {
      let text = "";
      for (;;) {
        const { done, value } = await reader.read().catch((error) => {
          if (signal.aborted) throw error;
          throw new Problem(0, "unreachable", "the connection to the server broke");
        });
        if (done) return;
        const parts = (text + value).split("\n\n");
        text = parts.pop()!;
        for (const part of parts) {
          const event = eventOf(part);
          if (event) yield event;
        }
      }
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  /** A document as the body. */
  async post(path: string, document: Doc = {}): Promise<Doc> {
    return (await this.send("POST", path, { body: JSON.stringify(document) })).json();
  }

  /** A call whose answer is a document that is not kept. */
  async call(method: string, path: string, init: RequestInit = {}): Promise<Doc> {
    return (await this.send(method, path, init)).json();
  }

  /** A file as the body. */
  async postBytes(path: string, body: Blob | string, contentType: string): Promise<Doc> {
    const headers: Record<string, string> = contentType ? { "content-type": contentType } : {};
    return (await this.send("POST", path, { body, headers })).json();
  }

  private async send(method: string, path: string, init: RequestInit): Promise<Response> {
    const answer = await this.ask(method, path, init);
    if (answer.ok || answer.status === 304) return answer;
    const problem = await problemOf(answer);
    if (isRefusal(problem) && path !== SELF) void this.checkToken();
    throw problem;
  }

  /** The answer to a call, of any status. */
  async ask(method: string, path: string, init: RequestInit): Promise<Response> {
    const headers = { ...init.headers, authorization: `Bearer ${this.token}` };
    try {
      return await fetch(path.startsWith("/") ? path : `/admin/v1/${path}`, {
        ...init,
        method,
        headers,
        credentials: "omit",
        cache: "no-store",
      });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem(0, "unreachable", "the server cannot be reached");
    }
  }

  /** A refusal can be the end of the token, or of something that its role may not do. */
  private async checkToken(): Promise<void> {
    try {
      await this.get(SELF);
    } catch (error) {
      if (isRefusal(error)) this.refused(error);
    }
  }
}

/** What every token may see: itself. */
export const SELF = "self";

const isRefusal = (error: unknown) => error instanceof Problem && (error.status === 401 || error.status === 403);

/** One event of a stream. A comment, which only keeps the connection alive, is none. */
export function eventOf(text: string): [kind: string, data: Doc] | undefined {
  const field = (name: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}: `))
      .map((line) => line.slice(name.length + 2))
      .join("\n");
  const data = field("data");
  return data ? [field("event"), JSON.parse(data)] : undefined;
}

async function problemOf(answer: Response): Promise<Problem> {
  const text = (await answer.text()).slice(0, 8192);
  const retryAfterS = Number(answer.headers.get("retry-after")) || 0;
  try {
    const { code, detail, title } = JSON.parse(text);
    return new Problem(answer.status, String(code ?? ""), String(detail ?? title ?? ""), retryAfterS);
  } catch {
    return new Problem(answer.status, "", text || answer.statusText, retryAfterS);
  }
}

/** What went wrong, in words. */
export function words(error: unknown): string {
  if (!(error instanceof Problem)) return error instanceof Error ? error.message : String(error);
  const code = error.code && error.code !== "unreachable" ? `${error.code}: ` : "";
  return `${code}${error.detail}`;
}

/** Names as parts of a path. */
export const path = (...names: string[]) => names.map(encodeURIComponent).join("/");

/** Whether this is text of a token that can be sent in a header. */
export const isToken = (text: string) => /^[!-~]{1,512}$/.test(text);
