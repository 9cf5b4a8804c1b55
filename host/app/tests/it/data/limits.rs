//! Deadlines and full queues.

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::load::under_load;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

#[test]
fn a_request_is_over_at_its_deadline() {
    let server = Server::start();
    server.hostile("acme");
    // Enough for an honest call on a busy machine, so that only the endless one is late.
    let limits = json!({ "timeout_ms": 2000, "cpu_ms": 60_000 });
    server.pipeline("acme", "hurried", &processor("hostile", limits));
    for deed in ["loop", "post-loop"] {
        let answer = server.data.post(&format!("/v1/acme/infer/hurried?do={deed}"), b"");
        answer.refused(504, "deadline_exceeded", &["no answer within 2000 ms"]);
    }
    assert_eq!(server.data.post("/v1/acme/infer/hostile", b"").text(), "harmless");
}

#[test]
fn a_caller_that_hangs_up_ends_its_call_which_counts_as_failed() {
    let setup = Setup::new().flag("--concurrent-plugin-calls", "1");
    let server = setup.flag("--open-tenant", "acme").start();
    server.hostile("acme");
    // Enough for an honest call on a busy machine, so that it is refused only for want of a place.
    let limits = json!({ "timeout_ms": 2000 });
    server.pipeline("acme", "hurried", &processor("hostile", limits));
    let head = raw::post("/v1/acme/infer/patient?do=loop", &["content-length: 0"]);
    let endless = Raw::sent(&server.data, &head);
    let waited = eventually_some("there is no place for a second call", || {
        let hurried = server.data.post("/v1/acme/infer/hurried", b"");
        (hurried.status != 200).then_some(hurried)
    });
    waited.refused(504, "deadline_exceeded", &["no answer within 2000 ms"]);
    let counts = || {
        let statistics = server.data.get("/v2/models/pipeline:patient/stats").ok();
        let counted = &statistics["model_stats"][0]["inference_stats"];
        [counted["success"]["count"].clone(), counted["fail"]["count"].clone()]
    };
    assert_eq!(counts(), [0, 0]);
    drop(endless);
    assert_eq!(server.data.post("/v1/acme/infer/hostile", b"").text(), "harmless");
    eventually("the call counts as failed", || counts() == [0, 1]);
}

#[test]
fn a_full_queue_refuses_further_requests() {
    let server = Server::start();
    server.hostile("acme");
    let config = json!({ "max_batch_size": 1, "max_queue_rows": 1 });
    server.put_json("models/digits/config", &config);
    let work = |_| {
        let answer = server.data.post("/v1/acme/infer/hostile", b"");
        assert!(answer.status == 429 || answer.text() == "harmless", "{}", answer.text());
        answer
    };
    let refused = under_load(16, work, |answers| {
        eventually_some("a full queue", || answers.try_iter().find(|answer| answer.status == 429))
    });
    refused.refused(429, "queue_full", &["queue is full: 1 of 1 rows"]);
    assert_eq!(refused.header("retry-after"), "1");
    assert!(server.status()["models"]["digits"]["statistics"]["refused"].as_u64().unwrap() > 0);
}

#[test]
fn a_plugins_call_ends_at_its_pipelines_own_limits() {
    let server = Server::start();
    server.hostile("acme");
    let limits = json!({ "cpu_ms": 20, "memory_bytes": 4 << 20, "response_bytes": 4 });
    server.pipeline("acme", "narrow", &processor("hostile", limits));
    let narrow = |deed: &str| server.data.post(&format!("/v1/acme/infer/narrow?do={deed}"), b"");
    narrow("loop").refused(504, "plugin_timeout", &["pre", "20 ms of CPU time"]);
    narrow("eat-memory").refused(500, "plugin_out_of_memory", &["4194304 bytes of memory"]);
    narrow("").refused(500, "plugin_invalid_output", &["8 bytes is over the limit of 4"]);
}
