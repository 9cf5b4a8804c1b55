// `node build.mjs OUT` writes into the folder OUT the console, index.html, app.js and app.css, and try.html, the page of a
// tenant on the data plane. `node build.mjs --tests OUT` writes the tests for Node. `cargo xtask console` and `cargo xtask
// test` call it.

import { copyFileSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const isOfTests = process.argv[2] === "--tests";
const out = process.argv[isOfTests ? 3 : 2];
if (!out) throw new Error("the folder for the files is missing: node build.mjs OUT");

const common = {
  absWorkingDir: here,
  outdir: resolve(out),
  bundle: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
};

if (isOfTests) {
  const entryPoints = readdirSync(join(here, "test")).filter((name) => name.includes(".test."));
  await build({
    ...common,
    entryPoints: entryPoints.map((name) => `test/${name}`),
    format: "esm",
    platform: "node",
    outExtension: { ".js": ".mjs" },
  });
} else {
  mkdirSync(out, { recursive: true });
  await build({ ...common, entryPoints: { app: "src/main.tsx" }, format: "iife", minify: true });
  copyFileSync(join(here, "src/index.html"), join(out, "index.html"));
  await buildTryPage();
}

/** The page has its script and its style in it: the server allows them by their digests. */
async function buildTryPage() {
  const entryPoints = ["src/tenant/try.ts", "src/tenant/try.css"];
  const built = await build({ ...common, entryPoints, format: "iife", minify: true, write: false });
  let page = readFileSync(join(here, "src/tenant/try.html"), "utf8");
  for (const { path, text } of built.outputFiles) {
    // A function, so that no `$` in the text means anything.
    page = page.replace(`/* ${basename(path)} */`, () => text.trim());
  }
  writeFileSync(join(out, "try.html"), page);
}
