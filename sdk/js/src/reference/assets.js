// The files of unit tests: those of a test's host, and those in `assets/` of this folder.

import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ReferenceBlob } from './blob.js';
import { refusal } from './refusal.js';

let files = new Map();

/** Let calls open these files, by their names. */
export function useFiles(found) {
  files = found;
}

export function open(name) {
  const given = files.get(name);
  if (given !== undefined) return new ReferenceBlob(given);
  const path = join('assets', name);
  const isPlain = name.split('/').every((part) => !['', '.', '..'].includes(part));
  if (isPlain && existsSync(path) && statSync(path).isFile()) {
    return new ReferenceBlob(new Uint8Array(readFileSync(path)));
  }
  throw refusal(
    'not-found',
    `no asset "${name}": put a file into the folder assets/ of the plugin, or give one of the ` +
      `pipeline with TestHost.asset("${name}", ..)`,
  );
}
