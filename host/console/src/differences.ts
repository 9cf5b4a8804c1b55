// What a release changes, in words.

import type { Doc } from "./api";
import { cut } from "./format";

/** The longest value that is shown. */
const VALUE_MAX = 120;

/** The most sentences of one thing. */
const LINES_MAX = 40;

export interface Words {
  /** Such as `pipeline acme/digits`. */
  thing: string;
  /** Such as `is new`. */
  what: string;
  lines: string[];
}

/** The differences that a dry run answers. */
export function inWords(differences: unknown): Words[] {
  if (!Array.isArray(differences)) return [];
  return differences.map((difference: Doc) => {
    const before = difference?.before ?? null;
    const after = difference?.after ?? null;
    const what = before === null ? "is new" : after === null ? "goes away" : "changes";
    const lines = before === null || after === null ? [] : changed(before, after);
    return { thing: thing(difference), what, lines };
  });
}

/** What may do more (+), what less (−), and where that is unknown (?), as a dry run answers it. */
export function powerInWords(power: unknown): string[] {
  if (!Array.isArray(power)) return [];
  const mark = (trend: unknown) => (trend === "more" ? "+" : trend === "less" ? "−" : "?");
  return power.map((one: Doc) => `${mark(one?.trend)} ${thing(one)}: ${cut(String(one?.text ?? ""), 4000)}`);
}

function thing(difference: Doc): string {
  const names = ["tenant", "pipeline", "plugin", "asset", "key", "model", "token"];
  const own = names.filter((name) => typeof difference?.[name] === "string").map((name) => difference[name]);
  return [String(difference?.kind ?? "thing").replace(/_/g, " "), own.join("/")].join(" ").trim();
}

/** A line for each value that differs, at its deepest key. */
export function changed(before: unknown, after: unknown): string[] {
  const lines: string[] = [];
  walk("", before, after, lines);
  return lines.length > LINES_MAX
    ? [...lines.slice(0, LINES_MAX), `and ${lines.length - LINES_MAX} more`]
    : lines;
}

const isObject = (value: unknown): value is Doc =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function walk(at: string, before: unknown, after: unknown, lines: string[]): void {
  if (isObject(before) && isObject(after)) {
    const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
    for (const key of keys) walk(at ? `${at}.${key}` : key, before[key], after[key], lines);
    return;
  }
  const [from, to] = [shown(before), shown(after)];
  if (from === to) return;
  if (before === undefined || before === null) lines.push(`${at}: ${to} is added`);
  else if (after === undefined || after === null) lines.push(`${at}: ${from} is taken away`);
  else lines.push(`${at}: ${from} becomes ${to}`);
}

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "");
  const digest = /^sha256:([0-9a-f]{12})[0-9a-f]{52}$/.exec(text);
  return digest ? `sha256:${digest[1]}…` : cut(text, VALUE_MAX);
}
