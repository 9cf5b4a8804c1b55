//! The start and the end: answers while the state loads, and the shutdown.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::cli::push_refused;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;
use serde_json::{Value, json};

#[test]
fn a_server_that_is_to_end_says_so_and_serves_on_for_a_while() {
    let server = Setup::new().flag("--shutdown-delay-s", "3600").start();
    server.digits("acme");
    assert_eq!(server.data.get("/readyz").status, 200);
    server.signal_terminate();
    server.log_with("shutting down soon");
    let answer = server.data.get("/readyz");
    answer.refused(503, "unavailable", &["the server is shutting down"]);
    assert_eq!(server.data.get("/v2/health/ready").status, 400);
    assert_eq!(server.data.get("/livez").status, 200);
    server.assert_reads("acme", 3);
    // A second signal ends the delay.
    server.signal_terminate();
    let (_, status, setup) = server.wait();
    assert_eq!(status.code(), Some(0));
    let log = fs::read_to_string(setup.log_path()).unwrap();
    assert!(log.contains("shutting down: finishing requests under way"), "{log}");
}

#[test]
fn a_server_ends_within_its_drain_timeout_whatever_its_plugins_do() {
    let server = Setup::new().flag("--drain-timeout-s", "1").start();
    server.hostile("acme");
    server.digits("other");
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 600_000 });
    server.pipeline("acme", "endless", &processor("hostile", limits));
    let head = raw::post("/v1/acme/infer/endless?do=loop", &["content-length: 0"]);
    let _endless: Vec<_> = (0..8).map(|_| Raw::sent(&server.data, &head)).collect();
    server.assert_reads("other", 3);
    let signalled = Instant::now();
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert_eq!(status.code(), Some(0));
    assert!(signalled.elapsed() < Duration::from_secs(45), "it took {:?}", signalled.elapsed());
}

#[test]
fn a_signal_during_the_drain_ends_the_server_at_once() {
    let server = Setup::new().flag("--drain-timeout-s", "3600").start();
    server.hostile("acme");
    // The body does not come while the test runs.
    let head = raw::post("/v1/acme/infer/patient", &["content-length: 100000"]);
    let mut slow = Raw::sent(&server.data, &head);
    slow.send(&[b' '; 50_000]);
    let under_way = || server.status()["tenants"]["acme"]["bytes_under_way"].as_u64().unwrap();
    eventually("the request is under way", || under_way() >= 50_000);
    server.signal_terminate();
    server.log_with("shutting down: finishing requests under way");
    let signalled = Instant::now();
    server.signal_terminate();
    let (_, status, setup) = server.wait();
    assert_eq!(status.code(), Some(0));
    assert!(signalled.elapsed() < Duration::from_secs(45), "it took {:?}", signalled.elapsed());
    let log = fs::read_to_string(setup.log_path()).unwrap();
    assert!(log.contains("another signal: ending at once"), "{log}");
    drop(slow);
}

#[test]
fn a_server_that_loads_lives_is_not_ready_and_can_be_ended() {
    let setup = Setup::new();
    let log = setup.data_dir().join("store/log");
    fs::create_dir_all(&log).unwrap();
    // Opening the file waits for a writer that never comes, so the start does not end.
    let release = log.join(format!("{:020}.json", 1));
    assert!(Command::new("mkfifo").arg(&release).status().unwrap().success());
    let server = setup.start_loading();
    assert_eq!(server.data.get("/livez").text(), "live");
    assert_eq!(server.data.get("/v2/health/live").ok(), json!({ "live": true }));
    assert_eq!(server.data.get("/v2/health/ready").status, 400);
    for answer in [
        server.data.get("/readyz"),
        server.data.post("/v1/acme/infer", b"x"),
        server.admin.get("/admin/v1/status"),
    ] {
        answer.refused(503, "unavailable", &["loading: 0 releases replayed"]);
        assert!(!answer.header("x-request-id").is_empty());
    }
    let refused = server.data.post("/v1/acme/infer", b"x");
    let document: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(document["error"]["message"], document["detail"]);
    assert_eq!(document["error"]["code"], "unavailable");
    let of_tenant = server.data.get("/v1/acme/v2/health/live");
    assert_eq!(of_tenant.ok(), json!({ "live": true }));
    for path in ["/v2/models/digits", "/v1/acme/v2/models/digits"] {
        let answer = server.data.get(path);
        assert_eq!(answer.status, 503);
        assert!(answer.text().contains(r#"{"error":"loading: "#), "{}", answer.text());
    }
    let error = push_refused(&["--tenant", "acme", "--admin", server.admin.address()]);
    assert!(error.contains("503") && error.contains("loading: "), "{error}");
    assert!(!error.contains("the data plane?"), "{error}");
    server.log_with("loading: 0 releases replayed");
    let signalled = Instant::now();
    server.signal_terminate();
    let (rest, status, _) = server.wait();
    assert_eq!((rest.as_str(), status.code()), ("", Some(0)));
    assert!(signalled.elapsed() < Duration::from_secs(60), "it took {:?}", signalled.elapsed());
}

#[test]
fn a_server_of_which_nothing_serves_is_not_ready() {
    let server = Server::start();
    server.digits("acme");
    server.ranker("other");
    let digests = ["digits", "ranker"]
        .map(|model| server.status()["models"][model]["digest"].as_str().unwrap().to_owned());
    let setup = server.kill();
    let spoil = |setup: &Setup, digest: &str| {
        let hex = digest.strip_prefix("sha256:").unwrap();
        fs::write(setup.data_dir().join("store/blobs").join(hex), "spoilt").unwrap();
    };
    spoil(&setup, &digests[0]);
    let server = setup.start();
    let expected = json!({ "status": "ready", "unavailable": { "pipelines": 1, "models": 1 } });
    assert_eq!(server.data.get("/readyz").ok(), expected);
    let setup = server.kill();
    spoil(&setup, &digests[1]);
    let server = setup.start();
    let named = ["nothing can serve", "all pipelines (2)", "all models (2)"];
    let detail = server.data.get("/readyz").refused(503, "unavailable", &named);
    assert!(!detail.contains("acme") && !detail.contains("digits"), "{detail}");
    // An operator can still repair it.
    server.digits("acme");
    assert_eq!(server.data.get("/readyz").status, 200);
}
