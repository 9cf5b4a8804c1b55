// The stages of a request as bars, one after the other.

import { type Span, mean } from "./metrics";

/** In the order in which a request passes them, with what each is. Those that are parts of others are not among them. */
export const STAGES: readonly [string, string][] = [
  ["auth", "finding the caller"],
  ["read", "reading the body"],
  ["pre", "the plugin's preprocess"],
  ["handle", "the plugin's handler"],
  ["queue", "waiting for a batch"],
  ["infer", "running the model"],
  ["post", "the plugin's postprocess"],
];

export interface Bar {
  stage: string;
  seconds: number;
  /** Where it begins and how long it is, in percent of all. */
  left: number;
  width: number;
}

/** The bars of these times. Stages that took no time and those that were not reached have none. */
export function waterfall(times: readonly (readonly [string, number])[]): Bar[] {
  const shown = times.filter(([, seconds]) => Number.isFinite(seconds) && seconds > 0);
  const total = shown.reduce((all, [, seconds]) => all + seconds, 0);
  let begin = 0;
  return shown.map(([stage, seconds]) => {
    const bar = { stage, seconds, left: (100 * begin) / total, width: (100 * seconds) / total };
    begin += seconds;
    return bar;
  });
}

/** The mean time in each stage, of the requests that reached it. */
export function meanStages(span: Span | undefined, wanted: Record<string, string>): [string, number][] {
  const name = "gristmill_request_stage_duration_seconds";
  return STAGES.flatMap(([stage]): [string, number][] => {
    const seconds = mean(span, name, { ...wanted, stage });
    return seconds === undefined ? [] : [[stage, seconds]];
  });
}

/** The stages of a document with microseconds. */
export function stagesOf(document: unknown): [string, number][] {
  if (typeof document !== "object" || document === null) return [];
  const times = document as Record<string, unknown>;
  return STAGES.flatMap(([stage]): [string, number][] => {
    const us = times[stage];
    return typeof us === "number" ? [[stage, us / 1e6]] : [];
  });
}
