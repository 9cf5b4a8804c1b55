//! Calls to a shared store that fail: changes are made or refused, and requests never notice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use gristmill_client::http::Request;
use serde_json::{Value, json};

use crate::support::eventually::eventually;
use crate::support::s3::S3;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak::times;
use crate::support::tls::Authority;
use crate::support::words::assert_names;
use crate::support::{files, guests};

fn weight(weight: u64) -> Value {
    json!({ "open": true, "weight": weight })
}

fn weight_of(server: &Server, tenant: &str) -> u64 {
    let tenant = server.admin.get(&format!("/admin/v1/tenants/{tenant}")).ok();
    tenant["weight"].as_u64().unwrap()
}

#[test]
fn with_a_tenth_of_all_calls_failing_deploys_succeed_or_fail_cleanly() {
    let deploys = times(30, 300) as u64;
    let s3 = S3::start();
    let proxy = s3.proxy();
    let server = s3.setup_behind(&proxy).start();
    let other = s3.setup().start();
    server.digits("acme");
    proxy.fail(100);
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let made = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server.assert_reads("acme", 4);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut made = 0;
        for round in 1..=deploys {
            let answer = match round % 3 {
                0 => server.admin.put("/admin/v1/models/ranker", &files::model("ranker")),
                _ => server.admin.put_json("/admin/v1/tenants/other", &weight(round)),
            };
            match answer.status {
                200 => made += 1,
                _ => {
                    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
                    assert_eq!(problem["code"], "unavailable", "{problem}");
                }
            }
            if answer.status == 200 && round % 3 != 0 {
                assert_eq!(weight_of(&server, "other"), round);
            }
        }
        is_over.store(true, Ordering::Relaxed);
        made
    });
    assert!(made > deploys / 2, "only {made} of {deploys} deploys were made");
    assert!(answered.load(Ordering::Relaxed) > 0);
    proxy.fail(0);
    eventually("it follows", || server.data.get("/readyz").ok().get("store").is_none());
    let last = server.put_json("tenants/other", &weight(77));
    eventually("the other server serves the same", || other.release() == last);
    assert_eq!(weight_of(&other, "other"), 77);
    assert_eq!(other.status()["models"]["ranker"]["state"], "ready");
    assert_eq!(server.kill().start().release(), last);
}

#[test]
fn while_a_file_cannot_be_fetched_the_one_before_serves() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let server = s3.setup().start();
    server.digits("acme");
    let follower = s3.setup_behind(&proxy).start();
    follower.assert_reads("acme", 4);
    proxy.refuse(Some("/blobs/"));
    let plugin = guests::variant(&files::plugin("digits"), 1);
    let put = server.admin.put("/admin/v1/tenants/acme/plugins/digits", &plugin).ok();
    eventually("it tries to fetch the file", || proxy.refused() > 0);
    follower.assert_reads("acme", 5);
    proxy.refuse(None);
    eventually("it serves the release", || follower.release() == put["release"]);
    assert_eq!(follower.status()["tenants"]["acme"]["plugins"]["digits"]["digest"], put["digest"]);
    follower.assert_reads("acme", 6);
}

#[test]
fn a_server_that_cannot_reach_its_store_serves_on_and_says_so() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let server = s3.setup_behind(&proxy).start();
    let other = s3.setup().start();
    server.digits("acme");
    assert_eq!(server.data.get("/readyz").ok(), json!({ "status": "ready" }));
    proxy.set_down(true);
    let is_said = json!({ "status": "ready", "store": "unreachable" });
    eventually("it says so", || server.data.get("/readyz").ok() == is_said);
    server.assert_reads("acme", 6);
    let answer = server.admin.put_json("/admin/v1/tenants/other", &weight(2));
    answer.refused(503, "unavailable", &["the store of releases and files cannot be reached"]);
    let status = server.status();
    assert_eq!(status["store"]["state"], "unreachable", "{}", status["store"]);
    let release = other.put_json("tenants/other", &weight(3));
    let before = proxy.calls();
    eventually("it tries again", || proxy.calls() > before + 12);
    let lines = server.log().matches("cannot follow the release log").count();
    assert_eq!(lines, 1, "only a change of it is logged");
    proxy.set_down(false);
    eventually("it follows again", || server.release() == release);
    eventually("it is over", || server.data.get("/readyz").ok() == json!({ "status": "ready" }));
    server.log_with("following the release log again");
    server.put_json("tenants/other", &weight(4));
}

