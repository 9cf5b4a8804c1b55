//! Uploads that run at the same time, that are slow, or whose clients leave.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::onnx;
use crate::support::raw::{self, Raw};
use crate::support::s3::S3;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

fn jobs(server: &Server) -> Vec<Value> {
    server.status()["jobs"].as_array().unwrap().clone()
}

/// An upload of a model whose first load does not end before its client leaves.
fn endless_upload(server: &Server) -> Raw {
    let file = onnx::endless();
    let mut upload = Raw::sent(&server.admin, &raw::upload("models/endless", file.len()));
    upload.send(&file);
    upload
}

#[test]
fn a_file_and_a_configuration_that_meet_hold_up_no_other_change() {
    let server = Setup::new().flag("--model-proof-timeout-s", "4").start();
    server.put("models/m", &onnx::doubling(1));
    server.put_json("models/m/config", &json!({ "graph_optimization": "disable" }));
    let first = server.status()["models"]["m"]["digest"].as_str().unwrap().to_owned();
    // Models are proven one after the other, so both changes wait for this one. Each is then loaded
    // without knowing the other.
    let busy = endless_upload(&server);
    let waiting = |count| eventually("so many jobs", || jobs(&server).len() == count);
    waiting(1);
    thread::scope(|scope| {
        let file = onnx::slow_to_optimise();
        let admin = &server.admin;
        let file = scope.spawn(move || admin.put("/admin/v1/models/m", &file));
        waiting(2);
        let config = json!({ "graph_optimization": "all", "memory_pattern": false });
        let config = scope.spawn(move || admin.put_json("/admin/v1/models/m/config", &config));
        waiting(3);
        drop(busy);
        // One of the changes succeeds. Loading the other one takes minutes.
        eventually("one is made", || file.is_finished() != config.is_finished());
        let is_both = |job: &Value| {
            job["state"] == "running" && !job["subject"].as_str().unwrap().contains(&first)
        };
        eventually("both are loaded", || jobs(&server).iter().any(is_both));
        let before = server.release();
        assert_eq!(server.open_tenant("other"), before + 1);
        assert!(jobs(&server).iter().any(is_both), "the other change waited for the load");
        let answers = [file.join().unwrap(), config.join().unwrap()];
        let [made, refused] = match answers[0].status {
            200 => [&answers[0], &answers[1]],
            _ => [&answers[1], &answers[0]],
        };
        assert_eq!(made.ok()["release"], before);
        refused.refused(422, "invalid_model", &["model \"m\"", "in a process of its own"]);
    });
    assert_eq!(server.status()["models"]["m"]["state"], "ready");
}

#[test]
fn the_file_of_a_client_that_leaves_is_removed() {
    let server = Server::start();
    let blobs = || {
        let blobs = std::fs::read_dir(server.data_dir().join("store/blobs"));
        blobs.into_iter().flatten().count()
    };
    let upload = endless_upload(&server);
    eventually("its first load begins", || !jobs(&server).is_empty());
    assert_eq!(blobs(), 1);
    drop(upload);
    eventually("it is removed", || blobs() == 0);
    assert_eq!(jobs(&server), Vec::<Value>::new());
    // It can be uploaded again.
    let _upload = endless_upload(&server);
    eventually("its first load begins", || !jobs(&server).is_empty());
    assert_eq!(blobs(), 1);
}

#[test]
fn uploads_that_arrive_slowly_are_not_held_in_memory() {
    const UPLOADS: usize = 4;
    const BYTES: usize = 64 << 20;
    let server = Server::start();
    server.open_tenant("acme");
    let before = server.resident_bytes();
    let head = raw::last_upload("tenants/acme/plugins/large", BYTES);
    let file = vec![7; BYTES - 1];
    let mut uploads: Vec<_> = (0..UPLOADS).map(|_| Raw::sent(&server.admin, &head)).collect();
    // The kernel holds a few megabytes of a connection. They count as read here.
    uploads.iter_mut().for_each(|upload| upload.send(&file));
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < BYTES, "{} MiB for {UPLOADS} uploads of 64 MiB", grown >> 20);
    for upload in &mut uploads {
        upload.send(b"7");
        let detail = upload.answer().refused(422, "invalid_plugin", &["not a WebAssembly"]);
        assert!(!detail.contains('/'), "{detail}");
    }
    let incoming = server.data_dir().join("store/incoming");
    eventually("they are removed", || std::fs::read_dir(&incoming).unwrap().next().is_none());
}

/// The answer to an upload of 50 MB, which a client reads only when it has sent all.
fn answer_after_all_was_sent(server: &Server, path: &str) -> TestAnswer {
    let file = vec![7_u8; 50_000_000];
    let mut raw = Raw::sent(&server.admin, &raw::upload(path, file.len()));
    file.chunks(64 << 10).for_each(|piece| raw.send(piece));
    raw.answer()
}

/// The places of uploads.
fn places() -> [String; 3] {
    let blob = format!("blobs/sha256:{}", "0".repeat(64));
    ["models/large".into(), "tenants/acme/plugins/large".into(), blob]
}

#[test]
fn a_client_that_sends_all_reads_that_the_disk_is_full() {
    let server = Setup::new().file_blocks(16 << 10).start();
    server.open_tenant("acme");
    for path in places() {
        let answer = answer_after_all_was_sent(&server, &path);
        answer.refused(507, "insufficient_storage", &[]);
    }
    server.put_json("tenants/acme", &json!({ "open": true, "weight": 2 }));
}

#[test]
fn a_client_that_sends_all_reads_that_the_store_is_lost() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let server = s3.setup_behind(&proxy).start();
    server.open_tenant("acme");
    proxy.set_down(true);
    eventually("it is noticed", || server.status()["store"]["state"] == "unreachable");
    for path in places() {
        answer_after_all_was_sent(&server, &path).refused(503, "unavailable", &[]);
    }
}

#[test]
fn a_connection_goes_on_after_a_short_body_that_is_not_read() {
    let server = Server::start();
    for path in ["/admin/v1/tenants/none", "/admin/v1/nothing", "/openapi.json"] {
        let token = format!("authorization: Bearer {ADMIN_TOKEN}\r\n");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: a\r\n{token}content-length: 5\r\n\r\n12345");
        let last = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{token}connection: close\r\n\r\n");
        let mut raw = Raw::sent(&server.admin, &(request + &last));
        let answers =
            String::from_utf8_lossy(&raw.read_bytes_to_end()).matches("HTTP/1.1 ").count();
        assert_eq!(answers, 2, "{path}");
    }
}
