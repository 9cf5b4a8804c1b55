//! A tenant's own people with a deploy token: what they can do, and that they reach nothing else.

use serde_json::{Value, json};

use crate::support::admin_api::{digest, make, path, read, upload};
use crate::support::client::{Client, TestAnswer};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::raw::Raw;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

const KEY: &str = "the-key-of-acme-1";
const NEW_KEY: &str = "the-key-of-acme-2";

const DRY_RUN: &str = "releases?dry_run=true";

/// The tenant `acme` with a granted model, the tenant `other` with a pipeline and a model of its
/// own, and a token for `acme`.
fn start_with(setup: Setup) -> (Server, String) {
    let server = setup.start();
    server.model("digits");
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["digits"] }));
    server.ranker("other");
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    (server, token)
}

fn start() -> (Server, Client) {
    let (server, token) = start_with(Setup::new());
    let ci = server.admin.with_token(&token);
    (server, ci)
}

fn put_json(client: &Client, below: &str, document: &Value) -> TestAnswer {
    client.put_json(&path(below), document)
}

fn post(client: &Client, below: &str, document: &Value) -> TestAnswer {
    client.post(&path(below), document.to_string().as_bytes())
}

#[track_caller]
fn forbidden(answer: &TestAnswer) {
    answer.refused(403, "forbidden", &["the token"]);
}

/// The answer of `acme` to a digit.
fn label(server: &Server, key: &str) -> TestAnswer {
    server.data.with_token(key).post("/v1/acme/infer", &files::digit(4))
}

#[test]
fn a_tenants_own_people_deploy_from_upload_to_rollback() {
    let (server, token) = start_with(Setup::new());
    let ci = server.admin.with_token(&token);
    let plugin = files::plugin("digits");
    let put = ci.put(&path("tenants/acme/plugins/digits"), &plugin).ok();
    assert_eq!(put["digest"], digest(&plugin));
    let pipeline = processor("digits", json!({}));
    put_json(&ci, "tenants/acme/pipelines/digits", &pipeline).ok();
    assert_eq!(label(&server, KEY).ok()["label"], 4);
    put_json(&ci, "tenants/acme/keys/new", &json!({ "key": NEW_KEY })).ok();
    ci.delete(&path("tenants/acme/keys/key-1")).ok();
    assert_eq!((label(&server, KEY).status, label(&server, NEW_KEY).status), (401, 200));

    // A release of a file that was uploaded before.
    let before = server.release();
    let other = files::plugin("hostile");
    let name = digest(&other);
    ci.put(&path(&format!("blobs/{name}")), &other).ok();
    assert_eq!(ci.get(&path(&format!("blobs/{name}"))).ok()["complete"], true);
    let new = json!({ "message": "ours", "expected_release": before, "changes": [
        { "kind": "put_plugin", "tenant": "acme", "plugin": "guest", "digest": name },
        { "kind": "put_pipeline", "tenant": "acme", "pipeline": "guest",
            "document": processor("guest", json!({})) },
        { "kind": "put_key", "tenant": "acme", "key": "ci", "document": { "key": KEY } },
    ] });
    let planned = post(&ci, "releases?dry_run=true", &new).ok();
    assert_eq!(planned["differences"].as_array().unwrap().len(), 4, "{planned}");
    assert_eq!(server.release(), before);
    let made = post(&ci, "releases", &new).ok();
    assert_eq!(made["release"], before + 1);
    assert_eq!(label(&server, KEY).status, 404, "with two pipelines there is no default");
    let content = ci.get(&path("tenants/acme/plugins/guest/content"));
    assert_eq!(content.body, other);
    ci.get(&path("tenants/acme/plugins/guest/logs")).ok();
    let release = ci.get(&path(&format!("releases/{}", before + 1))).ok();
    assert_eq!((&release["by"], &release["message"]), (&json!("ci"), &json!("ours")));
    server.logs("who=ci");

    // The file that a plugin of the tenant has can be used again.
    let again = json!({ "changes": [
        { "kind": "put_plugin", "tenant": "acme", "plugin": "copy", "digest": name },
    ] });
    post(&ci, "releases", &again).ok();
    let back = json!({ "to": before, "tenant": "acme" });
    let back = post(&ci, "rollback", &back).ok();
    assert_eq!(back["release"], before + 3);
    assert_eq!(label(&server, NEW_KEY).ok()["label"], 4);
    let plugins = ci.get(&path("tenants/acme/plugins")).ok();
    assert_eq!(plugins["items"].as_array().unwrap().len(), 1);
    ci.delete(&path("tenants/acme/plugins/digits?cascade=true")).ok();
    let server = server.kill().start();
    let ci = server.admin.with_token(&token);
    assert_eq!(ci.get(&path("tenants/acme/plugins")).ok()["items"], json!([]));
}

