// The operations of the API's description, and the requests that they mean.

import type { Doc } from "./api";

export interface Operation {
  method: string;
  path: string;
  group: string;
  summary: string;
  about: string;
  parameters: Doc[];
  /** What is sent: a document, or a file. */
  body?: "document" | "file";
}

const METHODS = ["get", "put", "post", "patch", "delete"];

/** Those of an OpenAPI document, in its order. Those whose answers are events are left out: these do not end. */
export function operations(document: Doc): Operation[] {
  return Object.entries<Doc>(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method] && !answersEvents(item[method])).map((method) => {
      const operation: Doc = item[method];
      const types = Object.keys(operation.requestBody?.content ?? {});
      return {
        method: method.toUpperCase(),
        path,
        group: String(operation.tags?.[0] ?? ""),
        summary: String(operation.summary ?? ""),
        about: String(operation.description ?? ""),
        parameters: Array.isArray(operation.parameters) ? operation.parameters : [],
        body: types.length === 0 ? undefined : types.includes("application/json") ? "document" : "file",
      };
    }),
  );
}

const answersEvents = ({ responses }: Doc) =>
  Object.values<Doc>(responses ?? {}).some(({ content }) => content?.["text/event-stream"]);

export const nameOf = ({ method, path }: Operation) => `${method} ${path}`;

/** The path with the values in it, and the query. Values that are not given are left out. */
export function address({ path, parameters }: Operation, values: Record<string, string>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => part(values[name] ?? ""));
  const query = new URLSearchParams(given(parameters, "query", values));
  return query.size > 0 ? `${filled}?${query}` : filled;
}

function part(value: string): string {
  // Browsers take these two for folders, also if they are encoded, and would call another resource.
  if (value === "." || value === "..") throw new Error(`a part of a path cannot be "${value}"`);
  return encodeURIComponent(value);
}

/** The first bytes of a body, about `max`. The rest is not read: a model would fill the browser's memory. */
export async function beginning(body: ReadableStream<Uint8Array<ArrayBuffer>> | null, max: number): Promise<Uint8Array<ArrayBuffer>> {
  const reader = body?.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let length = 0; reader && length < max; ) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    length += value.length;
  }
  void reader?.cancel().catch(() => {});
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

/** The headers whose values are given. A header has bytes: those of UTF-8. */
export function headers({ parameters, body }: Operation, values: Record<string, string>): Record<string, string> {
  const bytes = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));
  const own = given(parameters, "header", values).map(([name, value]) => [name, bytes(value)]);
  return { ...(body === "document" && { "content-type": "application/json" }), ...Object.fromEntries(own) };
}

const given = (parameters: Doc[], place: string, values: Record<string, string>) =>
  parameters
    .filter((parameter) => parameter.in === place && values[parameter.name])
    .map(({ name }) => [String(name), values[name]]);
