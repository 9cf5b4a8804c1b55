// Base64 and data URLs, with the host's rules and texts.

import { refusal } from './refusal.js';

const SPACE = /[ \t\r\n]/;

/** The bytes that `text` stands for. */
export function decode(text) {
  const start = startOfData(text);
  let digits = '';
  let padding = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (SPACE.test(character)) continue;
    const over = digits.length % 4;
    if (character === '=' && over >= 2 && over + padding < 4) padding += 1;
    else if (padding === 0 && /[A-Za-z0-9+/_-]/.test(character)) digits += character;
    else throw refused(unexpected(text, at, padding));
  }
  if (digits.length % 4 === 1) throw refused('base64 ends within a group of four characters');
  return new Uint8Array(Buffer.from(digits, 'base64'));
}

/** Where the data of a data URL begin; 0 in other texts. */
function startOfData(text) {
  if (text.slice(0, 5).toLowerCase() !== 'data:') return 0;
  const comma = text.indexOf(',');
  if (comma < 0) throw refused('a data URL without a comma');
  if (text.slice(5, comma).split(';').at(-1).trim().toLowerCase() !== 'base64') {
    throw refused('a data URL whose data are not in base64: it has no ";base64"');
  }
  return comma + 1;
}

function unexpected(text, at, padding) {
  const position = Buffer.byteLength(text.slice(0, at));
  const character = String.fromCodePoint(text.codePointAt(at)).toWellFormed?.() ?? text[at];
  return `base64 has '${character}' at position ${position}${padding > 0 ? ' after its end' : ''}`;
}

function refused(why) {
  return refusal('invalid-base64', why);
}