#[test]
fn a_token_sees_its_tenants_and_nothing_of_others() {
    let (server, ci) = start();
    ci.put(&path("tenants/acme/plugins/digits"), &files::plugin("digits")).ok();
    let own_release = server.release();
    let both = json!({ "message": "about other", "changes": [
        { "kind": "put_tenant", "tenant": "acme", "document": { "api_keys": [KEY], "weight": 2,
            "models": ["digits"] } },
        { "kind": "put_tenant", "tenant": "other", "document": { "open": true, "weight": 3 } },
    ] });
    post(&server.admin, "releases", &both).ok();
    let only = server.put_json("tenants/other", &json!({ "open": true, "weight": 4 }));

    let mut shown = String::new();
    let mut seen = |below: &str| {
        let answer = ci.get(&path(below));
        shown += &answer.text();
        answer.ok()
    };
    let names = |list: &Value| -> Vec<String> {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&seen("tenants")), ["acme"]);
    assert_eq!(names(&seen("tenants?limit=1")), ["acme"]);
    assert_eq!(names(&seen("models")), ["digits"]);
    let status = seen("status");
    let keys = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&status["tenants"]), ["acme"]);
    assert_eq!(keys(&status["models"]), ["digits"]);
    assert_eq!(keys(&status), ["models", "release", "tenants", "version"]);
    assert!(status["models"]["digits"]["inputs"].is_array());
    for hidden in ["statistics", "providers", "config"] {
        assert!(status["models"]["digits"].get(hidden).is_none(), "{hidden}");
    }
    seen("models/digits");
    let history = seen("releases");
    let numbers: Vec<_> =
        history["items"].as_array().unwrap().iter().map(|one| one["number"].as_u64()).collect();
    assert_eq!(numbers, [Some(own_release + 1), Some(own_release), Some(2)]);
    assert_eq!(history["items"][0]["changes"], json!(["put tenant acme"]));
    assert_eq!(history["items"][0]["changes_total"], 1);
    let part = seen(&format!("releases/{}", own_release + 1));
    assert_eq!(part["changes"].as_array().unwrap().len(), 1);
    assert!(part.get("message").is_none());
    for word in ["other", "ranker"] {
        assert!(!shown.contains(word), "{word} is in {shown}");
    }
    let none = ci.get(&path(&format!("releases/{only}")));
    let missing = ci.get(&path("releases/999"));
    let none = none.refused(404, "not_found", &["no release"]);
    let missing = missing.refused(404, "not_found", &["no release"]);
    assert_eq!(none.replace(&only.to_string(), "999"), missing);
    // A page of few, over the releases of others.
    let page = ci.get(&path("releases?limit=1")).ok();
    assert_eq!(
        (&page["items"][0]["number"], &page["next"]),
        (&json!(own_release + 1), &json!(own_release + 1))
    );
}

