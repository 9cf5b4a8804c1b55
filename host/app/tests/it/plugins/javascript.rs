//! Plugins in JavaScript that are archives of sources, in the shared runtime of the language.

mod capabilities;
mod faults;

use gristmill_sandbox::{Archive, Language, Manifest};
use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const PLUGIN: &str = "/admin/v1/tenants/acme/plugins/it";

/// An archive of a script as the build makes it, whose lines are those of `plugin.js`.
pub(super) fn archive(script: &str) -> Vec<u8> {
    let lines: Vec<_> = (1..=script.lines().count()).map(|line| json!([0, line])).collect();
    let places = json!({ "bundle": "bundle.js", "files": ["plugin.js"], "lines": lines });
    let files = [
        ("bundle.js", script.to_owned()),
        ("bundle.json", places.to_string()),
        ("source/plugin.js", script.to_owned()),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.into_bytes()));
    let manifest = Manifest { language: Language::JavaScript, app: "bundle.js".into() };
    Archive { manifest, files: files.into() }.write().unwrap()
}

/// A plugin that answers what its function `call` gives for the body, before and after the model.
fn twice(top: &str) -> Vec<u8> {
    archive(&format!(
        "\
const {{ Tensor, PluginResponse }} = require('gristmill-plugin');
{top}
module.exports = {{
  preprocess(context, request) {{
    const body = request.body.text();
    const input = Tensor.from(new Float32Array(784), [1, 1, 28, 28]);
    return {{ inputs: {{ input }}, state: {{ body, first: call(body) }} }};
  }},
  postprocess(context, outputs, state) {{
    const {{ body, first }} = state.json();
    return PluginResponse.json([first, call(body)]);
  }},
}};
"
    ))
}

fn server() -> Server {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("acme");
    server.model("digits");
    server
}

