#!/usr/bin/env node
// Makes the component of which `cargo xtask runtimes` makes the shared runtime for JavaScript.
//
//   node runtime.mjs --wit DIR --out FILE

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { componentize } from '@bytecodealliance/componentize-js';
import * as esbuild from 'esbuild';
import { BUNDLING, HOST } from './bundle.mjs';
import { useLeanBindings } from './lean-bindings.mjs';

const text = { type: 'string' };
const { values } = parseArgs({ options: { wit: text, out: text } });
const folder = await mkdtemp(join(tmpdir(), 'gristmill-'));
try {
  const sourcePath = join(folder, 'runtime.js');
  await esbuild.build({
    ...BUNDLING,
    entryPoints: [resolve(import.meta.dirname, '../runtime/runtime.js')],
    external: HOST,
    format: 'esm',
    outfile: sourcePath,
  });
  await useLeanBindings();
  const { component } = await componentize({
    sourcePath,
    witPath: resolve(values.wit),
    worldName: 'javascript',
    disableFeatures: ['http', 'fetch-event'],
  });
  await writeFile(values.out, component);
} finally {
  await rm(folder, { recursive: true });
}
