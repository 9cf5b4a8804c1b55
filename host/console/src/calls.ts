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

/** Those of an OpenAPI document, in its order. */
export function operations(document: Doc): Operation[] {
  return Object.entries<Doc>(document.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => {
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

export const nameOf = ({ method, path }: Operation) => `${method} ${path}`;

/** The path with the values in it, and the query. Values that are not given are left out. */
export function address({ path, parameters }: Operation, values: Record<string, string>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name] ?? ""));
  const query = new URLSearchParams(given(parameters, "query", values));
  return query.size > 0 ? `${filled}?${query}` : filled;
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
