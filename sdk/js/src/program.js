// Operations on arrays that are noted, and run by the host when a result is read: all that a result
// is made of becomes one program, as `wit/arrays.wit` describes it.

import * as host from '#host';
import { stringify } from './json.js';
import { ours } from './realm.js';
import { listOf, Tensor, wrap } from './tensor.js';

/** Longer programs are run in parts. */
const STEPS_MAX = 1000;

/** Longer chains of operations are run before they are read, and cut there. */
const DEPTH_MAX = 500;

/** What is read stays in the plugin's memory up to so many bytes. */
const KNOWN_MAX = 1024;

const KINDS = {
  'invalid-value': 'value',
  'invalid-index': 'index',
  'invalid-type': 'type',
  'invalid-program': 'program',
};

/** An operation on arrays was refused. If the plugin does not catch it, the client gets 500. */
export class ArrayError extends Error {
  constructor(kind, message) {
    super(message);
    this.kind = kind;
  }
}
Object.defineProperty(ArrayError.prototype, 'name', { value: 'ArrayError' });

/**
 * The call under way; 0 while the module is loaded. The host's tensors end with their call, so a
 * node that outlives it is made again in each later call.
 */
let call = 0;

/** The last walk and the last program. Their numbers on nodes are faster than sets of nodes. */
let walks = 0;
let programs = 0;

/** A call begins. */
export function beginCall() {
  call += 1;
}

/** The node of an operation on other nodes. `params` are values that a program's JSON has. */
export function note(op, args, params) {
  let depth = 1;
  // Loops over an iterator take the engine long, here and below.
  for (let at = 0; at < args.length; at++) {
    const arg = args[at];
    arg.uses += 1;
    // A module has no host while it is loaded.
    if (arg.depth >= DEPTH_MAX && call > 0) cut(arg);
    else if (arg.depth >= depth) depth = arg.depth + 1;
  }
  const noted = node(op, args, params, depth);
  noted.place = new Error();
  return noted;
}

/** The node of a tensor. It lives as long as the call. */
export function held(tensor) {
  const given = node(undefined, [], [], 0);
  keep(given, tensor);
  return given;
}

function node(op, args, params, depth) {
  return {
    op,
    args,
    params,
    /** An error that knows where the plugin's code asked for it. */
    place: undefined,
    /** The longest chain of operations that it ends. */
    depth,
    /** How many operations take it. */
    uses: 0,
    /** The call in which it was noted. */
    born: call,
    /** The call in which a program made it and did not keep it. */
    ran: -1,
    /** The host's tensor, and the call in which it was made. */
    tensor: undefined,
    tensorCall: -1,
    /** What was read of it, if that is little. */
    known: undefined,
    /** The last walk that came by: before its operands, or after them if one more. */
    walk: 0,
    /** How many operations of that walk take it, and whether one does so for the first time. */
    taken: 0,
    isAgain: false,
    /** Its number in the last program, and the program. */
    number: 0,
    program: 0,
  };
}

/** The tensor of a node. The host makes it, unless this call has it. */
export function made(last) {
  return isMade(last) ? last.tensor : run(last);
}

/** The dtype, the shape and the elements' bytes of a node. */
export function read(last) {
  if (last.known === undefined && !isMade(last)) {
    const pending = order(last);
    const isWhole = pending.length <= STEPS_MAX && last.ran !== call;
    if (!isMade(last) && isWhole && wanted(pending, last).length === 1) return readOnce(pending, last);
    made(last);
  }
  if (last.known !== undefined) return { ...last.known, bytes: last.known.bytes.slice() };
  const { dtype, shape } = last.tensor;
  return { dtype, shape, bytes: last.tensor.bytes() };
}

/** The shape of a node. */
export function shapeOf(last) {
  return [...(last.known ?? made(last)).shape];
}

/** The element type of a node. */
export function dtypeOf(last) {
  return (last.known ?? made(last)).dtype;
}

function readOnce(pending, last) {
  const { tensors, text, nodes } = program(pending);
  const found = refused(nodes, () => host.read(tensors, text, last.number));
  for (let at = 0; at < pending.length; at++) pending[at].ran = call;
  const result = { dtype: found.dtype, shape: listOf(found.shape), bytes: ours(found.data) };
  if (result.bytes.length <= KNOWN_MAX) last.known = { ...result, bytes: result.bytes.slice() };
  return result;
}

