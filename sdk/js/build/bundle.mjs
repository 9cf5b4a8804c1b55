// What esbuild makes of the author's files: one module with the SDK, for a component, or a script for
// the server's runtime, which has the SDK.

import { readFile } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { BuildError } from './build-error.mjs';
import { originalLines } from './source-map.mjs';

const SDK = resolve(import.meta.dirname, '..');

/** What a component imports from the host. */
export const HOST = ['gristmill:*', 'wasi:*'];

/** The rules by which all is bundled. */
export const BUNDLING = {
  bundle: true,
  charset: 'utf8',
  conditions: ['gristmill'],
  // The engine ends without a message where a module asks for it.
  define: { 'import.meta.url': 'undefined' },
  loader: { '.csv': 'text', '.tsv': 'text', '.txt': 'text' },
  logLevel: 'silent',
  mainFields: ['module', 'main'],
  platform: 'neutral',
  sourcesContent: false,
  target: 'es2022',
};

const CALLS = {
  preprocessor: ['preprocess'],
  postprocessor: ['postprocess'],
  processor: ['preprocess', 'postprocess'],
  handler: ['handle'],
};

/** What a plugin may export. */
const ALL_CALLS = [...CALLS.processor, ...CALLS.handler];

/** The module by which plugins import the SDK. */
const PACKAGE = 'gristmill-plugin';

/** The module that exports the calls. No file has this name. */
const ENTRY = '<entry>';

/** The files of the archive that a runtime loads. The table of places has the bundle's name. */
const APP = 'bundle.js';
const PLACES = 'bundle.json';

/**
 * The bundled code, the world that it is for, the author's places of its lines, and the files
 * outside of the author's folder that are in it, but for the SDK.
 */
export async function bundle(folder, entry, wantedWorld) {
  const esbuild = await tool();
  const exports = await exportsOf(esbuild, folder, entry);
  const world = wantedWorld ?? worldOf(exports, entry);
  const calls = callsOf(world, exports, folder, entry);
  const { text, table, inputs } = await run(esbuild, folder, entryModule(entry, calls), 'plugin.js', {
    alias: {
      [PACKAGE]: resolve(SDK, 'src/index.js'),
      [`${PACKAGE}/component`]: resolve(SDK, 'src/component.js'),
      [`${PACKAGE}/handler`]: resolve(SDK, 'src/handler.js'),
    },
    external: HOST,
    format: 'esm',
  });
  const code = `${text}\nglobalThis[Symbol.for("gristmill.sources")] = ${JSON.stringify(table)};\n`;
  const place = (line) => {
    const [source, original] = table.lines[line - 1] ?? [-1];
    return source < 0 ? undefined : `${table.files[source]}:${original}`;
  };
  const outside = inputs.filter((path) => !path.startsWith(SDK + sep) && isOutside(folder, path));
  return { world, code, place, outside };
}

/**
 * The files that a runtime loads, by their paths, and the one that it runs: a script with all that
 * the plugin imports but the SDK, which the runtime has. The author's own files are there to be read
 * by people.
 */
export async function archive(folder, entry, wantedWorld) {
  const esbuild = await tool();
  const exports = await exportsOf(esbuild, folder, entry);
  const calls = wantedWorld === undefined
    ? exportedCalls(exports, entry)
    : callsOf(wantedWorld, exports, folder, entry);
  const main = `export { ${calls.join(', ')} } from ${JSON.stringify(entry)};`;
  const { text, table, inputs, imports } = await run(esbuild, folder, main, APP, {
    external: [PACKAGE, ...HOST],
    format: 'cjs',
    // `import()` becomes a promise of what `require` gives.
    supported: { 'dynamic-import': false },
  });
  const others = imports.filter((name) => name !== PACKAGE);
  if (others.length > 0) {
    throw new BuildError(
      `${relative(folder, entry)} imports ${others.join(', ')}, which the server's runtime has not: ` +
        `leave it out, or put "gristmill": { "component": true } into package.json`,
    );
  }
  const files = new Map([[APP, text], [PLACES, JSON.stringify(table)]]);
  const modules = `${sep}node_modules${sep}`;
  for (const path of inputs) {
    if (isOutside(folder, path) || path.includes(modules)) continue;
    files.set(`source/${relative(folder, path).split(sep).join('/')}`, await readFile(path));
  }
  return { app: APP, files };
}

/** The calls of a world, if the author's file exports them. */
function callsOf(world, exports, folder, entry) {
  const calls = CALLS[world];
  if (calls === undefined) {
    throw new BuildError(`--world ${world}: the worlds are ${Object.keys(CALLS).join(', ')}`);
  }
  const missing = calls.filter((call) => !exports.includes(call));
  if (missing.length > 0) {
    throw new BuildError(
      `${relative(folder, entry)} does not export ${missing.join(' and ')}, which world ${world} ` +
        `needs; it exports ${exports.join(', ') || 'nothing'}`,
    );
  }
  return calls;
}

