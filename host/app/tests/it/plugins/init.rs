//! `init`: it runs once, when its plugin is uploaded, and every instance begins with its memory.

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::inits;
use crate::support::server::Server;

fn server() -> Server {
    let server = Server::start();
    server.open_tenant("acme");
    server
}

#[test]
fn each_instance_begins_with_the_memory_that_init_left() {
    let server = server();
    server.model("digits");
    server.plugin("acme", "vocabulary", "vocabulary");
    server.pipeline("acme", "words", &processor("vocabulary", json!({})));
    let ask = |query: &str| {
        server
            .data
            .post(&format!("/v1/acme/infer/words{query}"), b"word-7 word-29999 no-word")
            .text()
    };
    for _ in 0..3 {
        assert_eq!(ask(""), "7 29999 unknown; read 1 times");
        // The instance ends with its request, and so do its changes.
        assert_eq!(ask("?anew=1"), "7 29999 unknown; read 2 times");
    }
    // The code that the host kept has the memory, too.
    let server = server.kill().start();
    let again = server.data.post("/v1/acme/infer/words", b"word-1");
    assert_eq!(again.text(), "1; read 1 times");
}

#[test]
fn a_plugin_whose_init_fails_is_refused_with_its_reason() {
    let server = server();
    let path = "/admin/v1/tenants/acme/plugins/init";
    for (init, named) in [
        (inits::fails as inits::Init, &["`init` failed: no words"][..]),
        (inits::traps, &["`init` failed", "unreachable"]),
        (inits::reads_a_tensor, &["`init` failed", "tensors@0.3.0", "not been defined"]),
        (inits::loops, &["`init` took more than 10 s of CPU time"]),
        (inits::grows, &["`init` failed", "memory"]),
    ] {
        let answer = server.admin.put(path, &inits::with_init(init, inits::V0_3));
        answer.refused(422, "invalid_plugin", named);
    }
    for contract in [inits::V0_2, inits::V0_3] {
        let answer = server.admin.put(path, &inits::with_init(inits::succeeds, contract));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}
