#!/usr/bin/env node
// Builds a plugin: bundles the author's files, for the server's own runtime, or with the SDK into a
// component.
//
//   node build.mjs FOLDER --sources DIR [--world WORLD]
//   node build.mjs FOLDER --wit DIR --out FILE [--outside FILE] [--world WORLD]
//     [--disable FEATURES]
//   node build.mjs FOLDER --link
//
// `gristmill plugin build` runs it. The tools that it needs are pinned in `package.json` beside it:
// `npm ci` in this folder installs them.

import { mkdir, mkdtemp, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BuildError } from './build-error.mjs';
import { archive, bundle } from './bundle.mjs';
import { entryOf } from './entry.mjs';
import { useLeanBindings } from './lean-bindings.mjs';
import { linkSdk } from './link.mjs';

const FEATURES = ['stdio', 'random', 'clocks', 'http', 'fetch-event'];

const USAGE = `Usage: node build.mjs FOLDER --sources DIR [--world WORLD]
       node build.mjs FOLDER --wit DIR --out FILE [--outside FILE] [--world WORLD]
         [--disable FEATURES]
       node build.mjs FOLDER --link

  FOLDER      the plugin's folder
  --sources   a new folder for the files that the server's runtime loads, instead of a component
  --wit       the folder with the contract's .wit files
  --out       the component's file
  --outside   the list of the files outside of the folder that are in it, but for the SDK
  --world     preprocessor, postprocessor, processor or handler; if it is not given, the exports
              decide
  --disable   features of the engine, separated by commas: ${FEATURES.join(', ')}; or all or none
              [default: http,fetch-event]
  --link      only make node_modules/gristmill-plugin, for unit tests and editors`;

async function main() {
  const { values, positionals } = options();
  if (positionals.length !== 1) throw new BuildError(USAGE);
  if (!(await isFolder(positionals[0]))) throw new BuildError(`${positionals[0]} is not a folder`);
  // As esbuild names the files in it.
  const folder = await realpath(positionals[0]);
  const entry = await entryOf(folder);
  const linked = await linkSdk(folder);
  if (linked) console.error(`linked ${linked}`);
  if (values.link) return;
  if (values.sources !== undefined) {
    await writeSources(values.sources, await archive(folder, entry, values.world));
    return;
  }
  for (const name of ['wit', 'out']) {
    if (values[name] === undefined) throw new BuildError(`--${name} is missing\n\n${USAGE}`);
  }
  if (!(await isFolder(values.wit))) throw new BuildError(`--wit ${values.wit} is not a folder`);
  const disableFeatures = features(values.disable);
  const { world, code, place, outside } = await bundle(folder, entry, values.world);
  const component = await componentOf(code, place, resolve(values.wit), world, disableFeatures);
  await writeFile(values.out, component);
  if (values.outside !== undefined) await writeFile(values.outside, JSON.stringify(outside));
  console.error(`${values.out}: ${Math.ceil(component.length / 1024)} KiB, world ${world}`);
}

function options() {
  const text = { type: 'string' };
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        sources: text,
        wit: text,
        out: text,
        outside: text,
        world: text,
        disable: text,
        link: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw new BuildError(`${error.message}\n\n${USAGE}`);
  }
}

function features(list = 'http,fetch-event') {
  if (list === 'all') return FEATURES;
  if (list === 'none') return [];
  const names = list.split(',');
  const unknown = names.find((name) => !FEATURES.includes(name));
  if (unknown !== undefined) {
    throw new BuildError(`--disable ${unknown}: the features are ${FEATURES.join(', ')}`);
  }
  return names;
}

/** Write the files below `folder`, and print which of them the runtime runs. */
async function writeSources(folder, { app, files }) {
  for (const [path, content] of files) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  console.log(app);
}

/** A component of `code`. `place` turns a line of it into the author's file and line. */
async function componentOf(code, place, witPath, worldName, disableFeatures) {
  const { componentize } = await tool();
  const folder = await mkdtemp(join(tmpdir(), 'gristmill-'));
  try {
    const sourcePath = join(folder, 'plugin.js');
    await writeFile(sourcePath, code);
    const { component } = await componentize({ sourcePath, witPath, worldName, disableFeatures });
    return component;
  } catch (error) {
    const text = String(error.message ?? error);
    const placed = text.replace(/plugin\.js:(\d+)(:\d+)?/g, (all, line) => place(Number(line)) ?? all);
    throw new BuildError(
      `the plugin's top-level code, which runs once in the build, failed, ` +
        `or the engine could not be prepared:\n${placed}`,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function tool() {
  try {
    await useLeanBindings();
    return await import('@bytecodealliance/componentize-js');
  } catch (error) {
    throw new BuildError(
      `the build tools are not installed: run npm ci in ${import.meta.dirname}\n${error.message}`,
    );
  }
}

async function isFolder(path) {
  return stat(path).then((found) => found.isDirectory(), () => false);
}

main().catch((error) => {
  console.error(error instanceof BuildError ? `error: ${error.message}` : error);
  process.exitCode = 1;
});
