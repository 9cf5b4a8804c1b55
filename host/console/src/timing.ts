// The header `Server-Timing` of the data plane.

import { STAGES } from "./stages";

/** The stages with their times in seconds. What is no known stage is not among them: `lookup` is a part of others. */
export function serverTiming(header: string | null): [string, number][] {
  const found = new Map<string, number>();
  for (const entry of (header ?? "").split(",")) {
    const [, stage, ms] = /^\s*([a-z]+);dur=([0-9.]+)\s*$/.exec(entry) ?? [];
    if (stage) found.set(stage, Number(ms) / 1e3);
  }
  return STAGES.flatMap(([stage]): [string, number][] => {
    const time = found.get(stage);
    return time === undefined ? [] : [[stage, time]];
  });
}
