// The server's metrics: reading Prometheus' text, and what two readings say about the time between them.

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** The samples by the names of their series. */
export interface Metrics {
  get(name: string): Sample[] | undefined;
}

export const parse = (text: string): Metrics => new Readings().all(text);

/**
 * Readings of which the server sends only the lines that have changed. With a thousand tenants a reading has a hundred
 * thousand lines, and a page looks at a few of their names: the samples of the others are not parsed.
 */
export class Readings {
  private newest = new Map<string, Series>();

  /** A whole reading. */
  all(text: string): Metrics {
    this.newest = new Map([...linesByName(text)].map(([name, lines]) => [name, new Series(lines)]));
    return reading(this.newest);
  }

  /** The reading with these new values. The ones before stay as they were, and share what is the same. */
  changed(text: string): Metrics {
    const after = new Map(this.newest);
    for (const [name, lines] of linesByName(text)) {
      const before = after.get(name);
      if (before) after.set(name, before.changed(lines));
    }
    this.newest = after;
    return reading(after);
  }
}

const reading = (series: Map<string, Series>): Metrics => ({ get: (name) => series.get(name)?.samples });

/** The samples of one name. They are parsed when they are asked for. */
class Series {
  private parsed?: (Sample | undefined)[];
  private places?: Map<string, number>;

  constructor(private readonly lines: string[]) {}

  get samples(): Sample[] {
    this.parsed ??= this.lines.map(parseLine);
    // A line that no server writes has no sample.
    const { parsed } = this;
    return parsed.includes(undefined) ? parsed.filter((sample) => sample !== undefined) : (parsed as Sample[]);
  }

  changed(lines: string[]): Series {
    this.places ??= new Map(this.lines.map((line, index) => [withoutValue(line), index]));
    const after = new Series([...this.lines]);
    after.places = this.places;
    after.parsed = this.parsed && [...this.parsed];
    for (const line of lines) {
      const index = this.places.get(withoutValue(line));
      if (index === undefined) continue;
      after.lines[index] = line;
      const sample = this.parsed?.[index];
      if (sample) after.parsed![index] = { labels: sample.labels, value: valueOf(line) };
    }
    return after;
  }
}

function linesByName(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [open, blank] = [line.indexOf("{"), line.indexOf(" ")];
    if (line[0] === "#" || blank < 0) continue;
    const name = line.slice(0, open < 0 || blank < open ? blank : open);
    const lines = found.get(name);
    if (lines) lines.push(line);
    else found.set(name, [line]);
  }
  return found;
}

const withoutValue = (line: string) => line.slice(0, line.lastIndexOf(" "));
const valueOf = (line: string) => Number(line.slice(line.lastIndexOf(" ") + 1));

const ESCAPES: Record<string, string> = { n: "\n" };

function parseLine(line: string): Sample | undefined {
  const open = line.indexOf("{");
  const blank = line.indexOf(" ");
  if (open < 0 || blank < open) return { labels: {}, value: valueOf(line) };
  const labels: Record<string, string> = Object.create(null);
  const label = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)",?/y;
  label.lastIndex = open + 1;
  let end = open + 1;
  for (let found = label.exec(line); found; found = label.exec(line)) {
    labels[found[1]] = found[2].replace(/\\(.)/g, (_, escaped: string) => ESCAPES[escaped] ?? escaped);
    end = label.lastIndex;
  }
  return line[end] === "}" ? { labels, value: valueOf(line) } : undefined;
}

export type Wanted = Record<string, string>;

/** The sum of the samples that have these labels. Undefined if the server does not have the series at all. */
export function sum(metrics: Metrics | undefined, name: string, wanted: Wanted = {}): number | undefined {
  const series = metrics?.get(name);
  if (!series) return undefined;
  let total = 0;
  for (const sample of series) if (fits(sample.labels, wanted)) total += sample.value;
  return total;
}

function fits(labels: Record<string, string>, wanted: Wanted): boolean {
  for (const key in wanted) if (labels[key] !== wanted[key]) return false;
  return true;
}

/** The values of a label, sorted. */
export function values(metrics: Metrics | undefined, name: string, label: string): string[] {
  const found = new Set<string>();
  for (const { labels } of metrics?.get(name) ?? []) if (labels[label]) found.add(labels[label]);
  return [...found].sort();
}

/** Two readings and the seconds between them. */
export interface Span {
  before: Metrics;
  after: Metrics;
  seconds: number;
}

/**
 * The span cut into parts that have the same values of these labels, in one pass over the samples: with a thousand
 * tenants, looking for the samples of each would take a thousand passes.
 */
export function split(
  span: Span,
  names: readonly string[],
  labels: readonly string[],
): { values: Record<string, string>; span: Span }[] {
  type Part = { values: Record<string, string>; span: Record<"before" | "after", Map<string, Sample[]>> & { seconds: number } };
  const parts = new Map<string, Part>();
  for (const side of ["after", "before"] as const) {
    for (const name of names) {
      for (const sample of span[side].get(name) ?? []) {
        const values = labels.map((label) => sample.labels[label] ?? "");
        const key = values.join("\n");
        let part = parts.get(key);
        if (!part) {
          if (side === "before") continue;
          part = {
            values: Object.fromEntries(labels.map((label, index) => [label, values[index]])),
            span: { before: new Map(), after: new Map(), seconds: span.seconds },
          };
          parts.set(key, part);
        }
        const series = part.span[side].get(name);
        if (series) series.push(sample);
        else part.span[side].set(name, [sample]);
      }
    }
  }
  return [...parts.values()];
}

/** How much a counter grew. A counter that fell has begun anew, with the server. */
export function growth(span: Span | undefined, name: string, wanted: Wanted = {}): number | undefined {
  const after = sum(span?.after, name, wanted);
  if (!span || after === undefined) return undefined;
  const grown = after - (sum(span.before, name, wanted) ?? 0);
  return grown < 0 ? after : grown;
}

/** The same in a second. */
export function rate(span: Span | undefined, name: string, wanted: Wanted = {}): number | undefined {
  const grown = growth(span, name, wanted);
  return grown === undefined || !span || span.seconds <= 0 ? undefined : grown / span.seconds;
}

/** The mean of what a histogram measured. Undefined if nothing was. */
export function mean(span: Span | undefined, name: string, wanted: Wanted = {}): number | undefined {
  const count = growth(span, `${name}_count`, wanted);
  const total = growth(span, `${name}_sum`, wanted);
  return count && total !== undefined ? total / count : undefined;
}

/** The value that this share of what a histogram measured is below, within the bounds of its buckets. */
export function quantile(
  span: Span | undefined,
  name: string,
  share: number,
  wanted: Wanted = {},
): number | undefined {
  if (!span) return undefined;
  const counts = new Map<number, number>();
  const add = (metrics: Metrics, sign: number) => {
    for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
      if (!fits(labels, wanted)) continue;
      const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
      counts.set(bound, (counts.get(bound) ?? 0) + sign * value);
    }
  };
  add(span.after, 1);
  add(span.before, -1);
  const bounds = [...counts.keys()].sort((one, other) => one - other);
  const total = counts.get(Infinity) ?? 0;
  if (total <= 0) return undefined;
  let [below, lower] = [0, 0];
  for (const bound of bounds) {
    const upTo = counts.get(bound)!;
    if (upTo >= share * total) {
      if (bound === Infinity) return lower;
      return lower + ((bound - lower) * (share * total - below)) / Math.max(upTo - below, 1e-9);
    }
    [below, lower] = [upTo, bound];
  }
  return lower;
}