/** Let the host make a node, and those on the way that are needed again. */
function run(last) {
  const pending = order(last);
  if (isMade(last)) return last.tensor;
  const results = wanted(pending, last);
  if (pending.length <= STEPS_MAX) evaluate(pending, results);
  else runInParts(pending, new Set(results));
  for (let at = 0; at < pending.length; at++) pending[at].ran = call;
  return last.tensor;
}

function runInParts(pending, results) {
  // A part keeps what a later one reads.
  for (let at = 0; at < pending.length; at += STEPS_MAX) {
    const part = pending.slice(at, at + STEPS_MAX);
    const later = new Set(pending.slice(at + STEPS_MAX).flatMap(({ args }) => args));
    evaluate(part, part.filter((one) => results.has(one) || (one.op !== 'number' && later.has(one))));
  }
}

function evaluate(pending, results) {
  const { tensors, text, nodes } = program(pending);
  const found = refused(nodes, () => host.evaluate(tensors, text, results.map(({ number }) => number)));
  results.forEach((one, at) => {
    const { tensor, dtype, shape } = found[at];
    keep(one, wrap(tensor, dtype, listOf(shape)));
  });
}

/** Make a node now, and forget what it is made of, unless it outlives the call. */
function cut(one) {
  made(one);
  if (one.born === call) Object.assign(one, { op: undefined, args: [], params: [], depth: 0 });
}

function isMade(one) {
  return one.tensorCall === call;
}

function keep(one, tensor) {
  one.tensor = tensor;
  one.tensorCall = call;
}

/** The nodes that are to be made for `last`, and it, each after those that it is made of. */
function order(last) {
  walks += 2;
  const found = [];
  const todo = [last];
  while (todo.length > 0) {
    const one = todo[todo.length - 1];
    if (isMade(one) || one.walk > walks) {
      todo.pop();
    } else if (one.op === 'bytes') {
      keep(one, Tensor.fromBytes(...one.params));
    } else if (one.op === undefined) {
      throw new ArrayError('value', 'the array is of an earlier call, and the host has it no longer');
    } else if (one.walk === walks) {
      one.walk += 1;
      found.push(one);
    } else {
      one.walk = walks;
      one.taken = 0;
      one.isAgain = false;
      for (let at = one.args.length - 1; at >= 0; at--) todo.push(one.args[at]);
    }
  }
  return found;
}

/**
 * `last`, and the pending nodes that are kept: those that an operation outside takes, and those that
 * this call has run before and that are needed for something new.
 */
function wanted(pending, last) {
  for (let step = 0; step < pending.length; step++) {
    const { args, ran } = pending[step];
    for (let at = 0; at < args.length; at++) {
      args[at].taken += 1;
      if (ran !== call && args[at].ran === call) args[at].isAgain = true;
    }
  }
  const found = [];
  for (let step = 0; step < pending.length; step++) {
    const one = pending[step];
    // All that operations take of the module's arrays is counted in every call, so they only wait.
    const isUsed = one.born === call && one.uses > one.taken;
    if (one === last || (one.op !== 'number' && (one.isAgain || isUsed))) found.push(one);
  }
  return found;
}

/** The program of these nodes, and the tensors that it is given. The nodes get their numbers. */
function program(pending) {
  programs += 1;
  const tensors = [];
  // Numbers are written again in each part of a long program.
  const nodes = [];
  for (let at = 0; at < pending.length; at++) pending[at].program = programs;
  for (let step = 0; step < pending.length; step++) {
    const { args } = pending[step];
    for (let at = 0; at < args.length; at++) {
      const arg = args[at];
      if (arg.program === programs) continue;
      arg.program = programs;
      if (isMade(arg)) arg.number = tensors.push(Tensor.raw(arg.tensor)) - 1;
      else nodes.push(arg);
    }
  }
  for (let at = 0; at < pending.length; at++) nodes.push(pending[at]);
  const steps = [];
  for (let at = 0; at < nodes.length; at++) {
    const one = nodes[at];
    one.number = tensors.length + at;
    const operands = [];
    for (let each = 0; each < one.args.length; each++) operands.push(one.args[each].number);
    steps.push([one.op, operands, one.params]);
  }
  return { tensors, text: stringify(steps), nodes };
}

/** What the host gives, or the fault that it names, with the place of the operation. */
function refused(nodes, ask) {
  try {
    return ask();
  } catch (error) {
    const { kind, message, step } = error?.payload ?? {};
    if (!(kind in KINDS)) throw error;
    const refusal = new ArrayError(KINDS[kind], message);
    const { place } = nodes[step] ?? {};
    if (place !== undefined) refusal.stack = place.stack;
    throw refusal;
  }
}
