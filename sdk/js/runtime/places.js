// The author's places of the bundle's lines, as the host reads them from this memory: it says where
// a call was that took too long. The host's `frames/javascript.rs` describes the form.

const HEAD = 'gristmill.places';

/** The bytes to keep in memory, of the table that the build has made. */
export function placesForHost({ bundle = '', files = [], lines = [] }) {
  const encoder = new TextEncoder();
  const head = encoder.encode(HEAD);
  const names = encoder.encode([bundle, ...files].join('\n'));
  const numbers = [lines.length, names.length];
  // Where the name of each file begins. That of the bundle, at 0, stands for no file.
  let begin = encoder.encode(bundle).length + 1;
  const begins = files.map((file) => {
    const at = begin;
    begin += encoder.encode(file).length + 1;
    return at;
  });
  for (const [file, line] of lines) numbers.push(begins[file] ?? 0, line);
  const bytes = new Uint8Array(head.length + 4 * numbers.length + names.length);
  bytes.set(head);
  bytes.set(new Uint8Array(Uint32Array.from(numbers).buffer), head.length);
  bytes.set(names, head.length + 4 * numbers.length);
  return bytes;
}
