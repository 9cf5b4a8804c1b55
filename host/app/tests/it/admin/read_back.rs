//! Reading back what was put: documents, files and lists, and their tags.

use std::fs;

use serde_json::{Value, json};

use crate::support::admin_api::{KEY, NEW_KEY, conditional, path, read, start, tag};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::modules::Guest;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;

const DOCUMENTS: [&str; 3] =
    ["tenants/acme", "tenants/acme/pipelines/digits", "models/digits/config"];

const ALL: [&str; 13] = [
    "tenants",
    "tenants/acme",
    "tenants/acme/keys",
    "tenants/acme/keys/key-1",
    "tenants/acme/plugins",
    "tenants/acme/plugins/digits",
    "tenants/acme/plugins/digits/content",
    "tenants/acme/pipelines",
    "tenants/acme/pipelines/digits",
    "models",
    "models/digits",
    "models/digits/config",
    "models/digits/content",
];

#[test]
fn a_document_that_is_put_back_changes_nothing() {
    let server = start();
    let mut spec = processor("digits", json!({ "timeout_ms": 5000, "memory_bytes": 16 << 20 }));
    spec["settings"] = json!({ "b": [1.5, null], "a": { "c": null } });
    spec["instance_reuse"] = json!({ "mode": "tenant", "max_idle": 2 });
    server.pipeline("acme", "digits", &spec);
    let config = json!({ "max_batch_size": 8, "preferred_batch_sizes": [4],
        "priority_levels": 2, "priority_queue_policies": { "2": { "timeout_action": "delay" } } });
    server.put_json("models/digits/config", &config);
    let tenant = json!({ "api_keys": [KEY, NEW_KEY], "default_pipeline": "digits", "weight": 7,
        "models": ["digits"] });
    let before = server.put_json("tenants/acme", &tenant);
    assert_eq!(read(&server, "tenants/acme/pipelines/digits"), spec);
    let expected = json!({
        "open": false, "default_pipeline": "digits", "weight": 7, "models": ["digits"],
        "api_keys": [{ "name": "key-1" }, { "name": "key-2" }],
    });
    assert_eq!(read(&server, "tenants/acme"), expected);
    for below in DOCUMENTS {
        let (document, before_tag) = (read(&server, below), tag(&server, below));
        let put = server.admin.put_json(&path(below), &document);
        assert_eq!(put.ok()["release"], before, "{below}: {}", put.text());
        assert_eq!(put.header("etag"), before_tag);
        assert_eq!(read(&server, below), document);
    }
    for key in [KEY, NEW_KEY] {
        let answer = server.data.with_token(key).post("/v1/acme/infer", &files::digit(3));
        assert_eq!(answer.ok()["label"], 3, "the keys stay");
    }
}

#[test]
fn files_come_back_as_they_were_uploaded_also_after_a_restart() {
    let mut server = start();
    // A core module, of which the host makes a component.
    let module = Guest::pre(|code| _ = code.unreachable()).file();
    server.put("tenants/acme/plugins/module", &module);
    let (plugin, model) = (files::plugin("digits"), files::model("digits"));
    let tags: Vec<_> = ALL.iter().map(|below| tag(&server, below)).collect();
    for _ in 0..2 {
        for (below, file, media_type) in [
            ("tenants/acme/plugins/digits", &plugin, "application/wasm"),
            ("tenants/acme/plugins/module", &module, "application/wasm"),
            ("models/digits", &model, "application/octet-stream"),
        ] {
            let answer = server.admin.get(&path(&format!("{below}/content")));
            assert!(answer.status == 200 && answer.body == *file, "{below}");
            assert_eq!(answer.header("content-type"), media_type);
            assert_eq!(answer.header("content-length"), file.len().to_string());
            let about = read(&server, below);
            assert_eq!(about["bytes"], file.len());
            let digest = about["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            assert_eq!(answer.header("etag"), format!("\"{digest}\""));
        }
        let about = read(&server, "tenants/acme/plugins/digits");
        assert_eq!((&about["name"], &about["version"]), (&json!("digits"), &json!(3)));
        assert_eq!((&about["contract"], &about["world"]), (&json!("0.3"), &json!("processor")));
        assert!(!about["imports"].as_array().unwrap().is_empty(), "{about}");
        server = server.kill().start();
        for (below, tag_before) in ALL.iter().zip(&tags) {
            assert_eq!(tag(&server, below), *tag_before, "{below}");
        }
    }
}

