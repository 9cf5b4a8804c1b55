//! Arrays of plugins: the host's operations mean what they mean in NumPy, and end within a call's
//! bounds.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use gristmill_sandbox::{Archive, Language, Manifest};
use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// Answers a list of expressions with what each gives: its dtype, its shape and its elements, or
/// the name of its error.
const APP: &str = r#"
import json
import array_table
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export
from gristmill_plugin import numpy as np

NAMES = array_table.names(np)

def found(expression):
    if expression == "all":
        return [[one, found(one)] for one in array_table.EXPRESSIONS[FROM[0]:FROM[0] + 40]]
    try:
        array = np.asarray(eval(expression, dict(NAMES)))
        return [array.dtype.name, array.shape, array.ravel().tolist()]
    except Exception as error:
        return TOLD(error)

FROM = [0]
TOLD = lambda error: type(error).__name__

@export
class Plugin(Processor):
    def preprocess(self, context, request):
        global TOLD
        asked = request.json()
        if isinstance(asked, str):
            TOLD = str
            answer = found(asked)
        else:
            FROM[0] = asked
            answer = found("all")
        picture = np.zeros((1, 1, 28, 28), np.float32)
        return Prepared({"input": picture}, json.dumps(answer).encode())

    def postprocess(self, context, outputs, state):
        return Response.text(state.decode())
"#;

/// Does for JavaScript what `APP` does. It stands behind `TABLE` and `names`.
const JAVASCRIPT: &str = r#"
const { np, ArrayError, PluginResponse } = require('gristmill-plugin');
const NAMES = names(np);
const ERRORS = { value: 'ValueError', index: 'IndexError', type: 'TypeError' };

// As Python reads it.
function text(value) {
  return Object.is(value, -0) ? '-0.0' : String(value);
}

function found(expression) {
  try {
    const run = new Function(...Object.keys(NAMES), `return (${expression});`);
    const array = np.asarray(run(...Object.values(NAMES)));
    const flat = [array.toArray()].flat(Infinity);
    return `["${array.dtype}", [${array.shape}], [${flat.map(text).join(',')}]]`;
  } catch (error) {
    const name = error instanceof ArrayError ? ERRORS[error.kind] : error.name;
    return JSON.stringify(`${name === 'RangeError' ? 'ValueError' : name}: ${error.message}`);
  }
}

module.exports = {
  preprocess(context, request) {
    const from = request.json();
    const rows = TABLE.slice(from, from + 40);
    const state = rows.map(([own, numpy]) => `[${JSON.stringify(numpy)}, ${found(own)}]`);
    const input = np.zeros([1, 1, 28, 28], 'float32');
    return { inputs: { input }, state: `[${state.join(',')}]` };
  },
  postprocess(context, outputs, state) {
    return PluginResponse.text(state.text());
  },
};
"#;

fn table() -> PathBuf {
    files::root().join("sdk/python/tests")
}

/// Limits of calls that compute much, on a busy machine.
fn unhurried() -> Value {
    json!({ "cpu_ms": 60_000, "timeout_ms": 120_000 })
}

/// A server with the plugin that evaluates Python's table.
fn server(limits: Value) -> Server {
    let table = fs::read(table().join("array_table.py")).unwrap();
    let files = [("app.py".to_owned(), APP.into()), ("array_table.py".to_owned(), table)];
    server_with(Manifest { language: Language::Python, app: "app".into() }, files, limits)
}

/// A server with the plugin of these sources.
fn server_with(manifest: Manifest, files: [(String, Vec<u8>); 2], limits: Value) -> Server {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("acme");
    server.model("digits");
    let archive = Archive { manifest, files: files.into() }.write().unwrap();
    let answer = server.admin.put("/admin/v1/tenants/acme/plugins/it", &archive);
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.pipeline("acme", "it", &processor("it", limits));
    server
}

#[track_caller]
fn ask(server: &Server, asked: &Value) -> String {
    let answer = server.data.post("/v1/acme/infer/it", asked.to_string().as_bytes());
    assert_eq!(answer.status, 200, "{asked}: {}", answer.text());
    answer.text()
}

