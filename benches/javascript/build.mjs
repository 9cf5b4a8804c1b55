// node build.mjs PLUGIN.JS WIT OUT: a component without WASI, as Gristmill takes them.

import { readFile, writeFile } from 'node:fs/promises';
import { componentize } from '@bytecodealliance/componentize-js';

const [source, witPath, out] = process.argv.slice(2);
const { component } = await componentize(await readFile(source, 'utf8'), {
  witPath,
  worldName: 'processor',
  disableFeatures: ['random', 'stdio', 'clocks', 'http', 'fetch-event'],
});
await writeFile(out, component);