#[test]
fn a_release_or_a_rollback_that_goes_beyond_the_tenants_is_refused_as_a_whole() {
    let (server, ci) = start();
    let plugin = files::plugin("digits");
    let name = digest(&plugin);
    ci.put(&path(&format!("blobs/{name}")), &plugin).ok();
    let allowed =
        json!({ "kind": "put_plugin", "tenant": "acme", "plugin": "digits", "digest": name });
    let before = server.release();
    let of = |tenant: &str| {
        vec![
            json!({ "kind": "put_plugin", "tenant": tenant, "plugin": "p", "digest": name }),
            json!({ "kind": "delete_plugin", "tenant": tenant, "plugin": "ranker-pre" }),
            json!({ "kind": "put_pipeline", "tenant": tenant, "pipeline": "p",
                "document": processor("digits", json!({})) }),
            json!({ "kind": "delete_pipeline", "tenant": tenant, "pipeline": "ranker" }),
            json!({ "kind": "put_key", "tenant": tenant, "key": "x", "document": { "key": KEY } }),
            json!({ "kind": "delete_key", "tenant": tenant, "key": "x" }),
        ]
    };
    let mut changes = [of("other"), of("none")].concat();
    changes.extend([
        json!({ "kind": "put_tenant", "tenant": "acme", "document": { "open": true } }),
        json!({ "kind": "put_tenant", "tenant": "new", "document": { "open": true } }),
        json!({ "kind": "delete_tenant", "tenant": "acme" }),
        json!({ "kind": "put_model", "model": "digits", "digest": name }),
        json!({ "kind": "put_model_config", "model": "digits", "document": {} }),
        json!({ "kind": "delete_model", "model": "ranker" }),
        json!({ "kind": "unload_model", "model": "ranker" }),
    ]);
    for change in changes {
        for query in ["", "?dry_run=true", "?cascade=true&force=true"] {
            let new = json!({ "changes": [allowed, change] });
            let answer = post(&ci, &format!("releases{query}"), &new);
            let error = answer.refused(403, "forbidden", &["changes[1]: the token does not allow"]);
            assert!(!error.contains("other") && !error.contains("none"), "{error}");
        }
    }
    for back in [
        json!({ "to": 1 }),
        json!({ "to": 1, "model": "digits" }),
        json!({ "to": 1, "tenant": "other" }),
        json!({ "to": 1, "tenant": "none" }),
    ] {
        forbidden(&post(&ci, "rollback", &back));
    }
    assert_eq!(server.release(), before, "nothing was changed");
}

#[test]
fn a_pipeline_uses_only_models_that_the_tenant_has() {
    let (server, ci) = start();
    ci.put(&path("tenants/acme/plugins/digits"), &files::plugin("digits")).ok();
    let pipeline = |model: &str, pre: &str, limits: Value| {
        let document = json!({ "pre": pre, "model": model, "post": "digits", "limits": limits });
        put_json(&ci, "tenants/acme/pipelines/p", &document)
    };
    // The model of another tenant is refused as one that does not exist.
    for (pre, limits) in [("digits", json!({})), ("none", json!({})), ("digits", json!({ "x": 1 }))]
    {
        let shown = ["ranker", "nothing"].map(|model| {
            let text = format!("model: no model {model:?}");
            let answer = pipeline(model, pre, limits.clone());
            answer.refused(422, "unprocessable", &[&text]).replace(model, "MODEL")
        });
        assert_eq!(shown[0], shown[1]);
    }
    pipeline("digits", "digits", json!({})).ok();
    // A pipeline that an operator has put on another model can be changed with it.
    let document = json!({ "pre": "digits", "model": "ranker", "post": "digits" });
    server.pipeline("acme", "theirs", &document);
    let again =
        json!({ "pre": "digits", "model": "ranker", "post": "digits", "settings": { "a": 1 } });
    put_json(&ci, "tenants/acme/pipelines/theirs", &again).ok();
    assert_eq!(ci.get(&path("models/ranker")).status, 200);
    ci.delete(&path("tenants/acme/pipelines/theirs")).ok();
    forbidden(&ci.get(&path("models/ranker")));
    let refused = put_json(&ci, "tenants/acme/pipelines/theirs", &again);
    refused.refused(422, "unprocessable", &["model: no model \"ranker\""]);
}

