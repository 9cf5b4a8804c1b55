// What the server shows of itself, as it changes: from its stream of events, or by asking again and again if it is too
// old to have one.

import { type Api, type Doc, Problem } from "./api";
import { type Metrics, Readings, parse } from "./metrics";

export interface Shown {
  status: Doc;
  /** Missing if they are not for this token. */
  metrics?: Metrics;
}

/** The document with a merge patch (RFC 7396). What it does not touch stays the same object. */
export function patched(before: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const after = new Map(isObject(before) ? Object.entries(before) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) after.delete(name);
    else after.set(name, patched(after.get(name), value));
  }
  return Object.fromEntries(after);
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Tell `see` what the server shows, each second, until the server ends it or `signal` does. */
export async function follow(api: Api, signal: AbortSignal, see: (shown: Shown) => Promise<void>): Promise<void> {
  const readings = new Readings();
  let status: Doc = {};
  let metrics: Metrics | undefined;
  for await (const [kind, data] of api.events("events", signal)) {
    if (kind === "all") {
      status = data.status ?? {};
      metrics = typeof data.metrics === "string" ? readings.all(data.metrics) : undefined;
    } else if (kind === "changes") {
      if (data.status) status = patched(status, data.status) as Doc;
      if (metrics) metrics = readings.changed(data.metrics ?? "");
    } else continue;
    await see({ status, metrics });
  }
}

/** What the server shows now. */
export async function ask(api: Api, seesMetrics: boolean, signal: AbortSignal): Promise<Shown> {
  const [status, metrics] = await Promise.all([
    api.get("status", signal),
    seesMetrics ? api.text("/metrics", signal) : undefined,
  ]);
  return { status, metrics: metrics === undefined ? undefined : parse(metrics) };
}

/** Whether the server is one without a stream of events. */
export const isOlder = (error: unknown) => error instanceof Problem && error.status === 404;

/** Whether the server has too many listeners for now. */
export const isFull = (error: unknown) => error instanceof Problem && error.status === 429;
