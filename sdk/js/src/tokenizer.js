// Tokens of texts, as a `tokenizer.json` of Hugging Face's tokenizers says. The host makes them.

import * as host from '#host';
import { asked, errorOf, text, u32 } from './arguments.js';
import { Body } from './body.js';
import { NdArray } from './numpy.js';
import { listOf, Tensor, wrap } from './tensor.js';

const KINDS = ['no-asset', 'malformed', 'invalid-argument'];
const SIDES = ['left', 'right'];
const UNITS = ['characters', 'bytes'];

/** A file or an argument is wrong. If nothing catches it: 500, with the text in the log only. */
export const TokenizerError = errorOf('TokenizerError', KINDS);

/** A tokenizer by the name of its file. It holds nothing, so a module can have one. */
export class Tokenizer {
  constructor(asset = 'tokenizer.json') {
    this.asset = text('asset', asset);
  }

  encode(texts, options = {}) {
    const { pairs, maxLength, truncate, padding = 'longest', pad, padId, offsets } = options;
    const { addSpecialTokens = true, dtype = 'int64' } = options;
    if (typeof dtype !== 'string') throw new TypeError('dtype is not a string');
    const wanted = {
      maxLength: maxLength === undefined ? undefined : u32('maxLength', maxLength),
      truncate: choice('truncate', truncate, SIDES),
      padding: paddingOf(padding),
      pad: choice('pad', pad, SIDES),
      padId: padId === undefined ? undefined : u32('padId', padId),
      addSpecialTokens: Boolean(addSpecialTokens),
      dtype,
      offsets: choice('offsets', offsets, UNITS),
    };
    const given = [textsOf('texts', texts), pairs === undefined ? undefined : textsOf('pairs', pairs)];
    const found = answered(() => host.encodeTexts(this.asset, ...given, wanted));
    return {
      ids: wrap(found.ids, dtype),
      attentionMask: wrap(found.attentionMask, dtype),
      typeIds: wrap(found.typeIds, dtype),
      lengths: listOf(found.lengths),
      offsets: found.offsets == null ? undefined : wrap(found.offsets, dtype),
    };
  }

  decode(ids, { skipSpecialTokens = true } = {}) {
    const given = ids instanceof NdArray ? ids.tensor() : ids;
    const tensor = Tensor.is(given) ? given : rowOf(given);
    return listOf(answered(() => host.decodeTokens(this.asset, Tensor.raw(tensor), Boolean(skipSpecialTokens))));
  }

  tokenToId(token) {
    const id = answered(() => host.tokenToId(this.asset, text('token', token)));
    return id ?? undefined;
  }
}

/** The contract's form of texts: one, a list, a tensor of strings, or a body. */
function textsOf(name, texts) {
  if (typeof texts === 'string') return { tag: 'list', val: [texts] };
  if (Array.isArray(texts)) return { tag: 'list', val: texts.map((each) => text(`one of ${name}`, each)) };
  if (Tensor.is(texts)) return { tag: 'tensor', val: Tensor.raw(texts) };
  if (texts instanceof Body) return { tag: 'blob', val: Body.raw(texts) };
  throw new TypeError(`${name} is neither a string, an array, a Tensor nor a Body`);
}

function paddingOf(padding) {
  if (padding === 'longest') return { tag: 'longest' };
  if (Array.isArray(padding)) return { tag: 'buckets', val: padding.map((each) => u32('padding', each)) };
  if (typeof padding === 'number') return { tag: 'fixed', val: u32('padding', padding) };
  throw new TypeError(`padding is ${JSON.stringify(padding)}, not 'longest', a length or lengths`);
}

/** A tensor of one row. Plain numbers are ids; a typed array has a dtype of its own. */
function rowOf(ids) {
  const isPlain = Array.isArray(ids);
  if (!isPlain && !ArrayBuffer.isView(ids)) throw new TypeError('ids is neither a Tensor nor an array');
  return Tensor.from(ids, [ids.length], isPlain ? 'int64' : undefined);
}

function choice(name, value, choices) {
  if (value === undefined || choices.includes(value)) return value;
  throw new TypeError(`${name} is ${JSON.stringify(value)}, not one of ${choices.join(', ')}`);
}

function answered(ask) {
  return asked(ask, KINDS, TokenizerError);
}