#[test]
fn a_reader_that_has_the_version_gets_no_body() {
    let server = start();
    for below in ALL {
        let version = tag(&server, below);
        let list = format!("\"other\", W/{version}");
        for condition in [version.as_str(), &list, "*"] {
            let answer = conditional(&server, ("GET", below), ("if-none-match", condition), b"");
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{below}");
            assert_eq!(answer.header("etag"), version);
        }
        let answer = conditional(&server, ("GET", below), ("if-none-match", "\"other\""), b"");
        assert_eq!(answer.status, 200);
        let answer = conditional(&server, ("GET", below), ("if-match", "\"other\""), b"");
        answer.refused(412, "precondition_failed", &[below, &version, "\"other\""]);
        let head = server.admin.send("HEAD", &path(below), &[], None);
        let get = server.admin.get(&path(below));
        assert_eq!((head.status, head.body.len(), head.header("etag")), (200, 0, version.as_str()));
        for header in ["content-length", "content-type", "link"] {
            assert_eq!(head.header(header), get.header(header), "{below}");
        }
        let answer = server.admin.post(&path(below), b"");
        answer.refused(405, "method_not_allowed", &["POST is not allowed here, GET"]);
        assert!(answer.header("allow").starts_with("GET, HEAD"), "{}", answer.header("allow"));
    }
}

/// All items of a list, page by page, and the number of pages.
fn pages(server: &Server, list: &str, limit: usize) -> (Vec<Value>, usize) {
    let (mut items, mut pages) = (Vec::new(), 0);
    let mut query = format!("?limit={limit}");
    loop {
        let answer = server.admin.get(&path(&format!("{list}{query}")));
        let page = answer.ok();
        let new = page["items"].as_array().unwrap();
        assert!(new.len() <= limit, "{page}");
        items.extend(new.iter().cloned());
        pages += 1;
        let link = answer.header("link");
        let Some(next) = page.get("next") else {
            assert_eq!(link, "");
            return (items, pages);
        };
        assert_eq!(*next, items.last().unwrap()["name"]);
        let (target, relation) = link.split_once("; ").unwrap();
        assert_eq!(relation, "rel=\"next\"");
        query = target.trim_matches(['<', '>']).to_owned();
        assert_eq!(query, format!("?limit={limit}&after={}", next.as_str().unwrap()));
    }
}

#[test]
fn lists_are_sorted_and_come_in_pages() {
    let server = start();
    let mut names: Vec<_> = (0..24).map(|index| format!("t{}", index * 7)).collect();
    for name in &names {
        server.open_tenant(name);
    }
    names.push("acme".into());
    names.sort();
    for (limit, expected) in [(1, 25), (7, 4), (12, 3), (25, 1), (1000, 1)] {
        let (items, pages) = pages(&server, "tenants", limit);
        let listed: Vec<_> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!((listed, pages), (names.iter().map(String::as_str).collect(), expected));
    }
    let acme = json!({ "name": "acme", "open": false, "weight": 1, "keys": 1, "plugins": 1,
        "pipelines": 1 });
    assert_eq!(pages(&server, "tenants", 1).0[0], acme);
    // A name between two pages may be deleted meanwhile.
    server.admin.delete(&path("tenants/t0")).ok();
    let after = read(&server, "tenants?limit=1&after=t0");
    assert_eq!((&after["items"][0]["name"], &after["next"]), (&json!("t105"), &json!("t105")));
    assert_eq!(read(&server, "tenants?after=zzz"), json!({ "items": [] }));

    let digest = |below: &str| read(&server, below)["digest"].clone();
    let plugin = json!({ "name": "digits", "digest": digest("tenants/acme/plugins/digits"),
        "version": 3 });
    assert_eq!(read(&server, "tenants/acme/plugins"), json!({ "items": [plugin] }));
    let model = json!({ "name": "digits", "digest": digest("models/digits"), "version": 2,
        "unloaded": false });
    assert_eq!(read(&server, "models"), json!({ "items": [model] }));
    let pipeline =
        json!({ "name": "digits", "pre": "digits", "model": "digits", "post": "digits" });
    assert_eq!(read(&server, "tenants/acme/pipelines"), json!({ "items": [pipeline] }));
    let key = json!({ "name": "key-1", "version": 1 });
    assert_eq!(read(&server, "tenants/acme/keys"), json!({ "items": [key] }));
}