#[test]
fn a_server_may_start_with_what_it_served_last() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let server = s3.setup_behind(&proxy).start();
    let other = s3.setup().start();
    server.digits("acme");
    // Its own record is written a while after a release.
    let recorded = |setup: &Setup| {
        let text = std::fs::read(setup.data_dir().join("store-copies/last-state.json"));
        let state: Value = serde_json::from_slice(&text.unwrap_or_default()).unwrap_or_default();
        state["checkpoint"]["number"].as_u64().unwrap_or_default()
    };
    let last = server.release();
    eventually("the state is recorded", || recorded(server.setup()) == last);
    proxy.set_down(true);
    let setup = server.kill();
    assert_names(&setup.start_refused(), &["the store of releases and files cannot be reached"]);
    let server = setup.flag("--start-offline", "true").start();
    assert_eq!(server.release(), last);
    server.assert_reads_digits("acme");
    assert_eq!(server.data.get("/readyz").ok()["store"], "unreachable");
    let refused = server.admin.put_json("/admin/v1/tenants/other", &weight(2));
    refused.refused(503, "unavailable", &["cannot be reached"]);
    let release = other.open_tenant("new");
    proxy.set_down(false);
    eventually("it follows the log", || server.release() == release);
    eventually("it is over", || server.data.get("/readyz").ok().get("store").is_none());
    assert_eq!(server.put_json("tenants/other", &weight(3)), release + 1);
}

#[test]
fn a_store_over_tls_is_used_only_if_its_certificate_is_trusted() {
    let authority = Authority::new();
    let s3 = S3::start_with_tls(&authority);
    let server = s3.setup().start();
    server.digits("acme");
    let release = server.release();
    let server = server.kill().start();
    assert_eq!(server.release(), release);
    server.assert_reads_digits("acme");
    let error = s3.setup_without_authority().start_refused();
    assert_names(&error, &["the store of releases and files cannot be reached", "certificate"]);
}

#[test]
fn a_damaged_release_in_a_shared_store_is_named_by_servers_that_run_and_that_start() {
    let s3 = S3::start();
    let server = s3.setup().start();
    let follower = s3.setup().start();
    server.digits("acme");
    let last = server.release();
    eventually("it follows", || follower.release() == last);
    let key = s3.objects("log/").into_iter().next_back().unwrap();
    let whole = s3.get(&key);
    let at = whole.windows(6).position(|bytes| bytes == b"digits");
    let at = at.unwrap_or_else(|| panic!("{key}: {}", String::from_utf8_lossy(&whole)));
    let mut altered = whole.clone();
    altered[at] = b'x';
    // A server with no folder of its own yet.
    s3.put(&key, &altered);
    let number = last.to_string();
    let cure = ["put the files of the release log back", "`gristmill fsck`"];
    let error = s3.setup().start_refused();
    assert_names(&error, &[&number, "its digest does not match", cure[0], cure[1]]);
    s3.put(&key, &whole);
    // The next release is damaged: servers that follow go on with what they have.
    let next = key.replace(&format!("{last:020}"), &format!("{:020}", last + 1));
    s3.put(&next, &altered);
    let is_said = json!({ "status": "ready", "store": "unusable" });
    eventually("it says so", || follower.data.get("/readyz").ok() == is_said);
    assert_eq!(follower.release(), last);
    follower.assert_reads_digits("acme");
    let refused = follower.admin.put_json("/admin/v1/tenants/other", &weight(1));
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert_eq!(follower.status()["store"]["state"], "unusable");
}

#[test]
fn a_kill_in_the_middle_of_a_deploy_loses_nothing() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let mut setup = s3.setup_behind(&proxy);
    let mut acknowledged = 0;
    for kill in 0..times(8, 200) {
        let server = setup.start();
        let before = server.release();
        assert!(before >= acknowledged, "release {acknowledged} was lost: {before} serves");
        // Each kill comes one call later than the one before.
        let (admin, process) = (server.admin.clone(), Arc::new(Mutex::new(Some(server))));
        let (victim, killed) = (process.clone(), Arc::new(Mutex::new(None)));
        let (left, is_killed) = (killed.clone(), Arc::new(AtomicBool::new(false)));
        let done = is_killed.clone();
        proxy.after(1 + kill % 40, move || {
            *left.lock().unwrap() = victim.lock().unwrap().take().map(Server::kill);
            done.store(true, Ordering::Release);
        });
        let mut round = 0;
        while !is_killed.load(Ordering::Acquire) {
            round += 1;
            // Another one each time, up to the largest.
            let body = weight(1 + (100 * kill as u64 + round) % 1000).to_string();
            let put = Request::put("/admin/v1/tenants/acme").body(body.into()).unwrap();
            if let Ok(answer) = admin.try_send(put)
                && answer.status == 200
            {
                acknowledged = answer.ok()["release"].as_u64().unwrap();
            }
        }
        setup = killed.lock().unwrap().take().unwrap();
        // The call that was under way may still arrive.
        let log = s3.objects("log/");
        assert!(log.len() as u64 >= acknowledged, "{log:?}");
    }
    let server = setup.start();
    assert!(server.release() >= acknowledged);
    let is_last = || s3.objects("log/").len() as u64 == server.release();
    eventually("the last release serves", is_last);
    server.put_json("tenants/acme", &weight(9));
}
