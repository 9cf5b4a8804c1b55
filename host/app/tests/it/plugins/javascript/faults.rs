//! What people write by mistake, and what the author is told.

use serde_json::json;

use super::{archive, put, serve, server};

/// A plugin whose `preprocess` runs these lines, which begin at line 3.
fn running(lines: &str) -> Vec<u8> {
    archive(&format!(
        "\
const {{ Tensor, PluginResponse }} = require('gristmill-plugin');
exports.preprocess = async (context, request) => {{
{lines}
  return {{ inputs: {{ input: Tensor.from(new Float32Array(784), [1, 1, 28, 28]) }} }};
}};
exports.postprocess = () => PluginResponse.json('done');
"
    ))
}

#[test]
fn what_nobody_catches_fails_the_call_with_its_place() {
    let server = server();
    for (lines, text) in [
        (
            "  setTimeout(() => { throw new Error('in a timer'); }, 1);\n  \
             await new Promise((resolve) => setTimeout(resolve, 1000));",
            "uncaught Error: in a timer, at plugin.js:3",
        ),
        (
            "  queueMicrotask(() => { throw new Error('in a task'); });\n  \
             await new Promise(() => setTimeout(() => {}, 1000));",
            "uncaught Error: in a task, at plugin.js:3",
        ),
        (
            "  await fetch('http://a.example');",
            "import { fetch } from 'gristmill-plugin', at plugin.js:3",
        ),
        ("  throw { code: 7 };", r#"thrown: {\"code\":7}"#),
        (
            "  throw new Error('outer', { cause: new Error('inner') });",
            "uncaught Error: outer; caused by Error: inner, at plugin.js:3",
        ),
    ] {
        put(&server, &running(lines));
        serve(&server, "none");
        server.data.post("/v1/acme/infer/it", b"").refused(500, "plugin_failed", &[]);
        server.logs(text);
    }
    // Nothing is left that could resolve it.
    put(&server, &running("  await new Promise(() => {});"));
    serve(&server, "none");
    let answer = server.data.post("/v1/acme/infer/it", b"");
    answer.refused(500, "plugin_trapped", &["a promise that nothing resolves"]);
}

#[test]
fn too_much_memory_is_told_once_with_its_limit() {
    let server = server();
    put(&server, &running("  for (const all = [];;) all.push(new Uint8Array(1 << 20).fill(1));"));
    serve(&server, "none");
    let answer = server.data.post("/v1/acme/infer/it", b"");
    answer.refused(500, "plugin_out_of_memory", &["limits.memory_bytes"]);
    let lines = server.admin.get("/admin/v1/tenants/acme/plugins/it/logs").ok();
    assert_eq!(lines["lines"].as_array().map(Vec::len), Some(1), "{lines:#}");
}

#[test]
fn an_error_that_is_printed_has_the_authors_place() {
    let server = server();
    put(&server, &running("  console.error('careful:', new RangeError('far'));"));
    serve(&server, "none");
    assert_eq!(server.data.post("/v1/acme/infer/it", b"").ok(), json!("done"));
    server.logs("careful: RangeError: far, at plugin.js:3");
}

#[test]
fn a_call_that_takes_too_long_is_kept_with_its_functions_and_lines() {
    let server = server();
    put(&server, &running("  const spin = (n) => {\n    while (n > 0) n += 0;\n  };\n  spin(1);"));
    serve(&server, "none");
    let answer = server.data.post("/v1/acme/infer/it", b"");
    answer.refused(504, "plugin_timeout", &["250 ms of CPU time"]);
    server.logs(", in spin (plugin.js:4), called by ");
    server.logs("preprocess (plugin.js:6)");
    // In the engine's own code, which has no line.
    put(&server, &running("  /^(a+)+$/.test('a'.repeat(40) + 'b');"));
    serve(&server, "none");
    server.data.post("/v1/acme/infer/it", b"").refused(504, "plugin_timeout", &[]);
    server.logs("preprocess (plugin.js:3)");
}
