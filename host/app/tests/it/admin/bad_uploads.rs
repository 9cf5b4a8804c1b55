//! Files that are not plugins or models: refused with the reason, while the old version continues
//! to serve.

use wit_component::StringEncoding;

use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::guests::{self, replaced, with_endless_type};
use crate::support::modules::{ANSWER, Guest, honest};
use crate::support::server::Server;

/// A component without imports and exports: only its preamble.
const EMPTY_COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

/// An empty core module, which has no component type.
const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Upload `file` in place of a version that works. Fails unless the old version continues to serve.
#[track_caller]
fn uploaded(path: &str, file: &[u8]) -> TestAnswer {
    let mut server = Server::start();
    server.digits("acme");
    let before = server.status();
    let answer = server.admin.put(&format!("/admin/v1/{path}"), file);
    server.assert_reads("acme", 9);
    let after = server.status();
    assert_eq!(after["release"], before["release"]);
    assert_eq!(after["tenants"], before["tenants"]);
    assert_eq!(after["models"]["digits"]["digest"], before["models"]["digits"]["digest"]);
    server.assert_alive();
    answer
}

#[track_caller]
fn plugin_refused(file: &[u8], named: &[&str]) {
    let answer = uploaded("tenants/acme/plugins/digits", file);
    let detail = answer.refused(422, "invalid_plugin", named);
    assert!(detail.starts_with("plugin \"digits\": "), "{detail}");
}

#[track_caller]
fn model_refused(file: &[u8], named: &[&str]) {
    let detail = uploaded("models/digits", file).refused(422, "invalid_model", named);
    assert!(detail.starts_with("model \"digits\": "), "{detail}");
}

#[test]
fn a_text_as_plugin() {
    plugin_refused(b"hello world", &["not a WebAssembly component", "68 65 6c 6c 6f"]);
}

#[test]
fn nothing_as_plugin() {
    plugin_refused(b"", &["nothing at all"]);
}

#[test]
fn a_module_without_a_component_type() {
    plugin_refused(EMPTY_MODULE, &["a core module without a component type"]);
}

#[test]
fn a_truncated_plugin() {
    let plugin = files::plugin("hostile");
    plugin_refused(&plugin[..plugin.len() / 2], &["not a valid WebAssembly component"]);
}

#[test]
fn a_function_that_goes_on_for_too_long() {
    let named = ["one function has 1048", "bytes of code; the limit is 1048576"];
    plugin_refused(&guests::with_code(1 << 20), &named);
}

#[test]
fn a_plugin_whose_texts_are_in_utf16() {
    for encoding in [StringEncoding::UTF16, StringEncoding::CompactUTF16] {
        let guest = Guest::pre(|code| {
            honest(code);
            code.i32_const(ANSWER);
        });
        plugin_refused(&guest.file_in(encoding), &["UTF-16", "encoding utf8"]);
    }
}

#[test]
fn a_module_whose_type_has_no_end() {
    let answer = uploaded("tenants/acme/plugins/digits", &with_endless_type());
    let named = ["compilation failed: signal 6 (SIGABRT) ended it: ", "overflowed its stack"];
    let detail = answer.refused(422, "invalid_plugin", &named);
    // Neither limit is the cause.
    assert!(!detail.contains("compile_"), "{detail}");
}

#[test]
fn a_component_with_unknown_imports() {
    let plugin = files::plugin("digits");
    let renamed = replaced(&plugin, b"gristmill:plugin/tensors@", b"gristmill:plugin/sensors@");
    let named =
        ["unknown imports: gristmill:plugin/sensors@0.3.0", "gristmill:plugin/tensors@0.3.0"];
    plugin_refused(&renamed, &named);
}

#[test]
fn a_component_that_needs_more_of_wasi_than_plugins_get() {
    let plugin = files::fixture("unknown-imports.wasm");
    // It imports `wasi:sockets/tcp`, too, which plugins get.
    let plugin = replaced(&plugin, b"wasi:filesystem/types", b"wasi:filesystem/links");
    let named = [
        "it imports wasi:filesystem/links@0.2.0, which plugins do not get",
        "componentize-js with `disableFeatures: [",
    ];
    plugin_refused(&plugin, &named);
}

#[test]
fn a_component_with_too_many_modules() {
    let named = ["one instance has 65 core module instances; the limit is 64 (plugin_instances)"];
    plugin_refused(&guests::with_instances(65), &named);
    plugin_refused(&guests::with_instances(64), &["does not fit the contract"]);
}

#[test]
fn a_component_that_exports_nothing() {
    plugin_refused(
        EMPTY_COMPONENT,
        &["none of `preprocess`, `postprocess` and `handle`: it exports nothing"],
    );
}

#[test]
fn a_component_that_exports_something_else() {
    let named = ["none of `preprocess`, `postprocess` and `handle`: run"];
    plugin_refused(&files::fixture("exports-run.wasm"), &named);
}

#[test]
fn a_component_whose_preprocess_is_no_function() {
    let named = ["does not fit the contract", "`preprocess` is not a function"];
    plugin_refused(&files::fixture("preprocess-is-no-function.wasm"), &named);
}

#[test]
fn a_plugin_that_lacks_what_its_pipeline_calls() {
    let answer = uploaded("tenants/acme/plugins/digits", &files::plugin("ranker-pre"));
    let named =
        ["pipeline \"digits\"", "\"digits\" is a preprocessor and exports no `postprocess`"];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_plugin_for_nobody() {
    let answer = uploaded("tenants/nobody/plugins/digits", &files::plugin("digits"));
    answer.refused(404, "not_found", &["no tenant \"nobody\""]);
}

#[test]
fn a_text_as_model() {
    model_refused(b"hello world", &["the file is not an ONNX model"]);
}

#[test]
fn nothing_as_model() {
    model_refused(b"", &["the file is empty"]);
}

#[test]
fn a_truncated_model() {
    let model = files::model("digits");
    model_refused(&model[..model.len() / 2], &["the file is not an ONNX model"]);
}

#[test]
fn a_model_whose_weights_lie_in_another_file() {
    let named = ["(weights.bin)", "`gristmill model push` takes", "upload a tar archive"];
    model_refused(&files::fixture("external-data.onnx"), &named);
}

#[test]
fn an_archive_that_is_packed() {
    model_refused(b"PK\x03\x04 and so on", &["it is a zip archive", "`gristmill model push`"]);
    model_refused(b"\x1f\x8b and so on", &["it is a gzip archive", "upload a tar archive"]);
}

#[test]
fn a_model_that_no_backend_can_run() {
    let named =
        ["no backend can run this model", "onnxruntime: ", "tract: it has no operator", "NoSuchOp"];
    model_refused(&files::fixture("unknown-operator.onnx"), &named);
}