#[test]
fn going_back_brings_back_no_terms_that_the_operator_changed() {
    let (server, ci) = start();
    ci.put(&path("tenants/acme/plugins/digits"), &files::plugin("digits")).ok();
    put_json(&ci, "tenants/acme/pipelines/digits", &processor("digits", json!({}))).ok();
    let then = server.release();
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "weight": 5 }));
    ci.delete(&path("tenants/acme/plugins/digits?cascade=true")).ok();
    // The grant was taken away, so its pipeline cannot come back with this token.
    let back = json!({ "to": then, "tenant": "acme" });
    let answer = post(&ci, "rollback", &back);
    answer.refused(422, "unprocessable", &["model: no model \"digits\""]);
    server
        .put_json("tenants/acme", &json!({ "api_keys": [KEY], "weight": 5, "models": ["digits"] }));
    post(&ci, "rollback", &back).ok();
    assert_eq!(label(&server, KEY).ok()["label"], 4);
    assert_eq!(read(&server, "tenants/acme")["weight"], 5);

    // A tenant that had the same name before is another one.
    server.admin.delete(&path("tenants/acme?cascade=true")).ok();
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["digits"] }));
    let made = server.release();
    let token = make(&server, "new", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let new = server.admin.with_token(&token);
    let answer = post(&new, "rollback", &back);
    answer.refused(404, "not_found", &[&format!("release {then} has no tenant \"acme\"")]);
    let history = new.get(&path("releases")).ok();
    assert_eq!(history["items"].as_array().unwrap().len(), 1);
    assert_eq!(history["items"][0]["number"], made);
    new.get(&path(&format!("releases/{then}"))).refused(404, "not_found", &["no release"]);
}

/// Send a part of a file.
fn part(client: &Client, digest: &str, offset: usize, is_last: bool, bytes: &[u8]) -> TestAnswer {
    let offset = offset.to_string();
    let complete = if is_last { "?1" } else { "?0" };
    let headers = [("upload-offset", offset.as_str()), ("upload-complete", complete)];
    client.send("PATCH", &path(&format!("blobs/{digest}")), &headers, Some(bytes))
}

#[test]
fn a_file_of_others_is_neither_seen_nor_taken_by_its_digest() {
    let (server, ci) = start();
    let token = make(&server, "cd", &json!({ "role": "deploy", "tenants": ["other"] }));
    let cd = server.admin.with_token(&token);
    let (secret, waiting) = (files::plugin("ranker-pre"), files::plugin("hostile"));
    let served = digest(&secret);
    let names = [served.clone(), digest(&waiting), upload(&server, &files::plugin("ranker-post"))];
    cd.put(&path(&format!("blobs/{}", names[1])), &waiting).ok();
    let take = |digest: &str| {
        let change = json!({ "kind": "put_plugin", "tenant": "acme", "plugin": "p",
            "digest": digest });
        post(&ci, "releases", &json!({ "changes": [change] }))
    };
    let nothing = digest(b"nothing");
    for name in names.iter().chain([&nothing]) {
        let blob = path(&format!("blobs/{name}"));
        let seen = ci.get(&blob).refused(404, "not_found", &["no blob"]);
        assert_eq!(seen.replace(name, ""), format!("no blob {:?}", ""));
        ci.delete(&blob).refused(404, "not_found", &["no blob"]);
        let taken = take(name);
        taken.refused(422, "unprocessable", &["changes[0]: no uploaded file has the digest"]);
        // It does not help to claim that all parts but the last have arrived, or that there is
        // none.
        let named = ["Upload-Offset is 9, but 0 bytes have arrived"];
        part(&ci, name, 9, true, b"").refused(409, "conflict", &named);
        part(&ci, name, 0, true, b"").refused(422, "unprocessable", &["the file has the digest"]);
        ci.put(&blob, b"").refused(422, "unprocessable", &["the file has the digest"]);
        take(name).refused(422, "unprocessable", &["no uploaded file has the digest"]);
    }
    // Nor to end what another token began.
    let file = files::plugin("digits");
    let name = digest(&file);
    part(&cd, &name, 0, false, &file[..1000]).ok();
    let rest = part(&ci, &name, 1000, true, &file[1000..]);
    rest.refused(409, "conflict", &["Upload-Offset is 1000, but 0 bytes have arrived"]);
    part(&cd, &name, 1000, true, &file[1000..]).ok();
    ci.get(&path(&format!("blobs/{name}"))).refused(404, "not_found", &["no blob"]);
    // What others uploaded is still there for them.
    assert_eq!(cd.get(&path(&format!("blobs/{}", names[1]))).ok()["complete"], true);
    // Who has the file uploads it, and then it can be used.
    ci.put(&path(&format!("blobs/{served}")), &secret).ok();
    take(&served).ok();
    assert_eq!(ci.get(&path("tenants/acme/plugins/p/content")).body, secret);
}

