//! Keys of a tenant by their names: each is replaced without the others.

use std::fs;

use serde_json::json;

use crate::support::admin_api::{KEY, NEW_KEY, path, read, start};
use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::load::under_load;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// The answer of the pipeline `digits` to a caller with this key.
fn call(server: &Server, key: &str) -> TestAnswer {
    server.data.with_token(key).post("/v1/acme/infer/digits", &files::digit(4))
}

#[test]
fn a_key_is_rotated_under_traffic_without_the_others() {
    let server = start();
    let other = "the-other-key-of-acme";
    let put = |name: &str, key: &str| {
        let answer = server
            .admin
            .put_json(&path(&format!("tenants/acme/keys/{name}")), &json!({ "key": key }));
        answer.ok()["release"].as_u64().unwrap()
    };
    let made = put("other", other);
    // Callers with the other key notice nothing.
    let work = |_| call(&server, other).status;
    under_load(2, work, |statuses| {
        for round in 0..10 {
            let (old, new) = if round % 2 == 0 { (KEY, NEW_KEY) } else { (NEW_KEY, KEY) };
            let version = put("key-1", new);
            assert_eq!(call(&server, new).status, 200);
            assert_eq!(call(&server, old).status, 401, "the old key is gone at once");
            let keys = json!({ "items": [{ "name": "key-1", "version": version },
                { "name": "other", "version": made }] });
            assert_eq!(read(&server, "tenants/acme/keys"), keys);
            assert_eq!(statuses.recv().unwrap(), 200);
        }
        let statuses: Vec<_> = statuses.try_iter().collect();
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    });
    server.admin.delete(&path("tenants/acme/keys/key-1")).ok();
    assert_eq!((call(&server, KEY).status, call(&server, other).status), (401, 200));
    let only = server.admin.delete(&path("tenants/acme/keys/other"));
    only.refused(409, "conflict", &["key \"other\" is the only one of tenant \"acme\""]);
    let same = server.admin.put_json(&path("tenants/acme/keys/b"), &json!({ "key": other }));
    same.refused(422, "unprocessable", &["it is the tenant's key \"other\" already"]);
    let short = server.admin.put_json(&path("tenants/acme/keys/b"), &json!({ "key": "short" }));
    short.refused(422, "unprocessable", &["key is shorter than 16 characters"]);
    // What was read is put back: the key stays, and another one comes to it.
    let mut tenant = read(&server, "tenants/acme");
    assert_eq!(tenant["api_keys"], json!([{ "name": "other" }]));
    tenant["api_keys"] = json!([{ "name": "other" }, { "name": "new", "key": KEY }]);
    server.put_json("tenants/acme", &tenant);
    assert_eq!((call(&server, KEY).status, call(&server, other).status), (200, 200));
    let server = server.kill().start();
    assert_eq!((call(&server, KEY).status, call(&server, NEW_KEY).status), (200, 401));
    // A whole document with keys in clear text replaces all, as ever.
    server.put_json("tenants/acme", &json!({ "api_keys": [NEW_KEY, KEY] }));
    let names = json!({ "items": [{ "name": "key-1", "version": server.release() },
        { "name": "new", "version": server.release() - 1 }] });
    assert_eq!(read(&server, "tenants/acme/keys"), names);
    assert_eq!((call(&server, NEW_KEY).status, call(&server, other).status), (200, 401));
}

#[test]
fn a_document_that_keeps_its_keys_keeps_a_key_that_was_rotated_meanwhile() {
    let server = start();
    let tenant = read(&server, "tenants/acme");
    server.put_json("tenants/acme/keys/key-1", &json!({ "key": NEW_KEY }));
    server.put_json("tenants/acme", &tenant);
    assert_eq!((call(&server, KEY).status, call(&server, NEW_KEY).status), (401, 200));
    let gone = json!({ "api_keys": [{ "name": "key-1" }, { "name": "gone" }] });
    let answer = server.admin.put_json(&path("tenants/acme"), &gone);
    answer.refused(422, "unprocessable", &["api_keys[1]: the tenant has no key \"gone\""]);
    server.open_tenant("acme");
    assert_eq!(read(&server, "tenants/acme/keys"), json!({ "items": [] }));
    let answer = server.admin.put_json(&path("tenants/acme/keys/a"), &json!({ "key": KEY }));
    answer.refused(409, "conflict", &["tenant \"acme\" is open"]);
}

