//! A plugin in Rust for `wasm32-wasip2`, as cargo alone builds it: its use of the standard library
//! works, or fails with an ordinary error.
//!
//! The file is `plugins/fixtures/wasip2/wasip2-std.wasm`; its source is `plugins/wasip2`.

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

fn server() -> Server {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    server.put("tenants/acme/plugins/std", &files::wasip2_plugin());
    let limits = json!({ "timeout_ms": 60_000 });
    server.pipeline("acme", "std", &processor("std", limits));
    server
}

#[test]
fn the_standard_library_works_without_an_operating_system() {
    let server = server();
    for (deed, expected) in [
        ("clocks", "true true"),
        ("map", "1"),
        // Arguments, variables, a file, a folder, a connection, a thread.
        ("looks", "0 0 false false false false"),
        ("lines", ""),
    ] {
        let answer = server.data.post(&format!("/v1/acme/infer/std?do={deed}"), b"");
        assert_eq!((answer.status, answer.text().as_str()), (200, expected), "{deed}");
    }
    let log = server.log_with("a warning of std");
    assert!(log.contains("a line of std"), "{log}");
}

#[test]
fn a_panic_and_an_exit_end_their_call_alone() {
    let server = server();
    let refused = |deed: &str, named: &[&str]| {
        let answer = server.data.post(&format!("/v1/acme/infer/std?do={deed}"), b"");
        answer.refused(500, "plugin_trapped", named);
    };
    refused("panic", &[]);
    let log = server.log_with("order 42 is bad");
    assert!(log.contains("src/lib.rs:"), "{log}");
    refused("exit", &["plugin called exit with status 1"]);
    let answer = server.data.post("/v1/acme/infer/std?do=map", b"");
    assert_eq!((answer.status, answer.text().as_str()), (200, "1"));
}
