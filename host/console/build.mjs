// `node build.mjs OUT` writes the console into the folder OUT: index.html, app.js and app.css. `node build.mjs --tests OUT`
// writes its tests for Node. `cargo xtask console` and `cargo xtask test` call it.

import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
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
}
