//! Plugins that are archives of sources: the server loads them into the language's shared runtime.

use std::fs;

use gristmill_sandbox::{Archive, Language, Manifest};
use serde_json::{Value, json};

use crate::support::admin_api::read;
use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;
use crate::support::{files, onnx};

/// An archive of these files, whose module is `app`.
pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let manifest = Manifest { language: Language::Python, app: "app".into() };
    let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    Archive { manifest, files: files.collect() }.write().unwrap()
}

/// A plugin whose answers are what `answer` gives, an expression in Python.
fn answering(top: &str, answer: &str) -> Vec<u8> {
    let app = format!(
        "from gristmill_plugin import Dtype, Failure, InvalidInput, Prepared, Processor\n\
         from gristmill_plugin import Response, Tensor, export\n\
         {top}\n\
         @export\n\
         class Plugin(Processor):\n    \
             def preprocess(self, context, request):\n        \
                 raise InvalidInput(str({answer}))\n    \
             def postprocess(self, context, outputs, state):\n        \
                 return Response.json(None)\n"
    );
    archive(&[
        ("app.py", &app),
        ("labels.txt", "cat\ndog\n"),
        ("lib/script.py", "raise SystemExit(1)\n"),
        ("lib/words.py", "WORD = 'deep'\n"),
    ])
}

/// A plugin that answers what its function `call` gives for the body, before and after the model.
fn twice(top: &str) -> Vec<u8> {
    let app = format!(
        "\
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export
{top}
@export
class Plugin(Processor):
    def preprocess(self, context, request):
        body = bytes(request.body)
        first = str(call(body.decode()))
        picture = Tensor.from_values([1, 1, 28, 28], Dtype.FLOAT32, [0] * 784)
        return Prepared({{'input': picture}}, body + b'|' + first.encode())
    def postprocess(self, context, outputs, state):
        body, first = state.decode().split('|')
        return Response.text(first + ' ' + str(call(body)))
"
    );
    archive(&[("app.py", &app)])
}

fn server() -> Server {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("acme");
    server.model("digits");
    server
}

const PLUGIN: &str = "/admin/v1/tenants/acme/plugins/it";

/// Upload a plugin, and serve it in the pipeline `it`.
#[track_caller]
fn serve(server: &Server, file: &[u8]) {
    let answer = server.admin.put(PLUGIN, file);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut pipeline = processor("it", json!({}));
    pipeline["debug"] = json!(true);
    server.pipeline("acme", "it", &pipeline);
}

/// What the plugin of [`answering`] says.
fn said(server: &Server) -> String {
    problem(server)["detail"].as_str().unwrap_or_default().to_owned()
}

/// The problem that a request to the plugin ends with.
fn problem(server: &Server) -> Value {
    let answer = server.data.post("/v1/acme/infer/it", b"");
    serde_json::from_str(&answer.text()).unwrap()
}

#[test]
fn sources_answer_as_their_component_does_and_are_kept_compiled() {
    let server = server();
    let app = fs::read_to_string(files::root().join("plugins/python/digits/app.py")).unwrap();
    let file = archive(&[("app.py", &app)]);
    assert!(file.len() < 20 << 10, "{} bytes", file.len());
    for reuse in ["none", "request", "tenant"] {
        server.admin.put("/admin/v1/tenants/acme/plugins/digits", &file);
        let mut digits = processor("digits", json!({}));
        digits["instance_reuse"] = json!(reuse);
        server.pipeline("acme", "digits", &digits);
        server.assert_reads_digits("acme");
    }
    // The server gives the archive back.
    let content = server.admin.get("/admin/v1/tenants/acme/plugins/digits/content");
    assert_eq!(content.body, file);
    let cli = Cli::of(&server);
    let read_back = ["plugin", "content", "digits", "--tenant", "acme"];
    assert_names(&cli.ok(&read_back), &["digits has the sources of acme/digits, in python"]);
    assert_eq!(fs::read_to_string(cli.folder().join("digits/app.py")).unwrap(), app);
    assert_names(&cli.refused(&read_back), &["digits is not empty"]);
    // Its document and the status say which runtime runs it, and the log does not.
    let about = read(&server, "tenants/acme/plugins/digits");
    let status = server.status();
    assert_eq!(about["runtime"]["language"], "python");
    let of_status = status["runtimes"].as_array().unwrap().iter();
    let mut of_python = of_status.filter(|runtime| runtime["language"] == "python");
    let python = of_python.next().unwrap();
    assert_eq!(
        (&python["digest"], &python["state"]),
        (&about["runtime"]["digest"], &json!("ready"))
    );
    let served = &status["tenants"]["acme"]["plugins"]["digits"];
    assert_eq!((&served["runtime"], &served["state"]), (&about["runtime"], &json!("ready")));
    assert_eq!(status["reloaded_plugins"], 0);
    let imports = about["imports"].as_array().unwrap();
    let is_of = |import: &Value, beginning| import.as_str().unwrap().starts_with(beginning);
    assert!(imports.iter().any(|import| is_of(import, "gristmill:plugin/tensors")), "{about}");
    assert!(!imports.iter().any(|import| is_of(import, "wasi:cli")), "{about}");
    // After a restart the memory comes from the cache.
    let server = server.kill().start();
    server.assert_reads_digits("acme");
}

