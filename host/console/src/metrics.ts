// The server's metrics: reading Prometheus' text, and what two readings say about the time between them.

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** The samples by the names of their series. */
export type Metrics = Map<string, Sample[]>;

export function parse(text: string): Metrics {
  const metrics: Metrics = new Map();
  for (const line of text.split("\n")) {
    if (!line || line[0] === "#") continue;
    const sample = parseLine(line);
    if (!sample) continue;
    const [name, labels, value] = sample;
    const series = metrics.get(name);
    if (series) series.push({ labels, value });
    else metrics.set(name, [{ labels, value }]);
  }
  return metrics;
}

const ESCAPES: Record<string, string> = { n: "\n" };

function parseLine(line: string): [string, Record<string, string>, number] | undefined {
  const open = line.indexOf("{");
  const blank = line.indexOf(" ");
  if (blank < 0) return undefined;
  if (open < 0 || blank < open) return [line.slice(0, blank), {}, Number(line.slice(blank + 1).split(" ")[0])];
  const labels: Record<string, string> = Object.create(null);
  const label = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)",?/y;
  label.lastIndex = open + 1;
  let end = open + 1;
  for (let found = label.exec(line); found; found = label.exec(line)) {
    labels[found[1]] = found[2].replace(/\\(.)/g, (_, escaped: string) => ESCAPES[escaped] ?? escaped);
    end = label.lastIndex;
  }
  if (line[end] !== "}") return undefined;
  return [line.slice(0, open), labels, Number(line.slice(end + 1).trim().split(" ")[0])];
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
