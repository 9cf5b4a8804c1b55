// JSON in which integers keep their digits: those that a number cannot hold are BigInts, in both
// directions.

/** Reading an integer takes time that grows with the square of its digits. */
const DIGITS_MAX = 1000;

/** An integer of 16 digits or more. Most texts have none, and are read as they are. */
const LONG = /(?<![.\d])[1-9]\d{15,}(?![\d.eE])/;

const INTEGER = /^-?\d+$/;

/** Node 20, which only unit tests run on, has neither of the two. */
const { rawJSON } = JSON;
let hasSource = false;
JSON.parse('0', (key, value, context) => {
  hasSource = context?.source !== undefined;
  return value;
});

/** The value of a JSON text. Throws a SyntaxError, or a RangeError for an integer that is too long. */
export function parse(text) {
  if (!LONG.test(text)) return JSON.parse(text);
  return hasSource ? JSON.parse(text, exact) : parseMarked(text);
}

/** `value` as a JSON text; undefined for a function or undefined. */
export function stringify(value) {
  return rawJSON === undefined ? stringifyMarked(value) : JSON.stringify(value);
}

// So that a plugin's own `JSON.stringify` writes them, too: BigInts as digits, typed arrays as arrays.
if (rawJSON !== undefined) define(BigInt.prototype, function toJSON() { return rawJSON(String(this)); });
define(Object.getPrototypeOf(Uint8Array.prototype), function toJSON() { return Array.from(this); });

function define(prototype, value) {
  Object.defineProperty(prototype, 'toJSON', { value, configurable: true, writable: true });
}

function exact(key, value, context) {
  const fits = typeof value !== 'number' || Number.isSafeInteger(value);
  return fits || !INTEGER.test(context.source) ? value : integer(context.source);
}

function integer(source) {
  if (source.length > DIGITS_MAX) {
    throw new RangeError(`an integer of ${source.length} digits: the limit is ${DIGITS_MAX}`);
  }
  return BigInt(source);
}

// Without support of the engine, integers pass as texts with a mark before them.

const MARK = '\u{f0000}integer ';
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g;

function parseMarked(text) {
  JSON.parse(text); // Its errors name places of the text.
  const fits = (token) => !INTEGER.test(token) || Number.isSafeInteger(Number(token));
  const marked = text.replace(TOKEN, (token) => (fits(token) ? token : `"${MARK}${integer(token)}"`));
  const isMarked = (value) => typeof value === 'string' && value.startsWith(MARK);
  return JSON.parse(marked, (key, value) => (isMarked(value) ? BigInt(value.slice(MARK.length)) : value));
}

function stringifyMarked(value) {
  const text = JSON.stringify(value, (key, inner) => (typeof inner === 'bigint' ? MARK + inner : inner));
  return text?.replaceAll(new RegExp(`"${MARK}(-?\\d+)"`, 'gu'), '$1');
}