#[test]
fn what_waits_of_one_token_leaves_room_for_others() {
    let (server, token) = start_with(Setup::new().flag("--waiting-bytes-max", "80000"));
    let ci = server.admin.with_token(&token);
    let put = |client: &Client, byte: u8, bytes: usize| {
        let file = vec![byte; bytes];
        client.put(&path(&format!("blobs/{}", digest(&file))), &file)
    };
    put(&ci, 1, 9000).ok();
    let full = put(&ci, 2, 1001);
    full.refused(409, "conflict", &["over 10000 bytes, its share of 80000 (waiting_bytes_max)"]);
    put(&ci, 3, 1000).ok();
    let mut tokens = Vec::new();
    for number in 0..4 {
        let name = format!("ci-{number}");
        let token = make(&server, &name, &json!({ "role": "deploy", "tenants": ["acme"] }));
        let client = server.admin.with_token(&token);
        let answer = put(&client, 10 + number, 10_000);
        match number {
            3 => drop(answer.refused(409, "conflict", &["over 40000 bytes, their share of 80000"])),
            _ => drop(answer.ok()),
        }
        tokens.push(client);
    }
    put(&server.admin, 4, 40_000).ok();
    put(&server.admin, 5, 1).refused(409, "conflict", &["over 80000 bytes"]);
    // A token that is deleted holds nothing.
    server.admin.delete(&path("tokens/ci")).ok();
    put(&tokens[3], 13, 10_000).ok();
}

#[test]
fn a_token_that_is_deleted_while_a_file_arrives_changes_nothing() {
    let (server, token) = start_with(Setup::new());
    let plugin = files::plugin("digits");
    let begin = || {
        let head = format!(
            "PUT /admin/v1/tenants/acme/plugins/digits HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
             expect: 100-continue\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
            plugin.len()
        );
        let mut upload = Raw::sent(&server.admin, &head);
        // The token was checked when the body is asked for.
        assert!(upload.read_until("\r\n\r\n").starts_with("HTTP/1.1 100 "));
        upload
    };
    let mut narrowed = begin();
    let other = json!({ "role": "deploy", "tenants": ["other"] });
    put_json(&server.admin, "tokens/ci", &other).ok();
    narrowed.send(&plugin);
    narrowed.answer().refused(403, "forbidden", &["the token", "meanwhile"]);
    put_json(&server.admin, "tokens/ci", &json!({ "role": "deploy", "tenants": ["acme"] })).ok();
    let mut deleted = begin();
    server.admin.delete(&path("tokens/ci")).ok();
    deleted.send(&plugin);
    deleted.answer().refused(403, "forbidden", &["the token", "meanwhile"]);
    let plugins = read(&server, "tenants/acme/plugins");
    assert_eq!(plugins["items"], json!([]), "{plugins}");
}

