//! Servers that share a store on S3: they follow one log, and each sees the releases of the others.

use std::collections::BTreeSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::s3::{S3, SECRET};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak::times;
use crate::support::words::assert_names;

fn named(setup: Setup, name: &str) -> Setup {
    setup.flag("--replica-name", name)
}

/// Two servers, `one` and `two`, each of which knows the other.
fn pair(s3: &S3) -> (Server, Server) {
    let (one, two) = (named(s3.setup(), "one").start(), named(s3.setup(), "two").start());
    eventually("they know each other", || {
        [&one, &two].iter().all(|server| live(server) == ["one", "two"])
    });
    (one, two)
}

/// The names of the servers that live.
fn live(server: &Server) -> Vec<String> {
    let status = server.status();
    let live = status["replicas"].as_array().unwrap().iter();
    let live = live.filter(|replica| replica["state"] == "live");
    live.map(|replica| replica["name"].as_str().unwrap().to_owned()).collect()
}

/// The part of the status that must be the same on all servers.
fn state_of(server: &Server) -> Value {
    let status = server.status();
    let mut state = json!({ "release": status["release"], "tenants": status["tenants"] });
    for (name, model) in status["models"].as_object().unwrap() {
        state["models"][name] = json!([model["digest"], model["version"], model["state"]]);
    }
    state
}

fn weight(weight: u64) -> Value {
    json!({ "open": true, "weight": weight })
}

#[test]
fn a_release_serves_everywhere_and_an_answer_may_wait_for_that() {
    let s3 = S3::start();
    let (one, two) = pair(&s3);
    one.digits("acme");
    let last = one.release();
    eventually("the other one serves it", || two.release() == last);
    two.assert_reads("acme", 3);
    // The second server changes a tenant that the first one made.
    two.ranker("acme");
    let waited = two.admin.put_json("/admin/v1/tenants/other?wait=all", &weight(7)).ok();
    assert_eq!(waited["replicas"], json!({ "live": 2, "behind": [] }));
    assert_eq!(waited["release"], one.release(), "no time passes after the answer");
    assert_eq!(state_of(&one), state_of(&two));
    one.assert_ranks("acme");
    one.admin.put_json("/admin/v1/tenants/other?wait=some", &weight(8)).refused(
        400,
        "invalid_request",
        &["wait is \"some\": must be all"],
    );
}

#[test]
fn a_release_is_live_on_all_within_two_seconds() {
    let s3 = S3::start();
    let (one, two) = pair(&s3);
    let times = (1..=5).map(|round| {
        let release = one.put_json("tenants/acme", &weight(round));
        let made = Instant::now();
        eventually("the other one serves it", || two.release() >= release);
        made.elapsed()
    });
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    // A busy machine may delay one of them.
    assert!(times[2] < Duration::from_secs(2), "{times:?}");
}

