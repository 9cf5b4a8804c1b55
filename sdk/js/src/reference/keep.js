// What preprocess keeps for postprocess, in unit tests: both run in this process.

const encoder = new TextEncoder();

const NAME_BYTES_MAX = 1024;

let kept = new Map();

/** Keep things here from now on: a map from names to things, in the contract's form. */
export function useKept(things) {
  kept = things;
}

export function keep(name, value) {
  const { length } = encoder.encode(name);
  if (length > NAME_BYTES_MAX) {
    const why = `the name has ${length} bytes; the limit is ${NAME_BYTES_MAX}`;
    throw Object.assign(new Error(why), { payload: why });
  }
  kept.set(name, value);
}

export function takeKept(name) {
  const found = kept.get(name);
  kept.delete(name);
  return found;
}
