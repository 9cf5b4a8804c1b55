// One module of the author's files and the SDK.

import { dirname, relative, resolve, sep } from 'node:path';
import { BuildError } from './build-error.mjs';
import { originalLines } from './source-map.mjs';

const SDK = resolve(import.meta.dirname, '..');

const CALLS = {
  preprocessor: ['preprocess'],
  postprocessor: ['postprocess'],
  processor: ['preprocess', 'postprocess'],
};

/**
 * The bundled code, the world that it is for, the author's places of its lines, and the files
 * outside of the author's folder that are in it, but for the SDK.
 */
export async function bundle(folder, entry, wantedWorld) {
  const esbuild = await tool();
  const exports = await exportsOf(esbuild, folder, entry);
  const world = wantedWorld ?? worldOf(exports, entry);
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
  const main = entryModule(entry, calls);
  const { outputFiles, metafile } = await run(esbuild, folder, {
    metafile: true,
    stdin: { contents: main, resolveDir: folder, sourcefile: 'entry.js' },
    sourcemap: 'external',
  });
  const file = (extension) => outputFiles.find(({ path }) => path.endsWith(extension)).text;
  const table = placesOf(JSON.parse(file('.map')), folder);
  const code = `${file('.js')}\nglobalThis[Symbol.for("gristmill.sources")] = ${JSON.stringify(table)};\n`;
  const place = (line) => {
    const [source, original] = table.lines[line - 1] ?? [-1];
    return source < 0 ? undefined : `${table.files[source]}:${original}`;
  };
  const outside = Object.keys(metafile.inputs).filter((input) => {
    const path = resolve(folder, input);
    return !path.startsWith(SDK + sep) && relative(folder, path).startsWith('..');
  });
  return { world, code, place, outside };
}

/** The component's entry module: it exports the world's functions by name. */
function entryModule(entry, calls) {
  const lines = calls.map((call) => {
    const wrap = `export${call[0].toUpperCase()}${call.slice(1)}`;
    return `export const ${call} = sdk.${wrap}(author.${call});`;
  });
  return [
    `import * as sdk from 'gristmill-plugin/component';`,
    `import * as author from ${JSON.stringify(entry)};`,
    ...lines,
  ].join('\n');
}

async function exportsOf(esbuild, folder, entry) {
  const { metafile } = await run(esbuild, folder, { entryPoints: [entry], metafile: true });
  return Object.values(metafile.outputs).flatMap((output) => output.exports);
}

function worldOf(exports, entry) {
  const fits = (world) => CALLS[world].every((call) => exports.includes(call));
  const world = ['processor', 'preprocessor', 'postprocessor'].find(fits);
  if (world === undefined) {
    throw new BuildError(
      `${entry} exports neither preprocess nor postprocess; it exports ${exports.join(', ') || 'nothing'}`,
    );
  }
  return world;
}

/** Both runs have the same rules. The SDK is this one, wherever the plugin's folder is. */
async function run(esbuild, folder, options) {
  try {
    return await esbuild.build({
      ...options,
      absWorkingDir: folder,
      alias: {
        'gristmill-plugin': resolve(SDK, 'src/index.js'),
        'gristmill-plugin/component': resolve(SDK, 'src/component.js'),
      },
      bundle: true,
      charset: 'utf8',
      conditions: ['gristmill'],
      // The engine ends without a message where a module asks for it.
      define: { 'import.meta.url': 'undefined' },
      external: ['gristmill:*', 'wasi:*'],
      format: 'esm',
      loader: { '.txt': 'text' },
      logLevel: 'silent',
      outdir: folder,
      platform: 'neutral',
      mainFields: ['module', 'main'],
      sourcesContent: false,
      target: 'es2022',
      write: false,
    });
  } catch (error) {
    if (!Array.isArray(error.errors)) throw error;
    const texts = await esbuild.formatMessages(error.errors, { kind: 'error' });
    throw new BuildError(`the plugin's files cannot be bundled:\n${texts.join('').trimEnd()}`);
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
  return { bundle: 'plugin.js', files, lines: originalLines(map.mappings) };
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
