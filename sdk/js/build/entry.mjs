// Which of a plugin's files exports the calls.

import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildError } from './build-error.mjs';

const USUAL = ['plugin.js', 'plugin.ts', 'src/plugin.js', 'src/plugin.ts'];

/** The path of the plugin's entry: `main` of its package.json, or one of the usual names. */
export async function entryOf(folder) {
  const main = await mainOf(folder);
  for (const name of main === undefined ? USUAL : [main]) {
    const path = join(folder, name);
    if (await stat(path).then((found) => found.isFile(), () => false)) return path;
  }
  if (main !== undefined) throw new BuildError(`main in package.json is ${main}: there is no such file`);
  throw new BuildError(
    `${folder} has none of ${USUAL.join(', ')}: name the plugin's file as "main" in package.json`,
  );
}

async function mainOf(folder) {
  let text;
  try {
    text = await readFile(join(folder, 'package.json'), 'utf8');
  } catch {
    return undefined;
  }
  try {
    return JSON.parse(text).main;
  } catch (error) {
    throw new BuildError(`package.json: ${error.message}`);
  }
}