#[test]
fn keys_of_an_older_log_have_names() {
    let setup = Setup::new();
    let log = setup.data_dir().join("store/log");
    fs::create_dir_all(&log).unwrap();
    let keys = [KEY, NEW_KEY].map(gristmill_transport::credentials::digest);
    let release = json!({ "number": 1, "published_at_ms": 5, "changes": [{
        "kind": "put_tenant", "tenant": "acme", "spec": { "keys": keys, "weight": 3 },
    }] });
    fs::write(log.join(format!("{:020}.json", 1)), release.to_string()).unwrap();
    let server = setup.start();
    let names = json!([{ "name": "key-1" }, { "name": "key-2" }]);
    assert_eq!(read(&server, "tenants/acme")["api_keys"], names);
    server.put_json("tenants/acme/keys/key-1", &json!({ "key": "the-key-of-acme-3" }));
    server.digits_for("acme");
    let server = server.kill().start();
    let statuses = [KEY, NEW_KEY, "the-key-of-acme-3"].map(|key| call(&server, key).status);
    assert_eq!(statuses, [401, 200, 200]);
}

#[test]
fn keys_of_format_5_are_plain_hashes_until_they_are_replaced() {
    let setup = Setup::new();
    let log = setup.data_dir().join("store/log");
    fs::create_dir_all(&log).unwrap();
    let [digest, other] = [KEY, NEW_KEY].map(gristmill_transport::credentials::digest);
    let previous = gristmill_core::Digest::of(b"");
    let release = json!({
        "number": 1, "published_at_ms": 5, "previous": previous, "note": { "by": "admin" },
        "changes": [{
            "kind": "put_tenant", "tenant": "acme",
            "spec": { "open": false, "keys": { "ci": digest, "old": other },
                "default_pipeline": null, "weight": 1, "models": [] },
        }],
    });
    let covered = gristmill_core::Digest::of(format!("5\n{release}").as_bytes());
    let document = format!(r#"{{"format":5,"digest":"{covered}","release":{release}}}"#);
    fs::write(log.join(format!("{:020}.json", 1)), document + "\n").unwrap();
    let server = setup.start();
    server.digits_for("acme");
    assert_eq!((call(&server, KEY).status, call(&server, NEW_KEY).status), (200, 200));
    // The same key under its name changes nothing, and under another name it is refused.
    let put = |name: &str, key: &str| {
        server.admin.put_json(&path(&format!("tenants/acme/keys/{name}")), &json!({ "key": key }))
    };
    let before = server.release();
    assert_eq!(put("ci", KEY).ok()["release"], before);
    put("b", KEY).refused(422, "unprocessable", &["it is the tenant's key \"ci\" already"]);
    let other = json!({ "api_keys": [KEY] });
    let answer = server.admin.put_json(&path("tenants/other"), &other);
    answer.refused(422, "unprocessable", &["api_keys[0] is in use elsewhere"]);
    let third = "the-key-of-acme-3";
    put("old", third).ok();
    let statuses = [KEY, NEW_KEY, third].map(|key| call(&server, key).status);
    assert_eq!(statuses, [200, 401, 200]);
    let last = fs::read_to_string(log.join(format!("{:020}.json", before + 1))).unwrap();
    assert!(
        last.contains(&server.kept_hash(third)) && last.starts_with("{\"format\":11"),
        "{last}"
    );
    let server = server.kill().start();
    let statuses = [KEY, NEW_KEY, third].map(|key| call(&server, key).status);
    assert_eq!(statuses, [200, 401, 200]);
}
