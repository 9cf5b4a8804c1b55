// Faults: exceptions that are not failures. Each becomes one line in the log with the place in the
// author's files, and then an internal failure.

import * as host from '#host';
import { Internal } from './failure.js';

/**
 * The global variable with the places of the bundled file's lines: the engine knows only that file,
 * so the build makes a table, for each of its lines the author's file and line.
 */
export const PLACES = Symbol.for('gristmill.sources');

/** The errors of a chain of causes that are told. */
const CAUSES_MAX = 4;

/** The frames of a deep stack that are told: the innermost and the outermost ones. */
const INNERMOST = 12;
const OUTERMOST = 4;

/** What the engine throws, without a place, if there is no more memory. */
const OUT_OF_MEMORY = 'out of memory';

/** Log `error` and return the internal failure that stands for it. */
export function logFault(error) {
  // The host tells it with the limit.
  if (error === OUT_OF_MEMORY) return new Internal(error);
  const { message, frames, place } = parts(error);
  // With the field `uncaught` the host does not log the failure once more.
  const fields = [{ name: 'uncaught', value: 'true' }];
  if (place !== undefined) {
    fields.push({ name: 'file', value: place.file }, { name: 'line', value: String(place.line) });
  }
  const stack = ends(frames, (frame) => `${frame.name || '?'} (${frame.file}:${frame.line})`);
  if (stack.length > 0) fields.push({ name: 'stack', value: stack.join('\n') });
  host.write('error', `uncaught ${message}`, fields);
  return new Internal(message);
}

/**
 * `error` in lines: what it says, and each frame of the author's with the line of source that
 * `sourceLine` finds.
 */
export function describe(error, sourceLine) {
  const { text, frames } = parts(error);
  const own = frames.filter((frame) => !frame.internal);
  const lines = ends(own, ({ name, file, line }) => {
    const source = sourceLine(file, line);
    const at = `  at ${name ? `${name} (${file}:${line})` : `${file}:${line}`}`;
    return source ? `${at}\n    ${source}` : at;
  });
  return [text, ...lines].join('\n');
}

/** The text of each frame; of a recursion only the ends. */
function ends(frames, text) {
  const leftOut = frames.length - INNERMOST - OUTERMOST;
  if (leftOut <= 1) return frames.map(text);
  const inner = frames.slice(0, INNERMOST).map(text);
  return [...inner, `.. ${leftOut} more ..`, ...frames.slice(-OUTERMOST).map(text)];
}

/** An error on one line, with the place where it was made. */
export function brief(error) {
  return parts(error).message;
}

function parts(error) {
  const stack = error?.stack;
  const frames = framesOf(typeof stack === 'string' ? stack : '');
  const place = frames.find((frame) => !frame.internal);
  const text = textOf(error);
  const message = place === undefined ? text : `${text}, at ${place.file}:${place.line}`;
  return { text, message, frames, place };
}

/** What an error says, and what caused it. */
function textOf(error) {
  const texts = [];
  let one = error;
  do {
    texts.push(isError(one) ? `${one.name}: ${one.message}` : `thrown: ${shown(one)}`);
    one = one?.cause;
  } while (one !== undefined && texts.length < CAUSES_MAX);
  return texts.join('; caused by ');
}

/** Also of a value that has no text. An object without a text of its own is shown as JSON. */
function shown(value) {
  try {
    const text = String(value);
    return text === '[object Object]' ? JSON.stringify(value) ?? text : text;
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** Not `instanceof`: the errors of a component's bindings are of another realm. */
function isError(value) {
  return typeof value?.message === 'string' && typeof value.name === 'string';
}

/** The frames of a stack in SpiderMonkey's or V8's form, from the innermost on. */
function framesOf(stack) {
  const table = globalThis[PLACES];
  const frames = [];
  for (const text of stack.split('\n')) {
    const match = /^(?:\s+at )?(?:(.*?)(?:@| \())?([^@(]*?):(\d+):\d+\)?$/.exec(text);
    if (match === null) continue;
    const frame = { name: (match[1] ?? '').trim(), file: match[2], line: Number(match[3]), internal: false };
    if (table?.lines === undefined) {
      frame.internal = frame.file.startsWith('node:') || isSdk(frame.file);
    } else if (frame.file.endsWith(table.bundle)) {
      const [file, line] = table.lines[frame.line - 1] ?? [-1, 0];
      frame.internal = file < 0 || isSdk(table.files[file]) || table.files[file].startsWith('<');
      if (file >= 0) Object.assign(frame, { file: table.files[file], line });
    } else {
      continue;
    }
    frames.push(frame);
  }
  return frames;
}

const HERE = import.meta.url?.replace(/fault\.js$/, '');

/** Is this one of the SDK's own files? */
function isSdk(file) {
  return file.startsWith('gristmill-plugin/') || (HERE !== undefined && file.startsWith(HERE));
}
