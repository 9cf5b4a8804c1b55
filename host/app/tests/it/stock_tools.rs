//! Components that the languages' own tools make of the digits plugin serve, with each of their
//! ways to use WASI. `host/xtask/src/stock.rs` has the commands; `wasip2` is the test for Rust.

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::setup::Setup;

/// Fails unless the component reads every digit, in fresh instances and in those that stay.
#[track_caller]
fn assert_serves(component: &str) {
    // Engines of Python and JavaScript take long to compile in the profile of the tests.
    let server = Setup::new().flag("--compile-timeout-s", "600").start();
    server.open_tenant("stock");
    server.model("digits");
    server.plugin("stock", "digits", component);
    for reuse in ["none", "tenant"] {
        let mut digits = processor("digits", json!({}));
        digits["instance_reuse"] = json!(reuse);
        server.pipeline("stock", "digits", &digits);
        server.assert_reads_digits("stock");
    }
}

#[test]
fn componentize_py_without_wasi_serves() {
    assert_serves("digits-python-stub-wasi");
}

#[test]
fn componentize_js_with_all_features_serves() {
    assert_serves("digits-js-stock");
}

#[test]
fn clang_with_wasi_libc_serves() {
    assert_serves("digits-c-wasi");
}
