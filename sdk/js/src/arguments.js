// Checks of arguments, and errors of the host as exceptions.

import { Internal, Unprocessable } from './failure.js';

const U32_MAX = 0xffff_ffff;

export function text(name, value) {
  if (typeof value !== 'string') throw new TypeError(`${name} is not a string`);
  return value;
}

export function u32(name, value) {
  if (Number.isInteger(value) && value >= 0 && value <= U32_MAX) return value;
  throw new TypeError(`${name} is ${String(value)}, not a whole number up to ${U32_MAX}`);
}

/** A class of errors with a `kind`, one of `kinds`: the plugin's own fault if nothing catches one. */
export function errorOf(name, kinds) {
  class ErrorOfKind extends Internal {
    constructor(kind, message) {
      if (!kinds.includes(kind)) {
        throw new TypeError(`the kinds of ${name} are ${kinds.join(', ')}, not ${kind}`);
      }
      super(message);
      this.kind = kind;
    }
  }
  for (const named of [ErrorOfKind, ErrorOfKind.prototype]) {
    Object.defineProperty(named, 'name', { value: name });
  }
  return ErrorOfKind;
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