#[test]
fn hostile_queries_and_names_are_refused() {
    let server = start();
    let long = "a".repeat(2000);
    for (query, named) in [
        ("limit=0", "limit is \"0\": must be 1 to 1000"),
        ("limit=1001", "limit is \"1001\": must be 1 to 1000"),
        ("limit=99999999999999999999999", "must be 1 to 1000"),
        ("limit=1&limit=2", "limit is given twice"),
        ("after=..%2F..%2Fkeys", "after: \"../../keys\" is not a valid name"),
        ("after=%00", "after: \"\\0\" is not a valid name"),
        ("after=%ff%fe", "is not a valid name"),
        ("offset=5", "unknown parameter \"offset\"; known are limit, after"),
        (&format!("after={long}"), "is not a valid name"),
    ] {
        for list in ["tenants", "models", "tenants/acme/keys"] {
            let answer = server.admin.get(&path(&format!("{list}?{query}")));
            let detail = answer.refused(400, "invalid_request", &[named]);
            assert!(detail.len() < 300, "{detail}");
        }
    }
    for below in ["tenants/acme?a=b", "models/digits?bytes", "models/digits/content?x=1"] {
        let answer = server.admin.get(&path(below));
        answer.refused(400, "invalid_request", &["unknown parameter", "this call has none"]);
    }
    for name in ["..", "%2E%2E", "A%20b", "a%2Fb", "a%00", "%22", &long] {
        for below in [
            format!("tenants/{name}"),
            format!("tenants/{name}/plugins"),
            format!("tenants/acme/plugins/{name}/content"),
            format!("tenants/acme/keys/{name}"),
            format!("models/{name}/content"),
        ] {
            let answer = server.admin.get(&path(&below));
            answer.refused(400, "invalid_request", &["is not a valid name"]);
        }
    }
    for (below, named) in [
        ("tenants/none", "no tenant \"none\""),
        ("tenants/none/keys", "no tenant \"none\""),
        ("tenants/acme/keys/none", "no key \"none\""),
        ("tenants/acme/plugins/none", "no plugin \"none\""),
        ("tenants/acme/plugins/none/content", "no plugin \"none\""),
        ("tenants/acme/pipelines/none", "no pipeline \"none\""),
        ("models/none/config", "no model \"none\""),
        ("models/none/content", "no model \"none\""),
    ] {
        server.admin.get(&path(below)).refused(404, "not_found", &[named]);
    }
    server.admin.without_token().get(&path("tenants")).refused(401, "unauthenticated", &[]);
}

#[test]
fn no_answer_and_no_line_has_a_key_or_its_digest() {
    let server = start();
    let bodies = [
        json!({ "key": NEW_KEY }),
        json!({ "key": NEW_KEY, "kee": 1 }),
        json!({ "key": [NEW_KEY] }),
        json!({ "key": ADMIN_TOKEN }),
    ];
    let mut shown = String::new();
    for body in &bodies {
        shown += &server.admin.put_json(&path("tenants/acme/keys/b"), body).text();
    }
    for document in [
        json!({ "api_keys": [{ "name": "a", "key": NEW_KEY }, { "name": "b", "key": NEW_KEY }] }),
        json!({ "api_keys": [{ "name": "a", "secret": NEW_KEY }] }),
        json!({ "api_keys": [{ "name": "a", "key": [NEW_KEY] }] }),
    ] {
        let answer = server.admin.put_json(&path("tenants/acme"), &document);
        answer.refused(422, "unprocessable", &["api_keys["]);
        shown += &answer.text();
    }
    for below in ALL.iter().chain(&["status", "tenants/acme/keys/b"]) {
        let answer = server.admin.get(&path(below));
        assert_eq!(answer.status, 200, "{below}");
        shown += &answer.text();
        shown += &format!("{:?}", answer.headers);
    }
    server.logs("tenants/acme/keys/b");
    shown += &server.log();
    let log = fs::read_dir(server.data_dir().join("store/log")).unwrap();
    let releases: String =
        log.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect();
    for key in [KEY, NEW_KEY] {
        let digest = server.kept_hash(key);
        assert!(releases.contains(&digest) && !releases.contains(key), "only hashes are stored");
        assert!(!shown.contains(key) && !shown.contains(&digest), "{shown}");
        assert!(!shown.contains(&digest[..12]));
    }
    assert!(!shown.contains(ADMIN_TOKEN));
}
