//! Acknowledged changes outlive the process; requests under way outlive the signal.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use gristmill_client::http::Request;
use serde_json::Value;

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak::times;

/// The status without its counters.
fn state_of(server: &Server) -> Value {
    let mut status = server.served();
    for (_, model) in status["models"].as_object_mut().unwrap() {
        model.as_object_mut().unwrap().remove("statistics");
    }
    status
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    let server = Server::start();
    server.keyed_tenant("keyed", "the-key-of-keyed-1");
    server.digits("acme");
    server.ranker("other");
    let config = serde_json::json!({ "max_batch_size": 8, "instances": 2 });
    let last = server.put_json("models/digits/config", &config);
    let before = state_of(&server);
    let server = server.kill().start();
    assert_eq!(state_of(&server), before);
    assert_eq!(server.release(), last);
    server.assert_reads_digits("acme");
    server.assert_ranks("other");
    server.data.get("/v1/keyed").refused(401, "unauthenticated", &[]);
    assert_eq!(server.data.with_token("the-key-of-keyed-1").get("/v1/keyed").status, 200);
}

#[test]
fn a_kill_right_after_an_upload_loses_nothing() {
    let mut server = Server::start();
    server.digits("acme");
    for (round, file) in ["hostile", "digits", "hostile", "digits"].into_iter().enumerate() {
        let release = server.plugin("acme", "digits", file);
        server = server.kill().start();
        assert_eq!(server.release(), release, "round {round}");
        let answer = server.data.post("/v1/acme/infer", &files::digit(3)).text();
        assert_eq!(answer == "harmless", file == "hostile", "round {round}: {answer}");
    }
}