#[test]
fn a_token_that_made_many_releases_has_to_wait() {
    let (server, ci) = start();
    ci.put(&path("tenants/acme/plugins/digits"), &files::plugin("digits")).ok();
    let mut made = 0;
    let refused = loop {
        let mut pipeline = processor("digits", json!({}));
        pipeline["settings"] = json!({ "made": made });
        let answer = put_json(&ci, "tenants/acme/pipelines/main", &pipeline);
        if answer.status == 429 {
            break answer;
        }
        answer.ok();
        made += 1;
        assert!(made < 300, "some more come in each minute");
    };
    assert!(made >= 99, "{made}");
    refused.refused(429, "too_many_releases", &["the token \"ci\" has made 100 releases"]);
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    // Others go on, and so do its own dry runs.
    let before = server.release();
    server.put_json("tenants/other", &json!({ "open": true, "weight": 7 }));
    assert_eq!(server.release(), before + 1);
    let change = json!({ "kind": "delete_pipeline", "tenant": "acme", "pipeline": "main" });
    post(&ci, "releases?dry_run=true", &json!({ "changes": [change] })).ok();
}

#[test]
fn a_token_learns_little_about_the_secrets_of_others() {
    let server = Server::start();
    for (tenant, key) in [("acme", KEY), ("other", "the-key-of-other-1")] {
        server.keyed_tenant(tenant, key);
    }
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let ci = server.admin.with_token(&token);
    let put = |name: &str, key: &str| {
        json!({ "kind": "put_key", "tenant": "acme", "key": name,
            "document": { "key": key } })
    };
    let try_out = |changes: Vec<Value>| post(&ci, DRY_RUN, &json!({ "changes": changes }));
    // A thousand guesses at once are too many, whether or not one is right.
    let guesses = |guess: &str| {
        let wrong = (0..999).map(|number| put("new", &format!("a-wrong-guess-{number:03}")));
        wrong.chain([put("new", guess)]).collect::<Vec<_>>()
    };
    for secret in ["the-key-of-other-1", ADMIN_TOKEN, "another-wrong-guess"] {
        let refused = try_out(guesses(secret));
        let named = ["more than 10 new keys came with the token \"ci\" within a minute"];
        refused.refused(429, "too_many_failures", &named);
        assert!(refused.headers.contains_key("retry-after"));
    }
    // An admin token and another tenant's key are the same to it, wherever it tries them.
    let problem = |answer: &TestAnswer| {
        let mut document: Value = serde_json::from_slice(&answer.body).unwrap();
        document["request_id"] = Value::Null;
        document
    };
    let secrets = ["the-key-of-other-1", ADMIN_TOKEN, token.as_str()];
    let [other, root, wrong] = secrets.map(|secret| problem(&try_out(vec![put("new", secret)])));
    assert_eq!((&other, &other["status"]), (&root, &json!(422)));
    assert_eq!(other, wrong);
    let [other, root, wrong] = secrets
        .map(|secret| problem(&put_json(&ci, "tenants/acme/keys/new", &json!({ "key": secret }))));
    assert_eq!((&other, &other, &other["status"]), (&root, &wrong, &json!(422)));
    let tenant = json!({ "kind": "put_tenant", "tenant": "acme", "document": {
        "api_keys": [ADMIN_TOKEN] } });
    forbidden(&try_out(vec![tenant]));
    // What it met counts as wrong tokens, and is logged.
    server.logs("a key that is in use elsewhere was tried");
    let code = |answer: &TestAnswer| problem(answer)["code"].clone();
    let codes: Vec<_> = (0..8).map(|_| code(&try_out(vec![put("new", ADMIN_TOKEN)]))).collect();
    assert_eq!(codes.last().unwrap(), "too_many_failures", "{codes:?}");
    let log = server.log();
    assert!(!log.contains(ADMIN_TOKEN) && !log.contains("the-key-of-other-1"), "{log}");
    // Keys that the tenant has, and new ones that come again, do not count as guesses.
    for _ in 0..20 {
        try_out(vec![put("key-1", KEY), put("new", "a-wrong-guess-001")]).ok();
    }
    // An operator brings as many as are needed.
    let all = json!({ "changes": guesses("a-last-key-for-acme") });
    post(&server.admin, DRY_RUN, &all).ok();
}
