//! Old releases are removed, with the files that only they name, and nothing else is lost.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use crate::support::admin_api::{KEY, digest, make, path, read};
use crate::support::cli::Cli;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

pub(crate) fn setup() -> Setup {
    Setup::new().flag("--keep-releases", "3")
}

/// The numbers of the releases in the log's folder.
fn kept(setup: &Setup) -> Vec<u64> {
    let names = fs::read_dir(setup.data_dir().join("store/log")).unwrap();
    let number = |name: &str| name.strip_suffix(".json")?.parse().ok();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<_> = names.filter_map(|name| number(&name)).collect();
    numbers.sort_unstable();
    numbers
}

pub(crate) fn is_stored(setup: &Setup, file: &[u8]) -> bool {
    setup.data_dir().join("store/blobs").join(&digest(file)[7..]).exists()
}

/// The number of the last release that the checkpoint stands for.
fn checkpoint(setup: &Setup) -> u64 {
    let text = fs::read(setup.data_dir().join("store/checkpoint.json")).unwrap_or_default();
    let checkpoint = serde_json::from_slice::<Value>(&text).unwrap_or_default();
    checkpoint["checkpoint"]["number"].as_u64().unwrap_or_default()
}

/// Make releases that change nothing that matters, until the oldest one that is kept has a number
/// from `first` on and no more are about to be removed.
pub(crate) fn push_out(server: &Server, first: u64) {
    eventually("old releases are removed", || {
        let before = checkpoint(server.setup());
        let is_removing = kept(server.setup())[0] != before + 1;
        let is_far = before + 1 < first || before + 4 < server.release();
        if !is_removing && is_far {
            let weight = 1 + server.release();
            server.put_json("tenants/other", &json!({ "open": true, "weight": weight }));
        }
        !is_removing && !is_far
    });
}

/// A server whose plugin `digits` was replaced so long ago that no release names its first file.
fn start() -> (Server, Value) {
    let server = setup().start();
    server.keyed_tenant("acme", KEY);
    server.digits_for("acme");
    server.plugin("acme", "digits", "hostile");
    server.plugin("acme", "digits", "digits");
    server.plugin("acme", "idle", "bench-guest");
    server.admin.delete(&path("tenants/acme/plugins/idle")).ok();
    let config = json!({ "max_batch_size": 5, "priority_levels": 2,
        "priority_queue_policies": { "2": { "timeout_action": "delay" } } });
    server.put_json("models/digits/config", &config);
    let replaced = server.release();
    push_out(&server, replaced + 1);
    let state = ["tenants/acme", "tenants/acme/plugins/digits", "models/digits"];
    let state = state.map(|below| read(&server, below)).to_vec().into();
    (server, state)
}

#[test]
fn the_state_is_whole_without_the_releases_that_led_to_it() {
    let (mut server, state) = start();
    for replaced in ["hostile", "bench-guest"] {
        let file = files::plugin(replaced);
        eventually("its file is removed", || !is_stored(server.setup(), &file));
    }
    assert!(is_stored(server.setup(), &files::plugin("digits")), "the state names it");
    for _ in 0..2 {
        let last = server.release();
        let below = ["tenants/acme", "tenants/acme/plugins/digits", "models/digits"];
        let now: Value = below.map(|below| read(&server, below)).to_vec().into();
        assert_eq!(now, state);
        assert_eq!(read(&server, "models/digits/config")["max_batch_size"], 5);
        let answer = server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(6));
        assert_eq!(answer.ok()["label"], 6);
        let first = kept(server.setup())[0];
        let page = read(&server, "releases");
        assert_eq!(page["items"].as_array().unwrap().len() as u64, last + 1 - first);
        assert!(page["next"].is_null());
        for number in [1, first - 1] {
            let named = format!(
                "release {number} is no longer kept: the first one that is kept is {first}"
            );
            let gone = server.admin.get(&path(&format!("releases/{number}")));
            gone.refused(404, "not_found", &[&named]);
            let back = json!({ "to": number }).to_string();
            let back = server.admin.post(&path("rollback"), back.as_bytes());
            back.refused(404, "not_found", &[&named]);
        }
        server = server.kill().start();
    }
    // Going back to the first one that is kept. The release that does it may push that one out.
    let first = kept(server.setup())[0];
    let weight =
        read(&server, &format!("releases/{first}"))["changes"][0]["document"]["weight"].clone();
    let back = json!({ "to": first }).to_string();
    server.admin.post(&path("rollback"), back.as_bytes()).ok();
    assert_eq!(read(&server, "tenants/other")["weight"], weight);
}

