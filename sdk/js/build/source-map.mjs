// The part of a source map that a stack needs: for each line of the bundle the place where its
// first code comes from.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** `mappings` of a source map as [index of the source, line from 1 on] for each line; or [-1, 0]. */
export function originalLines(mappings) {
  let source = 0;
  let line = 0;
  return mappings.split(';').map((segments) => {
    let first;
    for (const segment of segments.split(',')) {
      const values = decode(segment);
      if (values.length < 4) continue;
      source += values[1];
      line += values[2];
      first ??= [source, line + 1];
    }
    return first ?? [-1, 0];
  });
}

/** The numbers of one segment: base 64 digits of five bits each, the lowest first, then a sign. */
function decode(segment) {
  const values = [];
  let value = 0;
  let shift = 0;
  for (const character of segment) {
    const digit = DIGITS.indexOf(character);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    values.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return values;
}
