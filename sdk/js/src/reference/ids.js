// The reference host's keys that a tensor holds.

import { refusal } from './refusal.js';
import { ReferenceTensor } from './tensor.js';

/** The elements of a tensor of int64 or of strings of one dimension, as texts. */
export function idsOf(what, tensor) {
  const { dtype, shape, elements } = ReferenceTensor.parts(tensor);
  if (!['int64', 'string'].includes(dtype) || shape.length !== 1) {
    throw refusal('invalid-argument', `${what} must be a tensor of int64 or strings of one dimension`);
  }
  return Array.from(elements, String);
}
