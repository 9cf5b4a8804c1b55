// The reference host's tables: rows that a test gives.

import { idsOf } from './ids.js';
import { refusal } from './refusal.js';
import { ReferenceTensor } from './tensor.js';

let registered = new Map();

/** Use these tables from now on: a map from names of files to `{ rows, columns }`. */
export function useTables(tables) {
  registered = tables;
}

export function gatherRows(asset, keys, columns, missing) {
  const table = tableOf(asset);
  const places = placesOf(JSON.stringify(asset), table, columns);
  const listed = listOf(keys);
  const filling = places.map(() => missing);
  const rows = listed.map((key) => {
    const row = table.rows.get(key);
    return row === undefined ? filling : places.map((place) => row[place]);
  });
  return ReferenceTensor.create('float32', [listed.length, places.length], Float32Array.from(rows.flat()));
}

function placesOf(asset, { rows, columns }, { tag, val }) {
  if (tag === 'named') {
    const place = (name) => {
      const at = columns.indexOf(name);
      if (at >= 0) return at;
      const has = `its columns are ${[...columns].sort().join(', ')}`;
      throw invalid(`asset ${asset}: it has no column ${JSON.stringify(name)}: ${has}`);
    };
    return val.map(place);
  }
  const [first = []] = rows.values();
  const width = columns.length || first.length;
  if (val !== width) {
    throw invalid(`asset ${asset}: it has ${width} columns besides the key, but the width is ${val}`);
  }
  return Array.from({ length: width }, (_, at) => at);
}

function listOf({ tag, val }) {
  return tag === 'list' ? val : idsOf('keys', val);
}

function tableOf(asset) {
  const table = registered.get(asset);
  if (table !== undefined) return table;
  const name = JSON.stringify(asset);
  throw refusal('no-asset', `the test has no table ${name}: give it one with host.table(${name}, rows)`);
}

function invalid(text) {
  return refusal('invalid-argument', text);
}
