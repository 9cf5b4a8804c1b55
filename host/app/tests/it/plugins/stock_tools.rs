//! Components that the languages' own tools make of the digits plugin serve, with each of their
//! ways to use WASI. `host/xtask/src/stock.rs` has the commands; `wasip2` is the test for Rust.

use serde_json::json;

use crate::support::admin_api::read;
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::service::{Service, whole};
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
    let service = Service::answering(|_| whole("200 OK", "", "fetched"));
    let path = format!("/v1/stock/infer/digits?fetch={}", service.url("/"));
    let fetch = || server.data.post(&path, &files::digit(7));
    let refused = fetch();
    assert_eq!(refused.status, 500, "{}", refused.text());
    let lines = || read(&server, "tenants/stock/plugins/digits/logs")["lines"].to_string();
    assert!(lines().contains("nothing grants it"), "{}", lines());
    assert_eq!(service.connections(), 0);
    server.assert_reads_digits("stock");

    let (port, addresses) = (service.port(), ["127.0.0.1"]);
    let grant =
        json!([{ "scheme": "http", "host": "127.0.0.1", "port": port, "addresses": addresses }]);
    server.put_json("tenants/stock", &json!({ "open": true, "http": grant }));
    assert_eq!(fetch().ok()["label"], 7);
    assert!(lines().contains("fetched"), "{}", lines());
}

#[test]
fn clang_with_wasi_libc_serves() {
    serving("digits-c-wasi");
}