#[test]
fn all_replicas_are_in_the_status_and_one_that_is_gone_is_behind_until_it_is_forgotten() {
    let s3 = S3::start();
    let one = named(s3.setup(), "one").flag("--replica-wait-s", "1").start();
    let two = named(s3.setup(), "two").start();
    eventually("they know each other", || live(&one) == ["one", "two"]);
    let before = one.put_json("tenants/acme", &weight(1));
    eventually("the other one says that it serves it", || {
        let replicas = &one.status()["replicas"];
        replicas[1]["release"] == before && replicas[1]["faults"] == 0
    });
    let page = Cli::of(&one).ok(&["status"]);
    let address = two.admin.address().to_owned();
    assert_names(&page, &["REPLICA", "one ", "two ", &address]);
    let setup = two.kill();
    let answer = one.admin.put_json("/admin/v1/tenants/acme?wait=all", &weight(2));
    assert_eq!(answer.status, 202, "{}", answer.text());
    let answer: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer["replicas"]["live"], 2);
    let behind = &answer["replicas"]["behind"][0];
    assert_eq!((&behind["name"], &behind["release"]), (&json!("two"), &json!(before)));
    assert_eq!(one.release(), before + 1, "the release stands");
    let back = Cli::of(&one).run(&["rollback", "--to", "1", "--yes", "--wait-all"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert_names(&back.stderr, &["these replicas do not serve the release yet: two (release 1)"]);
    eventually("the other one is known to be gone", || live(&one) == ["one"]);
    let answer = one.admin.put_json("/admin/v1/tenants/acme?wait=all", &weight(3)).ok();
    assert_eq!(answer["replicas"], json!({ "live": 1, "behind": [] }));
    // One that is asked to end takes its lease back.
    let two = setup.start();
    assert_eq!(two.release(), before + 3);
    eventually("the other one is back", || live(&one) == ["one", "two"]);
    two.signal_terminate();
    assert_eq!(two.wait().1.code(), Some(0));
    assert_eq!(s3.objects("replicas/"), ["grist/replicas/one.json"]);
    assert_eq!(live(&one), ["one"]);
}

#[test]
fn two_replicas_that_race_lose_no_release() {
    let races = times(20, 500);
    let s3 = S3::start();
    let (one, two) = pair(&s3);
    let race = |server: &Server, name: &str| -> Vec<u64> {
        let put = |round| server.open_tenant(&format!("{name}-{round}"));
        (0..races).map(put).collect()
    };
    let releases = thread::scope(|scope| {
        let first = scope.spawn(|| race(&one, "one"));
        let second = race(&two, "two");
        [first.join().unwrap(), second].concat()
    });
    let distinct: BTreeSet<_> = releases.iter().copied().collect();
    assert_eq!(distinct, (1..=2 * races as u64).collect(), "{releases:?}");
    eventually("both serve the last one", || {
        [&one, &two].iter().all(|server| server.release() == 2 * races as u64)
    });
    let state = state_of(&one);
    assert_eq!(state, state_of(&two));
    assert_eq!(state["tenants"].as_object().unwrap().len(), 2 * races);
    assert_eq!(state_of(&one.kill().start()), state);
}

#[test]
fn a_replica_that_was_away_finds_the_releases_that_are_no_longer_kept() {
    let s3 = S3::start();
    let proxy = s3.proxy();
    let keep = |setup: Setup| setup.flag("--keep-releases", "2");
    let one = keep(named(s3.setup(), "one")).start();
    let two = keep(named(s3.setup_behind(&proxy), "two")).start();
    one.open_tenant("first");
    eventually("the other one follows", || two.release() == 1);
    proxy.set_down(true);
    for round in 0..12 {
        one.put_json("tenants/acme", &weight(1 + round));
    }
    eventually("old releases are removed", || s3.objects("log/").len() <= 4);
    assert_eq!(two.release(), 1);
    proxy.set_down(false);
    eventually("the other one follows again", || two.release() == one.release());
    assert_eq!(state_of(&one), state_of(&two));
    // It does not take the place of a release that was removed.
    let next = one.release() + 1;
    assert_eq!(two.put_json("tenants/acme", &weight(99)), next);
    eventually("the first one follows", || one.release() == next);
    two.admin.get("/admin/v1/releases/2").refused(404, "not_found", &["no longer kept"]);
    eventually("one checkpoint is left", || s3.objects("checkpoints/").len() == 1);
    let state = state_of(&two);
    assert_eq!(state_of(&two.kill().start()), state);
}

#[test]
fn keys_are_valid_everywhere_and_another_secret_starts_no_server() {
    let s3 = S3::start();
    let (one, two) = pair(&s3);
    let release = one.keyed_tenant("acme", "the-key-of-acme-1");
    eventually("the other one follows", || two.release() == release);
    let acme = two.data.with_token("the-key-of-acme-1");
    assert_eq!(acme.get("/v1/acme").status, 200);
    two.data.get("/v1/acme").refused(401, "unauthenticated", &[]);
    for server in [&one, &two] {
        let status = server.status().to_string();
        for text in [server.log(), status] {
            assert!(!text.contains(SECRET) && !text.contains("the-access-key"), "{text}");
        }
    }
    fs::write(s3.hash_key(), "fedcba9876543210".repeat(4)).unwrap();
    assert_names(&s3.setup().start_refused(), &["hash key", "another one"]);
    fs::write(s3.hash_key(), "short").unwrap();
    assert_names(&s3.setup().start_refused(), &["hash_key_file", "64 hexadecimal digits"]);
    fs::remove_file(s3.hash_key()).unwrap();
    assert_names(&s3.setup().start_refused(), &["hash_key_file", "openssl rand -hex 32"]);
}

#[test]
fn a_file_that_was_uploaded_to_one_replica_is_released_with_another() {
    let s3 = S3::start();
    let (one, two) = pair(&s3);
    let file = crate::support::files::plugin("digits");
    let digest = crate::support::admin_api::digest(&file);
    one.admin.put(&format!("/admin/v1/blobs/{digest}"), &file).ok();
    let changes = json!({ "changes": [
        { "kind": "put_tenant", "tenant": "acme", "document": { "open": true } },
        { "kind": "put_plugin", "tenant": "acme", "plugin": "digits", "digest": digest },
    ] });
    let made = two.admin.post("/admin/v1/releases?wait=all", changes.to_string().as_bytes()).ok();
    assert_eq!(made["replicas"]["behind"], json!([]));
    for server in [&one, &two] {
        assert_eq!(server.status()["tenants"]["acme"]["plugins"]["digits"]["state"], "ready");
    }
    let content = two.admin.get("/admin/v1/tenants/acme/plugins/digits/content");
    assert!(content.body == file);
    let unknown = crate::support::admin_api::digest(b"nothing");
    let changes = json!({ "changes": [
        { "kind": "put_plugin", "tenant": "acme", "plugin": "other", "digest": unknown },
    ] });
    let refused = two.admin.post("/admin/v1/releases", changes.to_string().as_bytes());
    refused.refused(422, "unprocessable", &[&unknown]);
}

#[test]
fn a_folder_may_be_shared_and_is_checked_by_its_url() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    let url = format!("file://{}", directory.path().join("store").display());
    let flags = ["--store", &url, "--hash-key-file", key.to_str().unwrap()];
    let setup = || Setup::new().flag(flags[0], flags[1]).flag(flags[2], flags[3]);
    let (one, two) = (setup().start(), setup().start());
    one.digits("acme");
    let release = two.put_json("tenants/other", &weight(2));
    eventually("both serve the last one", || one.release() == release && two.release() == release);
    two.assert_reads("acme", 5);
    let report = one.setup().run(&[&["fsck", "--output", "json"], &flags[..]].concat());
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!((&report["releases"], &report["files"]), (&json!(release), &json!(2)), "{report}");
    // Its objects have the names that they have everywhere.
    let log = directory.path().join("store/log");
    let names = eventually_some("the log", || fs::read_dir(&log).ok());
    assert_eq!(names.count() as u64, release);
}