#[test]
fn expressions_mean_what_they_mean_in_numpy() {
    let server = server(unhurried());
    let rows = whole_table(&server);
    // The arrays of the module keep nothing of a call, so its instance stays.
    let held = server.status()["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap();
    assert!(held > 100_000, "{held} bytes");
    compare(&rows);
}

/// All rows of the plugin's table, which it answers forty at a time.
#[track_caller]
fn whole_table(server: &Server) -> String {
    // JSON has no NaN, so the test joins the lists as texts.
    let mut lists = Vec::new();
    for from in (0..).step_by(40) {
        let list = ask(server, &json!(from));
        let list = list.trim();
        if list == "[]" {
            break;
        }
        lists.push(list[1..list.len() - 1].to_owned());
    }
    assert!(lists.len() > 25, "{} lists", lists.len());
    format!("[{}]", lists.join(","))
}

/// Compare rows in JSON, `[expression, found]`, with NumPy.
#[track_caller]
fn compare(rows: &str) {
    let python = env::var_os("GRISTMILL_TEST_CLIENTS").expect("run cargo xtask test");
    let compare = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/clients/arrays.py");
    let mut compare = Command::new(python)
        .args([compare, table()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compare.stdin.take().unwrap().write_all(rows.as_bytes()).unwrap();
    let compared = compare.wait_with_output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
}

#[test]
fn operations_in_rust_and_c_mean_what_they_mean_in_numpy() {
    let server = Setup::new().start();
    server.open_tenant("acme");
    server.model("digits");
    for (plugin, least) in [("arrays", 80), ("arrays-c", 50)] {
        server.plugin("acme", "it", plugin);
        server.pipeline("acme", "it", &processor("it", unhurried()));
        let rows = ask(&server, &json!(null));
        let count = rows.split("[\"").count();
        assert!(count > least, "{plugin}: {rows}");
        compare(&rows);
    }
}

#[test]
fn operations_in_javascript_mean_what_they_mean_in_numpy() {
    let table = fs::read_to_string(files::root().join("sdk/js/test/array-table.js")).unwrap();
    let script = format!("{}\n{JAVASCRIPT}", table.replace("export ", ""));
    let places = json!({ "bundle": "bundle.js", "files": [], "lines": [] }).to_string();
    let files =
        [("bundle.js".to_owned(), script.into()), ("bundle.json".to_owned(), places.into())];
    let manifest = Manifest { language: Language::JavaScript, app: "bundle.js".into() };
    let server = server_with(manifest, files, unhurried());
    compare(&whole_table(&server));
}

#[test]
fn a_fault_names_the_operation_and_the_line() {
    let server = server(json!({}));
    for (expression, parts) in [
        (
            "m + np.zeros(7)",
            ["add: operands could not be broadcast", "(<string>, line 1, in <module>)"],
        ),
        ("m[7]", ["index 7 is out of bounds for axis 0 with size 2", "line 1"]),
        ("m.astype(np.float16) + 1", ["float16 is not computed with", "astype(float32)"]),
        ("np.array(['a'])", ["an array of str", "numbers only"]),
        ("np.zeros(1 << 40)", ["over the limit", "full"]),
        ("np.zeros((1 << 20, 1 << 20, 1 << 30))", ["full", "over the limit"]),
        ("np.zeros((1,) * 9)", ["9 dimensions are over the limit of 8", "full"]),
        ("np.repeat(m, 1 << 62)", ["repeat", "the array is too large"]),
        ("np.broadcast_to(zero, (1 << 31, 1 << 31))", ["broadcast_to", "over the limit"]),
        ("np.one_hot([3], 3)", ["one_hot: class 3 is not one of 3", "line 1"]),
        ("np.nms(m, m)", ["nms: boxes have shape", "[n, 4]"]),
        ("np.top_k(m, 4)[0]", ["argtopk: 4 elements of 3 are wanted", "line 1"]),
        ("m.astype('complex')", ["'complex' is not a dtype", "float32"]),
        ("m.__setitem__(0, 1)", ["arrays are immutable", "np.where"]),
    ] {
        let message = ask(&server, &json!(expression));
        assert!(parts.iter().all(|part| message.contains(part)), "{expression}: {message}");
    }
}

#[test]
fn what_a_plugin_asks_of_arrays_is_bounded() {
    let server = server(json!({}));
    // One more than may be held, in time that is charged.
    for expression in [
        // Many large arrays at a time.
        "[np.zeros(1 << 20) + i for i in range(200)] and sum((np.zeros(1 << 20) + i for i in range(200)), m[0, 0]).sum()",
        "np.stack([np.zeros(1 << 20)[i:] for i in [0] * 500]).sum()",
        "(np.ones((2000, 2000)) @ np.ones((2000, 2000)) @ np.ones((2000, 2000)) @ np.ones((2000, 2000))).sum()",
        "np.nms(np.zeros((200000, 4)), np.zeros(200000)).sum() + np.sort(np.zeros(3000000)).sum()",
    ] {
        let answer =
            server.data.post("/v1/acme/infer/it", json!(expression).to_string().as_bytes());
        let text = answer.text();
        let is_bounded = match answer.status {
            200 => true,
            500 => text.contains("plugin_out_of_memory") || text.contains("plugin_host_memory"),
            504 => text.contains("plugin_timeout"),
            _ => false,
        };
        assert!(is_bounded, "{expression}: {} {text}", answer.status);
    }
    // What was read counts no longer: 200 rows of an array of 26 MB.
    let rows = ask(&server, &json!("[row[0].tolist() for row in np.zeros((200, 1 << 14))]"));
    assert!(rows.starts_with("[\"float64\", [200], [0.0, 0.0"), "{rows}");
    // The server goes on as before.
    assert_eq!(ask(&server, &json!("m.sum()")), "[\"float32\", [], [6.25]]");
}