#[test]
fn a_kill_in_the_middle_of_deploys_loses_nothing_that_was_acknowledged() {
    let (mut setup, mut acknowledged) = (Setup::new(), 0);
    for kill in 0..times(10, 300) {
        let server = setup.start();
        let serves = server.release();
        assert!(serves >= acknowledged, "release {acknowledged} is lost, {serves} serves: {kill}");
        // The deploys never pause, so each kill meets them at other steps.
        let (is_over, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let deploys = (0..3).map(|number| {
            let (admin, is_over, made) = (server.admin.clone(), is_over.clone(), made.clone());
            thread::spawn(move || {
                let mut last = 0;
                for weight in (1..=1000).cycle() {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let body = serde_json::json!({ "open": true, "weight": weight }).to_string();
                    let put = Request::put(format!("/admin/v1/tenants/t-{number}"));
                    let answer = admin.try_send(put.body(body.into()).unwrap());
                    if let Some(answer) = answer.ok().filter(|answer| answer.status == 200) {
                        last = answer.ok()["release"].as_u64().unwrap();
                        made.fetch_add(1, Ordering::Relaxed);
                    }
                }
                last
            })
        });
        let deploys: Vec<_> = deploys.collect();
        eventually("some deploys are made", || made.load(Ordering::Relaxed) > kill % 7);
        setup = server.kill();
        is_over.store(true, Ordering::Relaxed);
        let last = deploys.into_iter().map(|deploys| deploys.join().unwrap()).max();
        acknowledged = acknowledged.max(last.unwrap());
    }
    let server = setup.start();
    assert!(server.release() >= acknowledged);
    server.open_tenant("acme");
}

#[test]
fn changes_made_at_the_same_time_are_all_kept() {
    let server = Server::start();
    let tenants: Vec<_> = (0..16).map(|index| format!("tenant-{index}")).collect();
    let mut releases: Vec<_> = thread::scope(|scope| {
        let server = &server;
        let changes = tenants.iter().map(|tenant| scope.spawn(move || server.open_tenant(tenant)));
        let changes: Vec<_> = changes.collect();
        changes.into_iter().map(|change| change.join().unwrap()).collect()
    });
    releases.sort_unstable();
    assert_eq!(releases, (1..=16).collect::<Vec<_>>());
    let server = server.kill().start();
    assert!(tenants.iter().all(|tenant| server.data.get(&format!("/v1/{tenant}")).status == 200));
}

#[test]
fn a_termination_lets_requests_finish() {
    let server = Server::start();
    server.digits("acme");
    let body = files::digit(5);
    let length = format!("content-length: {}", body.len());
    let head = raw::post("/v1/acme/infer", &["expect: 100-continue", &length]);
    let mut request = Raw::sent(&server.data, &head);
    // Now the server waits for the body: the request is under way.
    assert!(request.read_until("\r\n\r\n").starts_with("HTTP/1.1 100 "));
    server.signal_terminate();
    eventually("no connection is accepted", || Raw::try_open(&server.data).is_err());
    request.send(&body);
    assert_eq!(request.answer().ok()["label"], 5);
    let (_, status, _) = server.wait();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_termination_waits_no_longer_than_configured() {
    let server = Setup::new().flag("--drain-timeout-s", "1").start();
    server.digits("acme");
    let head = raw::post("/v1/acme/infer", &["expect: 100-continue", "content-length: 9"]);
    let mut request = Raw::sent(&server.data, &head);
    request.read_until("\r\n\r\n");
    server.signal_terminate();
    // The body never comes.
    let (_, status, setup) = server.wait();
    assert_eq!(status.code(), Some(0));
    let server = setup.start();
    server.log_with("still under way when the drain timeout passed");
}

/// Damage the store's file of a model.
fn damage_model(server: Server, model: &str) -> Server {
    let digest = server.status()["models"][model]["digest"].as_str().unwrap().to_owned();
    let hex = digest.strip_prefix("sha256:").unwrap();
    let setup = server.kill();
    let blob = setup.data_dir().join("store/blobs").join(hex);
    assert!(blob.is_file(), "{}", blob.display());
    fs::write(&blob, "spoilt").unwrap();
    setup.start()
}

#[test]
fn a_damaged_model_takes_only_its_own_pipelines_along() {
    let server = Server::start();
    server.digits("acme");
    server.ranker("other");
    let server = damage_model(server, "ranker");
    server.assert_reads_digits("acme");
    let answer = server.data.post("/v1/other/infer/ranker", b"{}");
    answer.refused(503, "unavailable", &["pipeline \"ranker\" is not available", "another digest"]);
    assert_eq!(answer.header("retry-after"), "1");
    let status = server.status();
    assert_eq!(status["models"]["ranker"]["state"], "failed");
    assert_eq!(status["tenants"]["other"]["pipelines"]["ranker"]["state"], "unavailable");
    server.log_with("not served");
    // The server still accepts changes that do not concern the model.
    server.digits("third");
    server.assert_reads("third", 1);
}

#[test]
fn a_damaged_model_is_mended_by_uploading_it_again() {
    let server = Server::start();
    server.ranker("acme");
    let server = damage_model(server, "ranker");
    server.data.post("/v1/acme/infer", b"{}").refused(503, "unavailable", &[]);
    server.model("ranker");
    server.assert_ranks("acme");
}

#[test]
fn a_disk_that_takes_no_writes_refuses_changes_and_serving_goes_on() {
    let server = Setup::new().obeying_permissions().start();
    server.digits("acme");
    let before = server.release();
    let allow = |mode: u32| {
        for folder in folders(&server.data_dir()) {
            fs::set_permissions(folder, Permissions::from_mode(mode)).unwrap();
        }
    };
    allow(0o555);
    for (path, body) in [
        ("tenants/other", b"{\"open\":true}".to_vec()),
        ("tenants/acme/plugins/new", files::plugin("ranker-pre")),
        ("models/new", files::model("ranker")),
    ] {
        let refused = server.admin.put(&format!("/admin/v1/{path}"), &body);
        refused.refused(507, "insufficient_storage", &["read-only", "the change is not made"]);
        server.assert_reads("acme", 7);
    }
    assert_eq!(server.release(), before);
    allow(0o755);
    assert_eq!(server.open_tenant("other"), before + 1);
    server.assert_reads("acme", 7);
}

/// The folder and all below it.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    let below = below.iter().flat_map(|path| folders(path));
    std::iter::once(folder.to_owned()).chain(below).collect()
}