/// A JSON value with so many levels.
fn levels(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn what_nests_too_deep_is_refused_and_what_is_taken_can_be_read() {
    let (server, _) = start();
    // The object `settings` is a level itself, and a sample has its own.
    let with = |settings: usize, sample: usize| {
        let sample = json!({ "name": "deep", "request": { "json": levels(sample) },
            "expect": { "json": levels(sample) } });
        let mut spec = processor("digits", json!({}));
        spec["settings"] = json!({ "a": levels(settings) });
        spec["samples"] = json!([sample]);
        spec
    };
    let put = |spec: &Value| {
        let at = path("tenants/acme/pipelines/deep?skip_samples=true");
        server.admin.put_json(&at, spec)
    };
    put(&with(64, 1)).refused(422, "unprocessable", &["settings has more than 64 levels"]);
    put(&with(1, 62)).refused(422, "unprocessable", &["samples has more than 64 levels"]);
    put(&with(63, 61)).ok();
    let before = read(&server, "tenants/acme/pipelines/deep");
    push_out(&server, server.release() + 1);
    let server = server.kill().start();
    assert_eq!(read(&server, "tenants/acme/pipelines/deep"), before);
}

#[test]
fn a_start_goes_on_where_a_killed_server_stopped_removing() {
    let (server, _) = start();
    let setup = server.kill();
    let first = kept(&setup)[0];
    let log = setup.data_dir().join("store/log");
    let name = |number: u64| log.join(format!("{number:020}.json"));
    let leftover = setup.data_dir().join("store/blobs").join("0".repeat(64));
    fs::write(&leftover, "a file of an old release").unwrap();
    for number in [first - 1, 2] {
        fs::write(name(number), "an old release").unwrap();
    }
    let server = setup.start();
    assert_eq!(
        server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(6)).ok()["label"],
        6
    );
    eventually("what was left is removed", || {
        kept(server.setup())[0] == first && !leftover.exists()
    });
}

#[test]
fn a_damaged_checkpoint_is_named_with_a_cure() {
    let (server, _) = start();
    let setup = server.kill();
    let path = setup.data_dir().join("store/checkpoint.json");
    let whole = fs::read_to_string(&path).unwrap();
    let first = kept(&setup)[0];
    let fsck = || {
        let data_dir = setup.data_dir();
        let output = setup.run(&["fsck", "--data-dir", data_dir.to_str().unwrap()]);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (is_clean, printed) = fsck();
    assert!(is_clean, "{printed}");
    let missing = format!("releases 1 to {} are missing", first - 1);
    let cases: [(Option<String>, &[&str]); 4] = [
        (
            Some(whole.replace("\"weight\":1", "\"weight\":2")),
            &["checkpoint.json", "digest does not"],
        ),
        (Some(whole[..whole.len() / 2].into()), &["checkpoint.json", "put the file back"]),
        (Some(whole.replace("\"format\":7", "\"format\":9")), &["its format is 9", "upgrade"]),
        (None, &[&missing]),
    ];
    for (text, named) in cases {
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let refused = setup.start_refused();
        let (is_clean, printed) = fsck();
        assert!(!is_clean && printed.contains("error: "), "{printed}");
        for word in named {
            assert!(
                refused.contains(word) && printed.contains(word),
                "{word}: {refused} {printed}"
            );
        }
    }
    fs::write(&path, whole).unwrap();
    // A checkpoint of another log: the first release does not follow it.
    fs::remove_file(setup.data_dir().join("store/log").join(format!("{first:020}.json"))).unwrap();
    let refused = setup.start_refused();
    assert!(refused.contains(&format!("release {first} is missing")), "{refused}");
}

#[test]
fn the_history_is_read_while_old_releases_are_removed() {
    let server = setup().start();
    server.open_tenant("other");
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["other"] }));
    let readers = [server.admin.clone(), server.admin.with_token(&token)];
    let is_done = &AtomicBool::new(false);
    thread::scope(|scope| {
        for reader in &readers {
            scope.spawn(move || {
                // Page by page, also where releases were removed since the page before.
                let mut below = "releases?limit=2".to_owned();
                while !is_done.load(Ordering::Relaxed) {
                    let page = reader.get(&path(&below)).ok();
                    below = match page["next"].as_u64() {
                        Some(next) => format!("releases?limit=2&before={next}"),
                        None => "releases?limit=2".to_owned(),
                    };
                }
            });
        }
        for weight in 1..200 {
            let document = json!({ "open": true, "weight": weight });
            server.put_json("tenants/other", &document);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    let none = read(&server, "releases?before=1");
    assert_eq!(none["items"], json!([]), "behind the oldest one");
    assert_eq!(read(&server, "releases?before=5")["items"], json!([]), "behind the kept ones");
}

#[test]
fn a_damaged_release_does_not_hide_the_others() {
    let server = Server::start();
    server.open_tenant("acme");
    server.put_json("tenants/acme", &json!({ "open": true, "weight": 2 }));
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    server.put_json("tenants/acme", &json!({ "open": true, "weight": 3 }));
    let log = server.data_dir().join("store/log");
    let [one, other] = [1, 2].map(|number| log.join(format!("{number:020}.json")));
    fs::copy(one, other).unwrap();
    let items = read(&server, "releases")["items"].clone();
    let numbers: Vec<_> = items.as_array().unwrap().iter().map(|item| &item["number"]).collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
    let fault = items[2]["fault"].as_str().unwrap();
    assert!(fault.contains("it says that it is release 1"), "{fault}");
    assert!(items[3]["fault"].is_null() && items[3]["changes_total"] == 1, "{items}");
    let shown = Cli::of(&server).ok(&["releases"]);
    assert!(shown.contains("cannot be read: "), "{shown}");
    // A tenant's own people see their part, and nothing of the fault or its cure.
    let ci = server.admin.with_token(&token);
    let items = ci.get(&path("releases")).ok()["items"].clone();
    let numbers: Vec<_> = items.as_array().unwrap().iter().map(|item| &item["number"]).collect();
    assert_eq!(numbers, [4, 1]);
    let detail = ci.get(&path("releases/2")).refused(500, "internal", &["the server failed"]);
    assert!(!detail.contains("log's folder") && !detail.contains("fsck"), "{detail}");
}