/// Upload a plugin.
#[track_caller]
fn put(server: &Server, file: &[u8]) {
    let answer = server.admin.put(PLUGIN, file);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Serve it in the pipeline `it` with this `instance_reuse`.
#[track_caller]
fn serve(server: &Server, reuse: &str) {
    let mut pipeline = processor("it", json!({}));
    pipeline["debug"] = json!(true);
    pipeline["instance_reuse"] = json!(reuse);
    server.pipeline("acme", "it", &pipeline);
}

#[track_caller]
fn sends(server: &Server, body: &str) -> Value {
    server.data.post("/v1/acme/infer/it", body.as_bytes()).ok()
}

#[test]
fn sources_answer_in_each_mode_and_are_kept_compiled() {
    let server = server();
    let file = files::plugin("digits-js");
    assert!(file.len() < 20 << 10, "{} bytes", file.len());
    server.admin.put("/admin/v1/tenants/acme/plugins/digits", &file).ok();
    for reuse in ["none", "request", "tenant"] {
        let mut digits = processor("digits", json!({}));
        digits["instance_reuse"] = json!(reuse);
        server.pipeline("acme", "digits", &digits);
        server.assert_reads_digits("acme");
    }
    // What is live can be read: the author's file is in the archive.
    let content = server.admin.get("/admin/v1/tenants/acme/plugins/digits/content");
    let source = std::fs::read(files::root().join("plugins/js/digits/plugin.js")).unwrap();
    let archive = Archive::read(&content.body).unwrap();
    assert_eq!(archive.files.get("source/plugin.js"), Some(&source));
    // After a restart the memory comes from the cache.
    let server = server.kill().start();
    server.assert_reads_digits("acme");
}

#[test]
fn a_call_finds_nothing_that_an_earlier_request_left() {
    let server = server();
    put(
        &server,
        &twice(
            "\
const KEPT = [];
let calls = 0;
function call(body) {
  const before = [KEPT.length, calls, globalThis.last ?? null, Array.prototype.mine ?? null];
  for (let i = 0; i < 1000; i++) KEPT.push({ body, i });
  calls++;
  globalThis.last = body;
  Array.prototype.mine = body;
  return before;
}",
        ),
    );
    let fresh = json!([0, 0, null, null]);
    let left = |calls: u32, body: &str| json!([1000 * calls, calls, body, body]);
    for reuse in ["none", "request"] {
        serve(&server, reuse);
        for body in ["one", "two", "three"] {
            let second = if reuse == "request" { left(1, body) } else { fresh.clone() };
            assert_eq!(sends(&server, body), json!([fresh, second]), "{reuse}");
        }
    }
    serve(&server, "tenant");
    assert_eq!(sends(&server, "one"), json!([fresh, left(1, "one")]));
    assert_eq!(sends(&server, "two"), json!([left(2, "one"), left(3, "two")]));
    // What an instance cannot be rewound from: memory that has grown, and objects of the host that
    // it keeps.
    put(
        &server,
        &twice(
            "\
const KEPT = [];
function call(body) {
  const before = KEPT.length;
  if (body === 'grow') KEPT.push(new Uint8Array(16 << 20).fill(1));
  else KEPT.push(body === 'keep' ? Tensor.from([1], [1]) : body);
  return before;
}",
        ),
    );
    serve(&server, "request");
    for body in ["one", "grow", "one", "keep", "one"] {
        assert_eq!(sends(&server, body), json!([0, 1]), "{body}");
    }
}

#[test]
fn bytes_of_the_host_are_the_plugins_own() {
    let server = server();
    let script = "\
const { Body, Pixels, PluginResponse, Tensor } = require('gristmill-plugin');
const isOwn = (bytes) => bytes instanceof Uint8Array && bytes.buffer instanceof ArrayBuffer;
module.exports = {
  preprocess(context, request) {
    const input = Tensor.from(new Float32Array(784), [1, 1, 28, 28]);
    const pixels = Pixels.fromBytes(1, 1, new Uint8Array(3));
    const all = [request.bytes(), request.body.bytes(1, 2), input.bytes(), pixels.data()].map(isOwn);
    return { inputs: { input }, state: { all: [...all, input.data() instanceof Float32Array] } };
  },
  postprocess(context, outputs, state) {
    const all = [...state.json().all, isOwn(state.bytes())];
    const blob = Body.fromBytes(new Uint8Array([1, 2, 3]));
    return PluginResponse.json({ all, output: outputs.get('output'), blob });
  },
};
";
    put(&server, &archive(script));
    server.pipeline("acme", "it", &processor("it", json!({})));
    let answer = server.data.post("/v1/acme/infer/it", b"body").ok();
    assert_eq!(answer["all"], json!([true, true, true, true, true, true]), "{answer}");
    assert_eq!(answer["blob"], "AQID");
    assert_eq!(answer["output"][0].as_array().map(Vec::len), Some(10), "{answer}");
}

#[test]
fn random_numbers_and_clocks_are_those_of_the_call() {
    let server = server();
    put(
        &server,
        &twice(
            "\
const { random } = Math;
const before = [Math.random(), Date.now()];
const call = () => [Math.random(), random(), crypto.randomUUID(), Date.now(), ...before];",
        ),
    );
    serve(&server, "none");
    let values = |body: &str| -> Vec<Value> {
        serde_json::from_value(sends(&server, body)[0].clone()).unwrap()
    };
    let (first, second) = (values("a"), values("b"));
    assert!((0..3).all(|at| first[at] != second[at]), "{first:?} {second:?}");
    assert!(first[3].as_f64() > Some(1.7e12) && first[3] != second[3], "{first:?} {second:?}");
    // Loading has no clock and no random numbers: the values that it made are the same in both.
    assert_eq!((&first[4..], &first[5]), (&second[4..], &json!(0)));
}

/// The engine runs promises after the top level, and still has no random bytes for them.
#[test]
fn promises_of_the_top_level_have_no_random_numbers_of_calls() {
    let server = server();
    let top = "\
const found = {};
(async () => {
  await 0;
  found.number = Math.random();
  try { found.id = crypto.randomUUID(); } catch (error) { found.refused = error.message; }
  const bytes = new Uint8Array(4);
  try { crypto.constructor.prototype.getRandomValues.call(crypto, bytes); } catch {}
  found.bytes = [...bytes];
})();
const circle = {};
circle.circle = circle;
console.log('a circle', circle, new Map());
console.dir({ any: 1 });
const call = () => [found, Math.random()];";
    put(&server, &twice(top));
    serve(&server, "none");
    let (first, second) = (sends(&server, "a"), sends(&server, "b"));
    let loaded = &first[0][0];
    assert_eq!((loaded, &loaded["bytes"]), (&second[0][0], &json!([0, 0, 0, 0])), "{first}");
    assert!(loaded["number"].is_number() && loaded["id"].is_null(), "{first}");
    assert!(loaded["refused"].as_str().unwrap().contains("no random bytes"), "{first}");
    assert_ne!(first[0][1], second[0][1]);
}

#[test]
fn what_people_write_is_bundled() {
    let cli = Cli::new().with_tools();
    let build = ["plugin", "build", "linked"];
    cli.write("real/package.json", r#"{ "name": "mine", "main": "entry.ts" }"#);
    std::os::unix::fs::symlink("real", cli.folder().join("linked")).unwrap();
    cli.write("real/labels.json", r#"["cat", "dog"]"#);
    cli.write("real/node_modules/words/package.json", r#"{ "name": "words", "main": "i.js" }"#);
    cli.write("real/node_modules/words/i.js", "exports.upper = (text) => text.toUpperCase();");
    cli.write("real/node_modules/fast/binding.gyp", "{}");
    cli.write("real/node_modules/fast/index.js", "require('fs');");
    cli.write("real/node_modules/sure/index.js", "require('path');");
    // A package with a file for places without Node, as nanoid is.
    let ids = r#"{ "name": "ids", "exports": { "browser": "./b.js", "default": "./node.js" } }"#;
    cli.write("real/node_modules/ids/package.json", ids);
    cli.write("real/node_modules/ids/b.js", "export const mode = process.env.NODE_ENV;");
    cli.write("real/node_modules/ids/node.js", "import 'node:crypto';");
    let source = "\
import labels from './labels.json';
import { mode } from 'ids';
import { upper } from 'words';
const later = import('gristmill-plugin');
type Label = string;
export async function preprocess(context: unknown, request: { body: { text(): string } }) {
  const { Tensor } = await later;
  const input = Tensor.from(new Float32Array(784), [1, 1, 28, 28]);
  const label: Label = labels[Number(request.body.text())];
  return { inputs: { input }, state: `${upper(label)} ${mode}` };
}
export async function postprocess(context: unknown, outputs: unknown, state: { text(): string }) {
  const { PluginResponse } = await later;
  return PluginResponse.json(state.text());
}
";
    cli.write("real/entry.ts", source);
    cli.ok(&build);
    let file = std::fs::read(cli.folder().join("real/mine.tar")).unwrap();
    let archive = Archive::read(&file).unwrap();
    let names: Vec<_> = archive.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["bundle.js", "bundle.json", "source/entry.ts", "source/labels.json"]);
    let server = server();
    put(&server, &file);
    serve(&server, "none");
    assert_eq!(sends(&server, "1"), json!("DOG production"));
    for (line, named) in [
        ("import 'gristmill:plugin/log@0.3.0';", "\"component\": true"),
        ("await 1;", "await in the functions"),
        ("import 'node:fs';", "node:fs is a part of Node"),
        ("import 'crypto';", "crypto is a part of Node, which plugins do not have: use the global"),
        ("import 'lodash/get';", "npm install lodash\n"),
        ("import 'ids/none';", "\"./none\" is not exported by package \"ids\""),
        ("import 'fast';", "fast has compiled code, which plugins cannot load"),
        (
            "import 'sure';",
            "path is a part of Node, which plugins do not have, and the package sure",
        ),
    ] {
        cli.write("real/entry.ts", format!("{line}\n{source}"));
        assert!(cli.refused(&build).contains(named), "{line}");
    }
}

#[test]
fn an_exception_and_a_promise_are_told_with_the_authors_line() {
    let server = server();
    put(
        &server,
        &twice(
            "\
class Labels {
  of(body) { throw new RangeError('no label'); }
}
function call(body) {
  console.log('about to read', { body });
  return new Labels().of(body);
}",
        ),
    );
    serve(&server, "none");
    let answer = server.data.post("/v1/acme/infer/it", b"x");
    answer.refused(500, "plugin_failed", &[]);
    server.logs("uncaught RangeError: no label, at plugin.js:3");
    server.logs("about to read");
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    let is_error = |line: &&Value| line["level"] == "error";
    let errors = lines["lines"].as_array().unwrap().iter().filter(is_error).count();
    assert_eq!(errors, 1, "the exception is logged once: {lines:#}");
    let asynchronous = "\
const { Tensor, PluginResponse } = require('gristmill-plugin');
const input = () => Tensor.from(new Float32Array(784), [1, 1, 28, 28]);
exports.preprocess = async (context, request) => {
  await new Promise((resolve) => setTimeout(resolve, 1));
  return { inputs: { input: input() }, state: 'waited' };
};
exports.postprocess = async (context, outputs, state) => PluginResponse.json(await state.text());
";
    put(&server, &archive(asynchronous));
    for reuse in ["none", "tenant"] {
        serve(&server, reuse);
        assert_eq!(sends(&server, ""), json!("waited"), "{reuse}");
    }
    // Nor does the server's own log have it once more.
    assert!(!server.log().contains("plugin failed"), "{}", server.log());
}

#[test]
fn sources_that_cannot_be_loaded_are_refused_with_the_place() {
    let server = server();
    for (script, named) in [
        (
            "let x = 1;\nlet y = = 2;\n",
            &["SyntaxError: expected expression", "at plugin.js:2", "let y = = 2;"][..],
        ),
        (
            "function f() {\n  throw new TypeError('no labels');\n}\nf();\n",
            &["TypeError: no labels", "at f (plugin.js:2)", "throw new TypeError(", "plugin.js:4"],
        ),
        (
            "console.warn('almost', 1);\nnone();\n",
            &["ReferenceError", "logged: warn: \"almost 1\"", "plugin.js:2"],
        ),
        ("let x = 1;\n", &["the sources export no plugin"]),
        ("require('fs');\n", &["there is no module fs", "plugin.js:1"]),
        ("crypto.getRandomValues(new Uint8Array(4));\n", &["no random bytes", "plugin.js:1"]),
        ("const all = [];\nfor (;;) all.push(new Uint8Array(1 << 20).fill(1));\n", &[]),
        ("for (;;) {}\n", &["took more than 10 s of CPU time"]),
        ("const f = () => f();\nf();\n", &["too much recursion"]),
        ("throw Object.create(null);\n", &["thrown: [object Object]"]),
        ("throw { message: 'm', name: 'N', stack: 5 };\n", &["N: m"]),
        (
            "const { Tensor } = require('gristmill-plugin');\nTensor.from([1], [1]);\n",
            &["may not while it is loaded"],
        ),
    ] {
        let answer = server.admin.put(PLUGIN, &archive(script));
        answer.refused(422, "invalid_plugin", named);
        assert!(!answer.text().contains("runtime cannot load"), "{script}: {}", answer.text());
    }
    // A timer is a handle of the host, which an instance does not have.
    let timer = twice("setTimeout(() => {}, 1);\nconst call = () => 1;");
    let answer = server.admin.put(PLUGIN, &timer);
    answer.refused(422, "invalid_plugin", &["keeps a handle of WASI open", "or of a timer"]);
    // Without the table of places, and without the script.
    for missing in ["bundle.js", "bundle.json"] {
        let mut broken = Archive::read(&archive("let x = 1;")).unwrap();
        broken.files.remove(missing);
        let answer = server.admin.put(PLUGIN, &broken.write().unwrap());
        answer.refused(422, "invalid_plugin", &[missing]);
    }
}
