// Runs of the pipeline's models, for a handler.

import { NdArray } from './numpy.js';
import { Outputs } from './outputs.js';
import { Tensor } from './tensor.js';

/** The HTTP statuses of errors that the plugin does not catch, by the contract's names. */
const STATUSES = {
  'not-granted': 500,
  'invalid-input': 500,
  overloaded: 503,
  unavailable: 503,
  failed: 500,
};

/** Why a model gave no outputs. */
export class InferError extends Error {
  constructor(kind, message) {
    if (!Object.hasOwn(STATUSES, kind)) {
      throw new TypeError(`the kinds of InferError are ${Object.keys(STATUSES).join(', ')}, not ${kind}`);
    }
    super(message);
    this.kind = kind;
  }

  /** The HTTP status that the client gets if the plugin does not catch it. */
  get status() {
    return STATUSES[this.kind];
  }
}
Object.defineProperty(InferError.prototype, 'name', { value: 'InferError' });

/** The host's interface. A component has it only if it exports `handle`: see `handler.js`. */
let host;

/** Not for plugins. */
export function useHost(found) {
  host = found;
}

/** The pipeline's models. */
export const models = {
  infer(model, inputs) {
    const given = lowered('infer', model, inputs);
    try {
      return new Outputs(interfaceOf().infer(model, given));
    } catch (error) {
      throw error?.payload?.tag in STATUSES ? fromContract(error.payload) : error;
    }
  },

  inferAll(runs) {
    if (!Array.isArray(runs)) throw new TypeError('inferAll: the runs are not an array');
    const given = runs.map((run) => {
      const { model, inputs } = run ?? {};
      return { model, inputs: lowered('inferAll', model, inputs) };
    });
    return interfaceOf()
      .inferAll(given)
      .map(({ tag, val }) => (tag === 'ok' ? new Outputs(val) : fromContract(val)));
  },
};

function interfaceOf() {
  if (host === undefined) throw new Error('only a component that exports handle can run models');
  return host;
}

/** The inputs in the contract's form. The bindings do not say what is wrong with a value. */
function lowered(call, model, inputs) {
  if (typeof model !== 'string') throw new TypeError(`${call}: the model's name is not a string`);
  if (typeof inputs !== 'object' || inputs === null) {
    throw new TypeError(`${call}: the inputs of model "${model}" are not { NAME: tensor }`);
  }
  return Object.entries(inputs).map(([name, given]) => {
    const tensor = given instanceof NdArray ? given.tensor() : given;
    if (!Tensor.is(tensor)) {
      throw new TypeError(`${call}: input "${name}" of model "${model}" is not a Tensor`);
    }
    return [name, Tensor.raw(tensor)];
  });
}

function fromContract({ tag, val }) {
  return new InferError(tag, val);
}