/** All calls that the author's file exports. */
function exportedCalls(exports, entry) {
  const calls = ALL_CALLS.filter((call) => exports.includes(call));
  if (calls.length > 0) return calls;
  throw new BuildError(
    `${entry} exports neither preprocess nor postprocess nor handle; ` +
      `it exports ${exports.join(', ') || 'nothing'}`,
  );
}

function isOutside(folder, path) {
  return relative(folder, path).startsWith('..');
}

/** The component's entry module: it exports the world's functions by name. */
function entryModule(entry, calls) {
  const lines = calls.map((call) => {
    const wrap = `export${call[0].toUpperCase()}${call.slice(1)}`;
    return `export const ${call} = sdk.${wrap}(author.${call});`;
  });
  // Only a component of the world of handlers imports the host's models.
  const module = calls.includes('handle') ? 'handler' : 'component';
  return [
    `import * as sdk from '${PACKAGE}/${module}';`,
    `import * as author from ${JSON.stringify(entry)};`,
    ...lines,
  ].join('\n');
}

async function exportsOf(esbuild, folder, entry) {
  const external = [PACKAGE, ...HOST];
  const { metafile } = await build(esbuild, folder, { entryPoints: [entry], external, format: 'esm' });
  return Object.values(metafile.outputs).flatMap((output) => output.exports);
}

/** The world of a component with these exports. */
function worldOf(exports, entry) {
  const calls = exportedCalls(exports, entry);
  if (calls.length > 1 && calls.includes('handle')) {
    throw new BuildError(
      `${entry} exports ${calls.join(', ')}, and a component has one world: put ` +
        `"gristmill": { "world": "handler" } or another one into package.json`,
    );
  }
  const fits = (world) => CALLS[world].every((call) => calls.includes(call));
  return ['processor', 'preprocessor', 'postprocessor', 'handler'].find(fits);
}

/** One script of the module `main`, and what it was made of. */
async function run(esbuild, folder, main, name, options) {
  const { outputFiles, metafile } = await build(esbuild, folder, {
    ...options,
    sourcemap: 'external',
    stdin: { contents: main, resolveDir: folder, sourcefile: ENTRY },
  });
  const file = (extension) => outputFiles.find(({ path }) => path.endsWith(extension)).text;
  return {
    text: file('.js'),
    table: { bundle: name, ...placesOf(JSON.parse(file('.map')), folder) },
    inputs: Object.keys(metafile.inputs).filter((input) => input !== ENTRY).map((input) => resolve(folder, input)),
    imports: Object.values(metafile.outputs).flatMap((output) => output.imports.map(({ path }) => path)),
  };
}

/** Run esbuild by the rules of all bundles. Its errors are told with what can be done. */
async function build(esbuild, folder, options) {
  try {
    return await esbuild.build({
      ...BUNDLING,
      ...options,
      absWorkingDir: folder,
      metafile: true,
      outdir: folder,
      write: false,
    });
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    const texts = await esbuild.formatMessages(error.errors, { kind: 'error' });
    const cures = error.errors.map(({ text }) => cureOf(text)).filter((cure) => cure !== undefined);
    throw new BuildError(
      ["the plugin's files cannot be bundled:", texts.join('').trimEnd(), ...new Set(cures)].join('\n'),
    );
  }
}

/** What can be done about an error of esbuild. */
function cureOf(text) {
  if (text.startsWith('Top-level await')) {
    return 'await in the functions, or put "gristmill": { "component": true } into package.json';
  }
  const [, name] = /^Could not resolve "([^"]*)"/.exec(text) ?? [];
  if (name?.startsWith('node:')) return `${name} is a part of Node, which plugins do not have`;
  if (name && !/^[./]/.test(name)) return `install it in the plugin's folder: npm install ${name}`;
  return undefined;
}

/** Of each line of the bundle the file's index and the line there; -1 for lines of no file. */
function placesOf(map, folder) {
  const files = map.sources.map((source) => {
    const path = resolve(folder, source);
    const own = path.startsWith(SDK + sep) && !path.startsWith(dirname(SDK) + sep + 'template');
    if (own) return `gristmill-plugin/${relative(SDK, path).split(sep).join('/')}`;
    return relative(folder, path).split(sep).join('/');
  });
  return { files, lines: originalLines(map.mappings) };
}

async function tool() {
  try {
    return await import('esbuild');
  } catch (error) {
    throw new BuildError(
      `the build tools are not installed: run npm ci in ${import.meta.dirname}\n${error.message}`,
    );
  }
}