#[test]
fn files_and_modules_of_the_folder_can_be_read_while_it_is_loaded() {
    let server = server();
    let top = "import html\nfrom lib.words import WORD\nLABELS = open('labels.txt').read().split()\n\
               from pathlib import Path\nSAME = (Path(__file__).parent / 'labels.txt').read_text()";
    serve(&server, &answering(top, "[LABELS, WORD, html.escape('<'), len(SAME)]"));
    assert_eq!(said(&server), "[['cat', 'dog'], 'deep', '&lt;', 8]");
}

#[test]
fn the_host_reads_and_writes_json() {
    let app = r#"
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export
@export
class Plugin(Processor):
    def preprocess(self, context, request):
        rows = request.json_tensor("/rows", keys=["b", "a"])
        ids = request.json_tensor("/rows", Dtype.STRING, keys=["id"])
        body = Response.json({
            "rows": rows, "ids": ids, "mark": "\0", "scale": request.json("/scale", 2.5),
            "image": request.json_blob("/image"), "shape": rows.shape,
        }).body
        picture = Tensor.from_values([1, 1, 28, 28], Dtype.FLOAT32, [0] * 784)
        return Prepared({"input": picture}, body)
    def postprocess(self, context, outputs, state):
        if context.settings.get("answer") == "nan":
            return Response.json(Tensor.from_values([1, 1], Dtype.FLOAT64, [float("nan")]))
        if context.settings.get("answer") == "lists":
            return Response.json(Tensor.from_bytes([4_000_000_000, 0], Dtype.FLOAT32, b""))
        return Response(state, "application/json")
"#;
    let server = server();
    serve(&server, &archive(&[("app.py", app)]));
    let sends = |body: &str| server.data.post("/v1/acme/infer/it", body.as_bytes());
    let rows = r#"[{"id":"p","a":0.1,"b":[1,-2]},{"b":[3e7,4],"id":"\u00fc\"","a":5}]"#;
    let body = format!(r#"{{"image":"data:;base64,TWFu\/w==","rows":{rows}}}"#);
    let expected = json!({
        "rows": [[1.0, -2.0, 0.1], [30_000_000.0, 4.0, 5.0]], "ids": [["p"], ["\u{fc}\""]],
        "mark": "\0", "scale": 2.5, "image": "TWFu/w==", "shape": [2, 3],
    });
    assert_eq!(sends(&body).ok(), expected);
    for (body, named) in [
        ("", "the body is empty"),
        ("[1", "EOF while parsing a list"),
        ("[1]", "/rows is missing"),
        ("\u{feff}{}", "it begins with a byte order mark: send UTF-8 without one"),
        (r#"{"rows":[NaN]}"#, "NaN at line 1 column 10 is not JSON: send null, or a text"),
        (r#"{"rows":[{"a":1e39,"b":2,"id":"p"}]}"#, "/rows/0/a is out of FP32's range: 1e39"),
        (r#"{"rows":[{"a":1,"b":"2","id":"p"}]}"#, "/rows/0/b is a text, not a number"),
        (r#"{"rows":[{"a":1,"b":2}]}"#, "/rows/0/id is missing"),
        (r#"{"rows":[{"a":1,"b":2,"id":"p"}],"image":"%"}"#, "/image: base64 has '%'"),
    ] {
        sends(body).refused(400, "invalid_request", &["invalid JSON: ", named]);
    }
    // What JSON has no form for, and more than an answer may have.
    for (answer, why) in
        [("nan", "has NaN at [0, 0]"), ("lists", "over the limit of 4194304 bytes")]
    {
        let mut pipeline = processor("it", json!({}));
        pipeline["debug"] = json!(true);
        pipeline["settings"] = json!({ "answer": answer });
        server.pipeline("acme", "it", &pipeline);
        sends(&body).refused(500, "plugin_failed", &[]);
        server.logs(why);
    }
}

/// As over `/v2`, whose metadata shows a scalar with the shape [1].
#[test]
fn a_scalar_input_takes_one_element_of_a_plugin() {
    let server = server();
    server.put("models/scalar", &onnx::with_scalar());
    let app = r#"
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export
@export
class Plugin(Processor):
    def preprocess(self, context, request):
        x = Tensor.from_values([1], Dtype.FLOAT32, [1.5])
        return Prepared({"x": x, "rate": Tensor.from_values([1], Dtype.INT64, [7])}, b"")
    def postprocess(self, context, outputs, state):
        return Response.json(outputs["rate_out"].tobytes()[0])
"#;
    serve(&server, &archive(&[("app.py", app)]));
    let mut pipeline = processor("it", json!({}));
    pipeline["model"] = json!("scalar");
    server.pipeline("acme", "it", &pipeline);
    assert_eq!(server.data.post("/v1/acme/infer/it", b"").ok(), json!(7));
}

#[test]
fn a_body_becomes_a_tensor_on_the_host() {
    let server = server();
    let app = r#"
from gristmill_plugin import Dtype, Prepared, Processor, Response, Tensor, export
from gristmill_plugin import numpy as np
@export
class Plugin(Processor):
    def preprocess(self, context, request):
        picture = Tensor.from_values([1, 1, 28, 28], Dtype.FLOAT32, [0] * 784)
        offset = int(request.query["offset"])
        numbers = np.frombuffer(request.body, np.float32, 3, offset)
        whole = Tensor.from_bytes([len(request.body)], Dtype.UINT8, request.body)
        text = request.body.slice(len(request.body) - 6)
        texts = Tensor.from_bytes([1], Dtype.STRING, text).strings()
        answer = [numbers.sum(), whole.shape, texts]
        return Prepared({"input": picture}, Response.json(answer).body)
    def postprocess(self, context, outputs, state):
        return Response(state, "application/json")
"#;
    serve(&server, &archive(&[("app.py", app)]));
    // The body has three numbers and then a text: its length, a u32, and its bytes.
    let numbers = [1.5_f32, 2.0, 4.0].map(f32::to_le_bytes).concat();
    let text = *b"\x02\0\0\0ok";
    let ask = |offset: usize, body: &[u8]| {
        server.data.post(&format!("/v1/acme/infer/it?offset={offset}"), body)
    };
    let body = [&numbers[..], &text].concat();
    assert_eq!(ask(0, &body).ok(), json!([7.5, [18], ["ok"]]));
    // Bytes that are not aligned are copied.
    for before in [1, 2, 7] {
        let body = [&vec![9; before], &body[..]].concat();
        assert_eq!(ask(before, &body).ok(), json!([7.5, [18 + before], ["ok"]]), "{before}");
    }
    ask(0, &text).refused(500, "plugin_failed", &[]);
    server.logs("buffer size must be a multiple of element size");
}

#[test]
fn an_exception_is_one_line_with_the_authors_place() {
    let server = server();
    serve(&server, &twice("def call(body):\n    return {}[body]"));
    let answer = server.data.post("/v1/acme/infer/it", b"x");
    answer.refused(500, "plugin_failed", &[]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    let [line] = &lines["lines"].as_array().unwrap()[..] else { panic!("{lines:#}") };
    assert_eq!((&line["level"], &line["message"]), (&json!("error"), &json!("KeyError: 'x'")));
    assert_eq!((&line["fields"]["file"], &line["fields"]["line"]), (&json!("app.py"), &json!("3")));
    assert!(line["fields"]["traceback"].as_str().unwrap().contains("return {}[body]"), "{line}");
    // A failure that the author raises has no other line.
    let raises = "from gristmill_plugin import Internal\ndef call(body):\n    raise Internal(body)";
    serve(&server, &twice(raises));
    server.data.post("/v1/acme/infer/it", b"why").refused(500, "plugin_failed", &[]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs?limit=1").ok();
    assert_eq!(lines["lines"][0]["message"], "plugin failed: why");
}

#[test]
fn a_call_that_takes_too_long_is_kept_with_its_functions_and_lines() {
    let server = server();
    let slow = "\
class Größe:
    def tally(self, rows):
        for row in rows:
            while row:
                pass
def call(rows):
    return [Größe().tally(rows) for _ in rows]";
    serve(&server, &answering(slow, "call([1])"));
    let answer = server.data.post("/v1/acme/infer/it", b"");
    answer.refused(504, "plugin_timeout", &["250 ms of CPU time"]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    let message = lines["lines"][0]["message"].as_str().unwrap();
    let (_, functions) = message.rsplit_once(", in ").unwrap();
    let functions: Vec<_> = functions.split(", called by ").collect();
    assert!(
        ["Größe.tally (app.py:6)", "Größe.tally (app.py:7)"].contains(&functions[0]),
        "{message}"
    );
    assert_eq!(functions[1..3], ["call (app.py:9)", "Plugin.preprocess (app.py:13)"], "{message}");
}

#[test]
fn a_call_that_nests_too_deeply_is_kept_with_its_lines() {
    let server = server();
    let nested = "\
def call(body):
    nested = []
    for _ in range(3000):
        nested = [nested]
    return Response.json(nested)";
    serve(&server, &twice(nested));
    server.data.post("/v1/acme/infer/it", b"x").refused(500, "plugin_trapped", &["too deeply"]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    let message = lines["lines"][0]["message"].as_str().unwrap();
    assert!(message.contains("called by call (app.py:6)"), "{message}");
}

#[test]
fn a_failure_of_the_sdk_has_the_authors_line() {
    let server = server();
    let sets = "def call(body):\n    return Response.json({body})";
    serve(&server, &twice(sets));
    server.data.post("/v1/acme/infer/it", b"x").refused(500, "plugin_failed", &[]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    let message = lines["lines"][0]["message"].as_str().unwrap();
    assert!(message.ends_with("set is not JSON serializable (app.py:3)"), "{message}");
}

#[test]
fn a_call_imports_nothing_new_but_what_python_itself_imports_then() {
    let server = server();
    // Both wait for nothing, but `selectors` tries whether it could.
    let top = "import datetime, selectors, subprocess";
    let day = "datetime.datetime.strptime('2020-01-02', '%Y-%m-%d').day";
    serve(&server, &answering(top, day));
    assert_eq!(said(&server), "2");
    let late = "\
def ends():
    import lib.script
def late():
    import colorsys
    from html import entities
    return colorsys.rgb_to_hsv(0, 0, 1)[2], entities.name2codepoint['auml'], '€'.encode('cp1252')";
    serve(&server, &answering(late, "late()"));
    assert_eq!(said(&server), "(1, 228, b'\\x80')");
    for (import, why) in [
        (
            "'x'.encode('cp' + '1250')",
            "codecs.lookup('cp1250') at the top of the plugin's module (app.py:7)",
        ),
        ("open('nothing')", "(app.py:7)"),
        ("__import__('gzip')", "import gzip at the top of the plugin's module, too (app.py:7)"),
        ("__import__('numpy')", "read sdk/guides/numpy.md (app.py:7)"),
    ] {
        serve(&server, &answering("", import));
        let message = problem(&server)["plugin_error"]["message"].to_string();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_call_reads_the_files_of_its_folder_and_no_others() {
    let server = server();
    let attempt = "from pathlib import Path\ndef attempt(read):\n    try:\n        return read()\n    \
                   except OSError as error:\n        return error";
    let said_by = |read: &str| {
        serve(&server, &answering(attempt, &format!("attempt(lambda: {read})")));
        said(&server)
    };
    assert_eq!(said_by("open('labels.txt').read().split()"), "['cat', 'dog']");
    assert_eq!(said_by("open('./labels.txt', 'rb').read()"), "b'cat\\ndog\\n'");
    assert_eq!(said_by("len(Path('labels.txt').read_text())"), "8");
    for other in ["none.txt", "app.py", "../labels.txt", "/etc/hosts", "gristmill.json"] {
        let text = said_by(&format!("open('{other}')"));
        assert!(text.contains("is not in the plugin's folder"), "{other}: {text}");
    }
    assert!(said_by("open('labels.txt', 'a')").contains("cannot write files"));
}

#[test]
fn random_numbers_differ_between_fresh_instances() {
    let server = server();
    serve(&server, &answering("import random, secrets", "[random.random(), secrets.token_hex(4)]"));
    let (first, second) = (said(&server), said(&server));
    let parts = |text: &str| text.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (parts(&first), parts(&second));
    assert_eq!((first.len(), second.len()), (2, 2), "{first:?}");
    assert!(first[0] != second[0] && first[1] != second[1], "{first:?} {second:?}");
}

/// Serve the plugin in the pipeline `it` with this `instance_reuse`, the default if it is null.
#[track_caller]
fn reuse(server: &Server, reuse: &Value) {
    let mut pipeline = processor("it", json!({}));
    pipeline["debug"] = json!(true);
    if !reuse.is_null() {
        pipeline["instance_reuse"] = reuse.clone();
    }
    server.pipeline("acme", "it", &pipeline);
}

#[test]
fn a_call_finds_nothing_that_an_earlier_request_left() {
    let server = server();
    // A list that grows, a number, and a class attribute.
    let top = "\
KEPT, CALLS = [], [0]
class Seen: last = None
def call(body):
    before = (len(KEPT), CALLS[0], Seen.last)
    KEPT.extend([body] * 1000)
    CALLS[0] += 1
    Seen.last = body
    return before";
    serve(&server, &twice(top));
    let sends = |body: &str| server.data.post("/v1/acme/infer/it", body.as_bytes()).text();
    let fresh = "(0, 0, None)";
    let left = |body: &str| format!("(1000, 1, '{body}')");
    for mode in [json!("none"), json!("request"), Value::Null] {
        reuse(&server, &mode);
        for body in ["one", "two", "three", "four"] {
            let second = if mode == "request" { left(body) } else { fresh.to_owned() };
            assert_eq!(sends(body), format!("{fresh} {second}"), "{mode}");
        }
    }
    reuse(&server, &json!("tenant"));
    assert_eq!(sends("one"), format!("{fresh} {}", left("one")));
    assert_eq!(sends("two"), "(2000, 2, 'one') (3000, 3, 'two')");
    // What an instance cannot be rewound from: memory that has grown, objects of the host that it
    // keeps, and an open handle of WASI.
    let top = "\
import os
KEPT = []
def call(body):
    before = len(KEPT)
    KEPT.append(bytearray(8 << 20) if body == 'grow' else body)
    if body == 'keep':
        KEPT.append(Tensor.from_values([1], Dtype.FLOAT32, [1]))
    if body == 'write':
        os.write(1, b'x')
    return before";
    serve(&server, &twice(top));
    for mode in ["none", "request"] {
        reuse(&server, &json!(mode));
        for body in ["one", "grow", "one", "keep", "one", "write", "write", "one"] {
            let expected = match (mode, body) {
                ("none", _) => "0 0",
                (_, "keep") => "0 2",
                _ => "0 1",
            };
            assert_eq!(sends(body), expected, "{mode} {body}");
        }
    }
}

#[test]
fn an_idle_instance_of_another_pipeline_makes_room() {
    // Half of the budget is as much as three instances of CPython have.
    let setup = Setup::new().with_runtimes();
    let server = setup.flag("--tenant-bytes-max", "100000000").start();
    server.open_tenant("acme");
    server.model("digits");
    let top = "CALLS = [0]\ndef call(body):\n    CALLS[0] += 1\n    return CALLS[0]";
    serve(&server, &twice(top));
    let spec = |reuse: Value| {
        let mut pipeline = processor("it", json!({}));
        pipeline["instance_reuse"] = reuse;
        pipeline
    };
    let counts =
        |pipeline: &str| server.data.post(&format!("/v1/acme/infer/{pipeline}"), b"x").text();
    let (rewound, kept) = (["a", "b", "c", "d", "e", "f"], ["p", "q", "r", "s"]);
    for pipeline in rewound {
        server.pipeline("acme", pipeline, &spec(json!("none")));
    }
    for pipeline in kept {
        server.pipeline("acme", pipeline, &spec(json!({ "mode": "tenant", "idle_ms": 600_000 })));
    }
    // Instances that were rewound count for what they wrote.
    for pipeline in rewound {
        assert_eq!((counts(pipeline), counts(pipeline)), ("1 1".into(), "1 1".into()));
    }
    let held = server.status()["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap();
    assert!((1 << 20..30 << 20).contains(&held), "{held} bytes");
    for pipeline in kept {
        assert_eq!((counts(pipeline), counts(pipeline)), ("1 2".into(), "3 4".into()));
    }
    // The oldest one was dropped for the last one.
    assert_eq!((counts("s"), counts("p")), ("5 6".into(), "1 2".into()));
}

#[test]
fn sources_that_cannot_be_loaded_are_refused_with_the_place() {
    let server = server();
    for (app, named) in [
        ("x = 1\ny = x +\n", &["SyntaxError", "app.py"][..]),
        (
            "import json\nimport numpy.linalg\n",
            &[
                "app.py:2: no module named 'numpy'",
                "from gristmill_plugin import numpy as np",
                "read sdk/guides/numpy",
            ],
        ),
        (
            "import tkinter\n",
            &["no module named", "does not have this part of the standard library"],
        ),
        ("import json\ndef f(:\n", &["File \"app.py\", line 2\n    def f(:\nSyntaxError"]),
        (
            "from gristmill_plugin import numpy as np\nX = float(np.zeros(3).mean())\n",
            &["File \"app.py\", line 2", "the host works in calls only"],
        ),
        ("from six import PY3\n", &["app.py:1: no module named 'six'", "requirements.txt"]),
        (
            "def f():\n  raise ValueError('no labels')\nf()\n",
            &[
                "Traceback (most recent call last):\n  File \"app.py\", line 3",
                "line 2, in f\n    raise ValueError('no labels')\n",
            ],
        ),
        ("x = 1\n", &["exports no plugin", "@export"]),
        ("open('/etc/passwd')\n", &["'/etc/passwd' is not in the plugin's folder"]),
        ("open('labels.txt', 'w')\n", &["cannot write files"]),
        ("x = [bytearray(1 << 20) for _ in range(1 << 20)]\n", &["MemoryError", "line 1"]),
        ("import secrets\nKEY = secrets.token_hex(4)\n", &["no random bytes", "line 2"]),
        ("import time\ntime.sleep(1)\n", &["may not while it is loaded"]),
        ("while True: pass\n", &["took more than 10 s of CPU time, in <module> (app.py:1)"]),
    ] {
        let answer = server.admin.put(PLUGIN, &archive(&[("app.py", app)]));
        answer.refused(422, "invalid_plugin", named);
    }
    // The handle is a number in the memory, and no instance has it.
    let opens = answering("import os\nos.write(1, b'x')", "1");
    let answer = server.admin.put(PLUGIN, &opens);
    answer.refused(422, "invalid_plugin", &["keeps a handle of WASI open"]);
    let mut cut = archive(&[("app.py", "x = 1\n")]);
    cut.truncate(2048);
    server.admin.put(PLUGIN, &cut).refused(422, "invalid_plugin", &["archive of sources"]);
    // A plugin that has taken all memory is told so by its own calls, not by a trap.
    let full =
        "kept = []\ntry:\n    while True: kept.append(bytearray(4096))\nexcept MemoryError: pass\n";
    let answer = server.admin.put(PLUGIN, &archive(&[("app.py", full)]));
    answer.refused(422, "invalid_plugin", &[]);
    assert!(!answer.text().contains("runtime cannot load"), "{}", answer.text());
}

#[test]
fn a_runtime_is_compiled_when_the_server_starts() {
    let server = Setup::new().flag("--prepare-runtimes", "true").start();
    let compiles = || {
        let status = server.status();
        status["jobs"].as_array().unwrap().iter().any(|job| job["job"] == "compile-plugin")
    };
    eventually("without any upload a runtime is compiled", compiles);
}

#[test]
fn a_runtimes_file_that_a_tenant_uploads_leaves_the_runtime_as_it_is() {
    let server = server();
    serve(&server, &answering("", "[1]"));
    let runtime = fs::read(files::root().join("target/runtimes/python.wasm")).unwrap();
    server.admin.put(PLUGIN, &runtime).refused(
        422,
        "invalid_plugin",
        &["gristmill:runtime/loading"],
    );
    serve(&server, &answering("", "[2]"));
    assert_eq!(said(&server), "[2]");
}

/// Python raises `MemoryError` also for what it does not ask the host for.
#[test]
fn memory_that_python_does_not_get_is_told_from_a_fault_after_it() {
    let server = server();
    for expression in ["[0, 1] * (1 << 30)", "bytearray(1 << 30)"] {
        serve(&server, &answering("", expression));
        let problem = problem(&server);
        assert_eq!(problem["code"], "plugin_out_of_memory", "{problem}");
    }
    let top = "def bug():\n    try:\n        bytearray(1 << 30)\n    except MemoryError:\n        \
               pass\n    raise ValueError('bug')\n";
    serve(&server, &answering(top, "bug()"));
    let problem = problem(&server);
    assert_eq!(problem["code"], "plugin_failed", "{problem}");
    server.log_with("ValueError: bug");
}
