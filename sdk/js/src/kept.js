// Pictures, tensors and bodies that a preprocessor keeps for the postprocessor of the same request.

import * as host from '#host';
import { Body } from './body.js';
import { Internal } from './failure.js';
import { Pixels } from './image.js';
import { NdArray } from './numpy.js';
import { release } from './resources.js';
import { Tensor, wrap } from './tensor.js';

/** What the preprocessor of this request kept under this name. */
export function kept(name) {
  if (typeof name !== 'string') throw new TypeError('kept: the name is not a string');
  const found = host.takeKept(name);
  if (found == null) {
    throw new Internal(`nothing is kept as "${name}": name it in \`keep\` of what preprocess returns`);
  }
  const { tag, val } = found;
  if (tag === 'tensor') return wrap(val);
  return tag === 'pixels' ? new Pixels(val, val.color()) : new Body(val);
}

/** What is to be kept, in the contract's form: `[{ name, value: { tag, val } }]`. */
export function lowered(keep = {}) {
  if (typeof keep !== 'object' || keep === null) {
    throw new TypeError('preprocess: keep is not { NAME: picture, tensor or body }');
  }
  return Object.entries(keep).map(([name, given]) => ({ name, value: valueOf(name, given) }));
}

function valueOf(name, given) {
  const thing = given instanceof NdArray ? given.tensor() : given;
  if (Tensor.is(thing)) return { tag: 'tensor', val: Tensor.raw(thing) };
  if (thing instanceof Pixels) return { tag: 'pixels', val: Pixels.raw(thing) };
  if (thing instanceof Body) return { tag: 'blob', val: Body.raw(thing) };
  throw new TypeError(`preprocess: keep "${name}" is neither Pixels, a Tensor nor a Body`);
}

/** Hand all of them to the host. The call no longer holds them. */
export function putAll(things) {
  for (const { name, value } of things) {
    release(value.val);
    try {
      host.keep(name, value);
    } catch (error) {
      throw typeof error?.payload === 'string' ? new Internal(`keeping "${name}": ${error.payload}`) : error;
    }
  }
}
