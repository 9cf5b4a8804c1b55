// The reference host's log: lines are kept for the test to look at.

let lines = [];

export function write(level, message, fields) {
  const entries = fields.map(({ name, value }) => [name, value]);
  lines.push({ level, message, fields: Object.fromEntries(entries) });
}

/** The lines since the last call of this function. */
export function takeLines() {
  const taken = lines;
  lines = [];
  return taken;
}
