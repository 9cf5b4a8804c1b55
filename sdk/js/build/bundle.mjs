// What esbuild makes of the author's files: one module with the SDK, for a component, or a script for
// the server's runtime, which has the SDK.

import { readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
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
  // What packages have for places without Node: ids and random numbers by the global `crypto`.
  conditions: ['gristmill', 'worker', 'browser'],
  // The engine ends without a message where a module asks for it. There is no `process`.
  define: { 'import.meta.url': 'undefined', 'process.env.NODE_ENV': '"production"' },
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

/** The errors of a build that are shown; one package can make a hundred. */
const ERRORS_SHOWN = 5;

/** What stands in for a part of Node. */
const CURES = {
  buffer: 'use Uint8Array, TextEncoder and Body.fromBase64, or install the package: npm install buffer',
  crypto: 'use the global crypto',
  fs: `import a file of the folder (.txt, .csv, .tsv, .json), or read assets.open of ${PACKAGE}`,
  'fs/promises': `import a file of the folder (.txt, .csv, .tsv, .json), or read assets.open of ${PACKAGE}`,
  http: `use fetch of ${PACKAGE}`,
  https: `use fetch of ${PACKAGE}`,
  timers: 'use the global setTimeout',
  url: 'use the global URL',
  util: 'use the globals TextEncoder, TextDecoder and structuredClone',
};

/** The packages by which others find their compiled code. */
const LOADERS = ['bindings', 'node-addon-api', 'node-gyp-build', '@mapbox/node-pre-gyp', 'prebuild-install'];

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
    const compiled = await compiledPackages(folder, error.errors);
    // A compiled package asks for parts of Node, too, and so do those that find its code.
    const told = compiled.size > 0 ? [...compiled.values()] : error.errors;
    const shown = told.slice(0, ERRORS_SHOWN).map((one) => ({ ...one, notes: one.notes.filter(isOfUse) }));
    const texts = await esbuild.formatMessages(shown, { kind: 'error' });
    if (told.length > shown.length) texts.push(`and ${told.length - shown.length} more`);
    const cures = compiled.size > 0
      ? [...compiled.keys()].map((name) =>
        `${name} has compiled code, which plugins cannot load: use a package that is JavaScript ` +
        `alone, or what ${PACKAGE} has (np, Pixels, store, fetch, Tokenizer, tables)`)
      : error.errors.map((one) => cureOf(folder, one)).filter((cure) => cure !== undefined);
    throw new BuildError(
      ["the plugin's files cannot be bundled:", texts.join('').trimEnd(), ...new Set(cures)].join('\n'),
    );
  }
}

/** Some notes say what a caller of esbuild could do, such as bundling for Node. */
function isOfUse({ text }) {
  return !/ as external |"platform: 'node'"/.test(text);
}

/** The packages that are compiled for Node and cannot be bundled, each with its first error. */
async function compiledPackages(folder, errors) {
  const found = new Map();
  for (const error of errors) {
    const [, file] = /^No loader is configured for ".node" files: (.*)/.exec(error.text) ?? [];
    const asked = packageOf(folder, file ?? error.location?.file ?? '');
    if (asked && !found.has(asked.name) && (await isCompiled(asked.folder))) found.set(asked.name, error);
  }
  return found;
}

/** What can be done about an error of esbuild. */
function cureOf(folder, { text, location, notes }) {
  if (text.startsWith('Top-level await')) {
    return 'await in the functions, or put "gristmill": { "component": true } into package.json';
  }
  const [, name] = /^Could not resolve "([^"]*)"/.exec(text) ?? [];
  if (name === undefined || /^[./#]/.test(name)) return undefined;
  if (!isBuiltin(name)) {
    // A package that is installed may not export the file, as a note says.
    if (notes.some(isOfUse)) return undefined;
    // npm takes `lodash/get` for a repository.
    return `install it in the plugin's folder: npm install ${packageName(name.split('/'))}`;
  }
  const cure = CURES[name.replace(/^node:/, '')];
  const asked = packageOf(folder, location?.file ?? '');
  const needed = asked ? `, and the package ${asked.name} needs it` : '';
  return `${name} is a part of Node, which plugins do not have${needed}${cure ? `: ${cure}` : ''}`;
}

/** The name and the folder of the package that a file belongs to; none for the author's own. */
function packageOf(folder, file) {
  const path = resolve(folder, file);
  const modules = `${sep}node_modules${sep}`;
  const at = path.lastIndexOf(modules);
  if (at < 0) return undefined;
  const name = packageName(path.slice(at + modules.length).split(sep));
  return { name, folder: path.slice(0, at) + modules + name.split('/').join(sep) };
}

/** The package's name, of the parts of a path that begins with it. */
function packageName(parts) {
  return parts.slice(0, parts[0].startsWith('@') ? 2 : 1).join('/');
}

/** Whether a package is built for Node by a compiler, or finds what was built. */
async function isCompiled(folder) {
  const files = await readdir(folder).catch(() => []);
  if (files.some((file) => file === 'binding.gyp' || file.endsWith('.node'))) return true;
  const text = await readFile(resolve(folder, 'package.json'), 'utf8').catch(() => '{}');
  try {
    const { dependencies, gypfile, binary, napi } = JSON.parse(text);
    return [gypfile, binary, napi].some(Boolean) || LOADERS.some((name) => name in (dependencies ?? {}));
  } catch {
    return false;
  }
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
