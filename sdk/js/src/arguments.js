// Checks of arguments, and errors of the host as exceptions.

import { Unprocessable } from './failure.js';

const U32_MAX = 0xffff_ffff;

export function text(name, value) {
  if (typeof value !== 'string') throw new TypeError(`${name} is not a string`);
  return value;
}

export function u32(name, value) {
  if (Number.isInteger(value) && value >= 0 && value <= U32_MAX) return value;
  throw new TypeError(`${name} is ${String(value)}, not a whole number up to ${U32_MAX}`);
}

/** What the host answers, or its error as an exception: one of `kinds` as an `ErrorOfKind`. */
export function asked(ask, kinds, ErrorOfKind) {
  try {
    return ask();
  } catch (error) {
    const { tag, val } = error?.payload ?? {};
    if (tag === 'too-large') throw new Unprocessable(val);
    throw kinds.includes(tag) ? new ErrorOfKind(tag, val) : error;
  }
}
