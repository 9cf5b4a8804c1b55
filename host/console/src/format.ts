// Figures as people read them. What is missing is shown as "-": an older server does not send it.

export const NONE = "-";

const known = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** A count or a rate, with three digits that mean something. */
export function number(value: unknown): string {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)} G`;
  if (size >= 1e6) return `${trim(value / 1e6)} M`;
  if (size >= 1e4) return `${trim(value / 1e3)} k`;
  return Number.isInteger(value) ? String(value) : trim(value);
}

export function bytes(value: unknown): string {
  if (!known(value)) return NONE;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = value;
  while (Math.abs(left) >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit ? trim(left) : left} ${units[unit]}`;
}

/** A time in seconds. */
export function seconds(value: unknown): string {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${trim(value * 1e6)} µs`;
  if (size < 1) return `${trim(value * 1e3)} ms`;
  if (size < 120) return `${trim(value)} s`;
  if (size < 7200) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  if (size < 172800) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86400)} d ${Math.floor((value % 86400) / 3600)} h`;
}

export const milliseconds = (value: unknown) => seconds(known(value) ? value / 1e3 : undefined);

/** A time of day, with the date if it is another day's. */
export function moment(value: unknown, now = new Date()): string {
  if (typeof value !== "string" && !known(value)) return NONE;
  const at = new Date(value);
  if (Number.isNaN(at.getTime())) return NONE;
  const two = (part: number) => String(part).padStart(2, "0");
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":");
  if (at.toDateString() === now.toDateString()) return time;
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${time}`;
}

export function text(value: unknown): string {
  return value === undefined || value === null || value === "" ? NONE : String(value);
}

/** A text that is no longer than this many characters. */
export function cut(value: string, max: number): string {
  return value.length > max ? `${value.slice(0, max - 1)}…` : value;
}

function trim(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const text = value.toFixed(digits);
  return digits ? text.replace(/\.?0+$/, "") : text;
}
