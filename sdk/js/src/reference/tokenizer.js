// The reference host's tokenizers: lists of words that a test gives. Texts are split at white space.

import { refusal } from './refusal.js';
import { ReferenceTensor } from './tensor.js';

const decoder = new TextDecoder();
const encoder = new TextEncoder();

let registered = new Map();

/** Use these tokenizers from now on: a map from names of files to lists of words. */
export function useTokenizers(tokenizers) {
  registered = tokenizers;
}

export function encodeTexts(asset, texts, pairs, options) {
  const words = wordsOf(asset);
  const firsts = listOf(texts);
  const seconds = pairs === undefined ? undefined : listOf(pairs);
  if (seconds !== undefined && seconds.length !== firsts.length) {
    throw invalid(`there are ${firsts.length} texts, but ${seconds.length} pairs`);
  }
  if (!['int64', 'int32'].includes(options.dtype)) {
    throw invalid(`dtype is ${options.dtype}: must be int64 or int32`);
  }
  return filled(words, firsts.map((text, at) => rowOf(words, text, seconds?.[at], options)), options);
}

/** The tokens of a text or a pair: `{ id, type, place: [start, end] }`. */
function rowOf(words, text, pair, options) {
  const special = (word, type) => {
    const id = words.indexOf(word);
    return id < 0 || !options.addSpecialTokens ? [] : [{ id, type, place: [0, 0] }];
  };
  const first = tokensOf(words, text, 0, options.offsets);
  const second = pair === undefined ? [] : tokensOf(words, pair, 1, options.offsets);
  const around = (one, other) => [
    ...special('[CLS]', 0), ...one, ...special('[SEP]', 0),
    ...(pair === undefined ? [] : [...other, ...special('[SEP]', 1)]),
  ];
  const most = (options.maxLength ?? Infinity) - around([], []).length;
  while (first.length + second.length > Math.max(most, 0)) {
    const longer = first.length >= second.length ? first : second;
    if (options.truncate === 'left') longer.shift();
    else longer.pop();
  }
  return around(first, second);
}

function tokensOf(words, text, type, unit) {
  const unknown = Math.max(words.indexOf('[UNK]'), 0);
  const length = (part) => (unit === 'bytes' ? encoder.encode(part).length : [...part].length);
  return Array.from(text.matchAll(/\S+/g), ({ 0: word, index }) => {
    const start = length(text.slice(0, index));
    const id = words.indexOf(word);
    return { id: id < 0 ? unknown : id, type, place: [start, start + length(word)] };
  });
}

function filled(words, rows, { padding, pad, padId, dtype, offsets }) {
  const lengths = rows.map((row) => row.length);
  const longest = Math.max(0, ...lengths);
  const allowed = { longest: [longest], fixed: [padding.val], buckets: padding.val }[padding.tag];
  const length = Math.min(...allowed.filter((each) => each >= longest));
  if (length === Infinity) {
    const made = `padding makes rows of at most ${Math.max(0, ...allowed)}`;
    throw invalid(`a text has ${longest} tokens, but ${made}: set max-length to cut it off`);
  }
  const usual = Math.max(words.indexOf('[PAD]'), 0);
  const Elements = dtype === 'int64' ? BigInt64Array : Int32Array;
  const number = dtype === 'int64' ? BigInt : Number;
  const tensor = (filling, elementsOf, ...last) => {
    const flat = rows.flatMap((row) => {
      const fill = Array(length - row.length).fill(filling).flat();
      const values = row.flatMap(elementsOf);
      return pad === 'left' ? [...fill, ...values] : [...values, ...fill];
    });
    return ReferenceTensor.create(dtype, [rows.length, length, ...last], Elements.from(flat, number));
  };
  return {
    ids: tensor(padId ?? usual, ({ id }) => id),
    attentionMask: tensor(0, () => 1),
    typeIds: tensor(0, ({ type }) => type),
    lengths,
    offsets: offsets === undefined ? undefined : tensor([0, 0], ({ place }) => place, 2),
  };
}

export function decodeTokens(asset, ids, skipSpecialTokens) {
  const words = wordsOf(asset);
  const { dtype, shape, elements } = ReferenceTensor.parts(ids);
  if (!['int64', 'int32', 'uint32'].includes(dtype)) {
    throw invalid(`ids is a tensor of ${dtype}: must be int64, int32 or uint32`);
  }
  const negative = elements.find((id) => id < 0);
  if (negative !== undefined) throw invalid(`the id ${negative} must be 0 to 4294967295`);
  const length = shape.at(-1);
  const isShown = (word) => word !== undefined && !(skipSpecialTokens && /^\[.*\]$/.test(word));
  return Array.from({ length: shape.length > 1 ? shape[0] : 1 }, (_, row) => {
    const rowWords = Array.from(elements.slice(row * length, (row + 1) * length), (id) => words[Number(id)]);
    return rowWords.filter(isShown).join(' ');
  });
}

export function tokenToId(asset, token) {
  const id = wordsOf(asset).indexOf(token);
  return id < 0 ? undefined : id;
}

function listOf({ tag, val }) {
  if (tag === 'list') return val;
  if (tag === 'blob') return [decoder.decode(val.read(0n, val.len()))];
  const { dtype, shape, elements } = ReferenceTensor.parts(val);
  if (dtype !== 'string' || shape.length !== 1) {
    throw invalid('texts is not a tensor of strings of one dimension');
  }
  return elements;
}

function wordsOf(asset) {
  const words = registered.get(asset);
  if (words !== undefined) return words;
  const name = JSON.stringify(asset);
  throw refusal('no-asset', `the test has no tokenizer ${name}: give it one with host.tokenizer(${name}, words)`);
}

function invalid(text) {
  return refusal('invalid-argument', text);
}
