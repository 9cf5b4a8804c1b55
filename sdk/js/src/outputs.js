// The model's outputs, as a postprocessor gets them.

import { Internal } from './failure.js';
import { wrap } from './tensor.js';

/** This request's rows of the model's outputs. Iterable: pairs of a name and a tensor. */
export class Outputs {
  #named;

  /** `named` has the host's objects: `[{ name, tensor }]`. */
  constructor(named) {
    this.#named = named.map(({ name, tensor }) => ({ name, tensor: wrap(tensor) }));
  }

  get names() {
    return this.#named.map(({ name }) => name);
  }

  get(name, shape, dtype) {
    const found = this.#named.find((output) => output.name === name);
    if (found === undefined) {
      const names = this.names.map((known) => `"${known}"`).join(', ');
      throw new Internal(`the model has no output "${name}", it has ${names || 'none'}`);
    }
    const { tensor } = found;
    if (dtype !== undefined && tensor.dtype !== dtype) {
      throw new Internal(`output "${name}" is ${tensor.dtype}, wanted ${dtype}`);
    }
    if (shape !== undefined && !fits(shape, tensor.shape)) {
      const wanted = shape.map((dim) => dim ?? 'any').join(', ');
      throw new Internal(`output "${name}" has shape [${tensor.shape.join(', ')}], wanted [${wanted}]`);
    }
    return tensor;
  }

  view(name, shape, dtype = 'float32') {
    return this.get(name, shape, dtype).data();
  }

  *[Symbol.iterator]() {
    for (const { name, tensor } of this.#named) yield [name, tensor];
  }
}

function fits(wanted, shape) {
  if (wanted.length !== shape.length) return false;
  for (let axis = 0; axis < shape.length; axis++) {
    const dim = wanted[axis];
    if (dim !== null && dim !== undefined && dim !== shape[axis]) return false;
  }
  return true;
}
