// The calls: from the contract's values to those of the author's functions, and back. The same
// code runs in a component and in unit tests.

import { Context } from './context.js';
import { Failure, toContract } from './failure.js';
import { logFault } from './fault.js';
import { lowered, putAll } from './kept.js';
import { InferError } from './models.js';
import { NdArray } from './numpy.js';
import { Outputs } from './outputs.js';
import { beginCall } from './program.js';
import { PluginRequest } from './request.js';
import { giveBackAll, hold, isHeld, release } from './resources.js';
import { PluginResponse } from './response.js';
import { State, stateBytes } from './state.js';
import { Tensor } from './tensor.js';

/** The contract's `preprocess` around an author's function. */
export function exportPreprocess(preprocess) {
  return (context, request) =>
    call(context, request, () => preprocess(new Context(context), new PluginRequest(request)), prepared);
}

/** The contract's `postprocess` around an author's function. */
export function exportPostprocess(postprocess) {
  return (context, outputs, state) => {
    const run = () => postprocess(new Context(context), new Outputs(outputs), new State(state));
    return call(context, undefined, run, (value) => response(value, 'postprocess'));
  };
}

/** The contract's `handle` around an author's function. */
export function exportHandle(handle) {
  return (context, request) => {
    const run = () => handle(new Context(context), new PluginRequest(request));
    return call(context, request, run, (value) => response(value, 'handle'), handleError);
  };
}

/** Ends the call under way, if it waits for a promise. */
let reject;

/** Code of the call under way threw where nothing catches it, such as in a timer. */
export function fail(error) {
  if (reject === undefined) logFault(error);
  else reject(error);
}

/** What a promise gives, unless the call fails before. */
function unlessFailed(value) {
  return new Promise((resolve, refuse) => {
    reject = refuse;
    value.then(resolve, refuse);
  }).finally(() => { reject = undefined; });
}

/**
 * Run the author's function. If it is asynchronous, the result is a promise. `toError` makes the
 * contract's form of what it threw; the bindings return that to the host.
 */
function call(context, request, run, toResult, toError = failure) {
  beginCall();
  hold(context);
  if (request !== undefined) hold(request);
  let pending = false;
  try {
    const value = run();
    if (typeof value?.then !== 'function') return toResult(value);
    pending = true;
    return unlessFailed(value).then(toResult).catch((error) => { throw toError(error); }).finally(giveBackAll);
  } catch (error) {
    throw toError(error);
  } finally {
    if (!pending) giveBackAll();
  }
}

function failure(error) {
  return toContract(error instanceof Failure ? error : logFault(error));
}

function handleError(error) {
  if (error instanceof InferError) return { tag: 'infer', val: { tag: error.kind, val: error.message } };
  return { tag: 'failure', val: failure(error) };
}

function prepared(value) {
  if (typeof value?.inputs !== 'object' || value.inputs === null) {
    throw new TypeError(`preprocess returned ${kind(value)}, not { inputs: { NAME: tensor } }`);
  }
  const state = stateBytes(value.state);
  const inputs = Object.entries(value.inputs).map(([name, given]) => {
    const tensor = given instanceof NdArray ? given.tensor() : given;
    if (!Tensor.is(tensor)) {
      throw new TypeError(`preprocess: input "${name}" is ${kind(given)}, not a Tensor`);
    }
    return { name, tensor: Tensor.raw(tensor) };
  });
  // Before the first is given away: an array can be made of another one's tensor.
  const things = lowered(value.keep);
  for (const { name, value: { val } } of things) {
    const isInput = inputs.some(({ tensor }) => tensor === val);
    if (isInput || things.some((other) => other.name !== name && other.value.val === val) || !isHeld(val)) {
      throw new TypeError(`preprocess: keep "${name}" is an input, is kept twice or is of another call`);
    }
  }
  // If the host refuses one, the call still holds the inputs, and gives them back.
  putAll(things);
  for (const { name, tensor } of inputs) {
    if (!release(tensor)) {
      throw new TypeError(`preprocess: input "${name}" is a tensor of another input or call`);
    }
  }
  return { inputs, state };
}

function response(value, name) {
  if (!(value instanceof PluginResponse)) {
    throw new TypeError(`${name} returned ${kind(value)}, not a PluginResponse`);
  }
  return value;
}

/** What a value is, for people: the name of its class, or undefined and null themselves. */
function kind(value) {
  return value == null ? String(value) : value.constructor?.name ?? typeof value;
}
