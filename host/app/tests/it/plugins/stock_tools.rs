//! Components that the languages' own tools make of the digits plugin serve, with each of their
//! ways to use WASI. `host/xtask/src/stock.rs` has the commands; `wasip2` is the test for Rust.

use std::io::ErrorKind;
use std::net::TcpListener;

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// A server whose tenant `stock` has the component. Fails unless it reads every digit, in fresh
/// instances and in those that stay.
#[track_caller]
fn serving(component: &str) -> Server {
    // Engines of Python and JavaScript take long to compile in the profile of the tests.
    let server = Setup::new().flag("--compile-timeout-s", "1800").start();
    server.open_tenant("stock");
    server.model("digits");
    server.plugin("stock", "digits", component);
    for reuse in ["none", "tenant"] {
        let mut digits = processor("digits", json!({}));
        digits["instance_reuse"] = json!(reuse);
        digits["debug"] = json!(true);
        server.pipeline("stock", "digits", &digits);
        server.assert_reads_digits("stock");
    }
    server
}

#[test]
fn componentize_py_without_wasi_serves() {
    serving("digits-python-stub-wasi");
}

#[test]
fn componentize_js_with_all_features_serves() {
    let server = serving("digits-js-stock");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let path = format!("/v1/stock/infer/digits?fetch=http://{address}/");
    let answer = server.data.post(&path, &files::digit(7));
    assert_eq!(answer.status, 500, "{}", answer.text());
    let shown = answer.text();
    assert!(
        shown.contains("plugin called `wasi:http/") && shown.contains("may not use"),
        "{shown}"
    );
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    server.assert_reads_digits("stock");
}

#[test]
fn clang_with_wasi_libc_serves() {
    serving("digits-c-wasi");
}
