//! Plugins that call the host thousands of times in a straight line, where wasmtime does not look
//! at the clock.

use std::fmt::Write;

use serde_json::json;

use crate::support::server::Server;

/// The calls in the line. One function may have a mebibyte of code.
const CALLS: usize = 40_000;

/// The text of the component, with its two open places.
const COMPONENT: &str = include_str!("../../fixtures/straight-line.wat");

/// A component that does `setup` and then `call` so many times.
fn component(setup: &str, call: &str, calls: usize) -> Vec<u8> {
    let mut line = String::new();
    (0..calls).for_each(|_| writeln!(line, "{call}").unwrap());
    let text = COMPONENT.replace("{{setup}}", setup).replace("{{calls}}", &line);
    wat::parse_str(text).unwrap()
}

#[test]
fn calls_without_a_loop_end_at_the_limit() {
    let server = Server::start();
    server.digits("good");
    server.digits("acme");
    // 7 MiB of text, and 4096 lines.
    let looks_up = "local.get 0 i32.const 0 i32.const 7340032 i32.const 7340032 call $resolve";
    let writes = "local.get 0 i32.const 0 i32.const 8192 i32.const 7340032 call $write";
    let lines = "(local i32) (local i32) call $stdout local.set 0
        (loop $l (i32.store16 (local.get 1) (i32.const 0x0a61))
            (local.set 1 (i32.add (local.get 1) (i32.const 2)))
            (br_if $l (i32.lt_u (local.get 1) (i32.const 8192))))";
    let network = "(local i32) call $inst local.set 0";
    for (name, setup, call) in [("looks-up", network, looks_up), ("writes", lines, writes)] {
        let put = |calls: usize| {
            let file = component(setup, call, calls);
            server.put(&format!("tenants/acme/plugins/{name}"), &file);
        };
        put(1);
        let limits = json!({ "cpu_ms": 5, "timeout_ms": 100_000 });
        let spec = json!({ "pre": name, "model": "digits", "post": "digits", "limits": limits });
        server.pipeline("acme", name, &spec);
        let path = format!("/v1/acme/infer/{name}");
        // The end of its work.
        server.data.post(&path, b"").refused(500, "plugin_trapped", &["unreachable"]);
        put(CALLS);
        server.data.post(&path, b"").refused(504, "plugin_timeout", &[]);
        server.assert_reads_digits("good");
    }
}
