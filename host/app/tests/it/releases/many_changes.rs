//! Releases of many changes, their history, and going back.

use serde_json::{Value, json};

use crate::support::admin_api::{KEY, NEW_KEY, digest, path, post_to, read, start, upload};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

/// The answer to a request for a digit.
#[track_caller]
fn label(server: &Server, key: Option<&str>, tenant: &str) -> Value {
    let data = key.map_or_else(|| server.data.clone(), |key| server.data.with_token(key));
    data.post(&format!("/v1/{tenant}/infer"), &files::digit(4)).ok()["label"].clone()
}

/// The changes that make an open tenant with the pipeline `digits`.
fn whole_tenant(tenant: &str, plugin: &str, model: &str) -> Vec<Value> {
    vec![
        json!({ "kind": "put_tenant", "tenant": tenant,
            "document": { "open": true, "default_pipeline": "digits" } }),
        json!({ "kind": "put_plugin", "tenant": tenant, "plugin": "digits", "digest": plugin }),
        json!({ "kind": "put_pipeline", "tenant": tenant, "pipeline": "digits",
            "document": processor("digits", json!({})) }),
        json!({ "kind": "put_model", "model": "digits", "digest": model }),
    ]
}

#[test]
fn many_changes_are_one_release_and_serve_after_a_restart() {
    let mut server = Server::start();
    let (plugin, model) = (files::plugin("digits"), files::model("digits"));
    let (plugin, model) = (upload(&server, &plugin), upload(&server, &model));
    let mut changes = whole_tenant("acme", &plugin, &model);
    changes.extend(whole_tenant("other", &plugin, &model));
    let new = json!({ "message": "both tenants", "expected_release": 0, "changes": changes });

    // A dry run says what would differ, and changes nothing.
    let planned = post_to(&server, "releases?dry_run=true", &new).ok();
    assert_eq!((&planned["release"], &planned["dry_run"]), (&json!(1), &json!(true)));
    assert_eq!(server.release(), 0);
    server.data.post("/v1/acme/infer", &files::digit(4)).refused(401, "unauthenticated", &[]);

    let made = post_to(&server, "releases", &new).ok();
    assert_eq!((&made["release"], &made["dry_run"]), (&json!(1), &json!(false)));
    assert_eq!(made["differences"], planned["differences"]);
    let differences = made["differences"].as_array().unwrap();
    let kinds: Vec<_> = differences.iter().map(|one| one["kind"].as_str().unwrap()).collect();
    let of_tenant = ["tenant", "plugin", "pipeline"];
    assert_eq!(kinds, [&["model", "model_config"][..], &of_tenant, &of_tenant].concat());
    let plugin_after = &differences[3]["after"];
    assert_eq!((&plugin_after["digest"], &plugin_after["version"]), (&json!(plugin), &json!(1)));
    assert!(differences.iter().all(|one| one["before"].is_null()));
    for tenant in ["acme", "other"] {
        assert_eq!(label(&server, None, tenant), 4);
    }
    // The same again makes no release.
    let same = json!({ "changes": new["changes"] });
    let again = post_to(&server, "releases", &same).ok();
    assert_eq!(again, json!({ "release": 1, "dry_run": false, "differences": [] }));

    server = server.kill().start();
    assert_eq!(label(&server, None, "other"), 4);
    let release = read(&server, "releases/1");
    assert_eq!((&release["by"], &release["message"]), (&json!("admin"), &json!("both tenants")));
    // The changes of a release can be asked for again.
    let asked = json!({ "changes": release["changes"] });
    assert_eq!(post_to(&server, "releases", &asked).ok()["differences"], json!([]));
}

#[test]
fn a_release_is_made_whole_or_not_at_all() {
    let server = start();
    let before = (server.release(), read(&server, "tenants/acme"));
    let (plugin, missing) = (upload(&server, &files::plugin("digits")), digest(b"missing"));
    let model = upload(&server, &files::model("digits"));
    let good = json!({ "kind": "put_tenant", "tenant": "new", "document": { "open": true } });
    let put = |name: &str, digest: &str| json!({ "kind": "put_plugin", "tenant": "new", "plugin": name, "digest": digest });
    let delete = |tenant: &str| json!({ "kind": "delete_tenant", "tenant": tenant });
    for (changes, status, code, named) in [
        // The second change is refused.
        (json!([good, delete("acme")]), 409, "conflict", &["changes[1]: tenant \"acme\" has"][..]),
        (json!([good, delete("none")]), 404, "not_found", &["changes[1]: no tenant \"none\""]),
        (
            json!([good, { "kind": "put_key", "tenant": "new", "key": "k",
                "document": { "key": KEY } }]),
            409,
            "conflict",
            &["changes[1]: tenant \"new\" is open"],
        ),
        // Files that are not there, or are not plugins.
        (
            json!([good, put("p", &missing)]),
            422,
            "unprocessable",
            &["changes[1]: no uploaded file has the digest", &missing],
        ),
        (json!([good, put("p", &model)]), 422, "invalid_plugin", &["plugin \"p\""]),
        (
            json!([good, put("p", &plugin), { "kind": "put_pipeline", "tenant": "new",
                "pipeline": "x", "document": { "pre": "p", "model": "gone", "post": "p" } }]),
            422,
            "unprocessable",
            &["tenant \"new\", pipeline \"x\"", "no model \"gone\""],
        ),
        // All faults of the document at once.
        (
            json!([
                { "kind": "put_tenant", "tenant": "A", "document": { "weight": 0, "open": true } },
                { "kind": "rename" },
                7,
            ]),
            422,
            "unprocessable",
            &["changes[2] must be a JSON object"],
        ),
        (
            json!([
                { "kind": "put_tenant", "tenant": "A b", "document": { "weight": 0 } },
                { "kind": "rename" },
                { "kind": "put_plugin", "tenant": "new", "digest": "sha256:1", "force": true },
                { "kind": "put_key", "tenant": "new", "key": "k", "document": { "key": "short" } },
                { "kind": "put_model_config", "model": "m", "document": { "instances": "two" } },
                { "kind": "put_pipeline", "tenant": "new", "pipeline": "p", "document": {} },
            ]),
            422,
            "unprocessable",
            &[
                "changes[0].tenant: \"A b\" is not a valid name",
                "changes[0].document: weight is 0: must be 1 to 1000",
                "changes[1].kind is \"rename\": must be one of put_tenant, delete_tenant",
                "changes[2].plugin is missing",
                "changes[2].digest is \"sha256:1\"",
                "changes[2]: unknown key \"force\"",
                "changes[3].document: key is shorter than 16 characters",
                "changes[4].document: ",
                "changes[5].document: ",
            ],
        ),
        (json!([]), 422, "unprocessable", &["changes is empty"]),
    ] {
        let refused = post_to(&server, "releases", &json!({ "changes": changes }));
        refused.refused(status, code, named);
        let dry = post_to(&server, "releases?dry_run=true", &json!({ "changes": changes }));
        dry.refused(status, code, named);
    }
    let many = vec![good.clone(); 1001];
    let many = post_to(&server, "releases", &json!({ "changes": many }));
    many.refused(422, "unprocessable", &["changes has 1001: the limit is 1000"]);
    let wrong = json!({ "changes": [good], "expected_release": before.0 - 1, "message": "" });
    let named = format!("release {} serves, but expected_release is", before.0);
    post_to(&server, "releases", &wrong).refused(412, "precondition_failed", &[&named]);
    let wrong = json!({ "changes": [good], "message": "\u{7}", "who": "me" });
    let named = ["message must have no control characters", "unknown key \"who\""];
    post_to(&server, "releases", &wrong).refused(422, "unprocessable", &named);
    post_to(&server, "releases?dry=1", &wrong).refused(400, "invalid_request", &["\"dry\""]);
    let conditions = [("if-match", "*")];
    let body = json!({ "changes": [good] }).to_string();
    let answer = server.admin.send("POST", &path("releases"), &conditions, Some(body.as_bytes()));
    answer.refused(400, "invalid_request", &["use expected_release"]);
    assert_eq!((server.release(), read(&server, "tenants/acme")), before);
    assert_eq!(label(&server, Some(KEY), "acme"), 4);
}

#[test]
fn users_go_with_a_thing_that_a_release_deletes_only_when_that_is_asked_for() {
    let server = start();
    let new = json!({ "changes": [{ "kind": "delete_model", "model": "digits" }] });
    let refused = post_to(&server, "releases", &new);
    refused.refused(409, "conflict", &["changes[0]: model \"digits\" is used by acme/digits"]);
    let made = post_to(&server, "releases?cascade=true", &new).ok();
    let gone: Vec<_> = made["differences"].as_array().unwrap().iter().collect();
    assert!(gone.iter().any(|one| one["kind"] == "pipeline" && one["after"].is_null()), "{made}");
    server.admin.get(&path("tenants/acme/pipelines/digits")).refused(404, "not_found", &[]);
    assert!(!read(&server, "tenants/acme/plugins/digits")["digest"].is_null());
}

#[test]
fn the_history_says_who_made_which_change_and_shows_no_key() {
    let server = start();
    let headers = [("gristmill-message", "für die Kunden")];
    let key = json!({ "key": NEW_KEY }).to_string();
    let put = path("tenants/acme/keys/ci");
    server.admin.send("PUT", &put, &headers, Some(key.as_bytes())).ok();
    let last = server.release();
    let release = read(&server, &format!("releases/{last}"));
    assert_eq!(release["message"], "für die Kunden");
    assert_eq!(release["changes"], json!([{ "kind": "put_key", "tenant": "acme", "key": "ci" }]));
    let first = read(&server, "releases/1");
    let document = &first["changes"][0]["document"];
    assert_eq!(document["api_keys"], json!([{ "name": "key-1" }]), "{first}");

    let page = read(&server, "releases?limit=2");
    let numbers = |page: &Value| -> Vec<u64> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["number"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((numbers(&page), &page["next"]), (vec![last, last - 1], &json!(last - 1)));
    assert_eq!(page["items"][0]["changes"], json!(["put key acme/ci"]));
    assert_eq!(
        (&page["items"][0]["by"], &page["items"][0]["changes_total"]),
        (&json!("admin"), &json!(1))
    );
    let rest = read(&server, &format!("releases?before={}", last - 1));
    assert_eq!(numbers(&rest), (1..last - 1).rev().collect::<Vec<_>>());
    assert!(rest["next"].is_null());
    let digests = [KEY, NEW_KEY].map(|key| digest(key.as_bytes()));
    for number in 1..=last {
        let text = read(&server, &format!("releases/{number}")).to_string();
        for secret in [KEY, NEW_KEY, &digests[0][7..], &digests[1][7..]] {
            assert!(!text.contains(secret), "{text}");
        }
    }
    for (below, status, code, named) in [
        ("releases/0", 404, "not_found", "no release \"0\""),
        ("releases/99", 404, "not_found", "no release \"99\""),
        ("releases/x", 400, "invalid_request", "release is \"x\""),
        ("releases?before=x", 400, "invalid_request", "before is \"x\""),
        ("releases?limit=101", 400, "invalid_request", "must be 1 to 100"),
    ] {
        server.admin.get(&path(below)).refused(status, code, &[named]);
    }
    let long = "x".repeat(1001);
    let headers = [("gristmill-message", long.as_str())];
    let answer = server.admin.send("PUT", &put, &headers, Some(key.as_bytes()));
    answer.refused(400, "invalid_request", &["Gristmill-Message has 1001 characters"]);
}

#[test]
fn what_was_changed_is_taken_back_but_no_key_comes_back() {
    let mut server = start();
    let good = server.release();
    server.put_json("tenants/acme/keys/key-1", &json!({ "key": NEW_KEY }));
    server.plugin("acme", "digits", "hostile");
    server.put_json("models/digits/config", &json!({ "max_batch_size": 3 }));
    server.digits("other");
    let bad = server.release();
    let wrong = server.data.with_token(NEW_KEY).post("/v1/acme/infer", &files::digit(4));
    assert_ne!(serde_json::from_slice::<Value>(&wrong.body).unwrap_or_default()["label"], 4);

    let back = json!({ "to": good, "tenant": "acme", "message": "the plugin is wrong" });
    let planned = post_to(&server, "rollback?dry_run=true", &back).ok();
    assert_eq!((server.release(), &planned["release"]), (bad, &json!(bad + 1)));
    let made = post_to(&server, "rollback", &back).ok();
    assert_eq!(made["differences"], planned["differences"]);
    let [one] = &made["differences"].as_array().unwrap()[..] else { panic!("{made}") };
    assert_eq!((&one["kind"], &one["plugin"]), (&json!("plugin"), &json!("digits")));
    assert_eq!(label(&server, Some(NEW_KEY), "acme"), 4, "the new key stays");
    let old = server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(4));
    old.refused(401, "unauthenticated", &[]);
    assert_eq!(read(&server, "models/digits/config")["max_batch_size"], 3);
    assert_eq!(label(&server, None, "other"), 4);

    let model = json!({ "to": good, "model": "digits", "expected_release": bad + 1 });
    post_to(&server, "rollback", &model).ok();
    assert_eq!(read(&server, "models/digits/config")["max_batch_size"], "auto");
    let again = post_to(&server, "rollback", &json!({ "to": good, "model": "digits" })).ok();
    assert_eq!((&again["release"], &again["differences"]), (&json!(bad + 2), &json!([])));

    // All of it: the other tenant did not exist.
    let all = post_to(&server, "rollback", &json!({ "to": good })).ok();
    assert_eq!(all["release"], bad + 3);
    server.data.post("/v1/other/infer", &files::digit(4)).refused(401, "unauthenticated", &[]);
    // And forth again, with a restart in between.
    server = server.kill().start();
    post_to(&server, "rollback", &json!({ "to": bad, "tenant": "other" })).ok();
    assert_eq!(label(&server, None, "other"), 4);

    for (body, status, code, named) in [
        (json!({}), 422, "unprocessable", "to is missing"),
        (json!({ "to": 0 }), 422, "unprocessable", "to is 0"),
        (json!({ "to": "1" }), 422, "unprocessable", "to is \"1\": must be a whole number"),
        (json!({ "to": 999 }), 404, "not_found", "no release \"999\""),
        (json!({ "to": 1, "tenant": "other" }), 404, "not_found", "release 1 has no tenant"),
        (json!({ "to": 1, "model": "x" }), 404, "not_found", "release 1 has no model \"x\""),
        (json!({ "to": 1, "model": "x", "tenant": "y" }), 422, "unprocessable", "beside tenant"),
        (json!({ "to": 1, "expected_release": 2 }), 412, "precondition_failed", "serves"),
    ] {
        post_to(&server, "rollback", &body).refused(status, code, &[named]);
    }
}

#[test]
fn a_model_changes_together_with_its_users_and_goes_back_with_them() {
    let server = start();
    let good = server.release();
    let ranker = upload(&server, &files::model("ranker"));
    let [pre, post] =
        ["ranker-pre", "ranker-post"].map(|name| upload(&server, &files::plugin(name)));
    let put = |name: &str, digest: &str| json!({ "kind": "put_plugin", "tenant": "acme", "plugin": name, "digest": digest });
    let model = json!({ "kind": "put_model", "model": "digits", "digest": ranker });
    // Alone it does not fit its user.
    let alone = post_to(&server, "releases", &json!({ "changes": [model] }));
    alone.refused(409, "conflict", &["model \"digits\" would no longer fit", "acme/digits"]);
    let pipeline = json!({ "pre": "pre", "model": "digits", "post": "post" });
    let pipeline = json!({ "kind": "put_pipeline", "tenant": "acme", "pipeline": "digits",
        "document": pipeline });
    let changes = json!([model, put("pre", &pre), put("post", &post), pipeline]);
    post_to(&server, "releases", &json!({ "changes": changes })).ok();
    let digit = server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(4));
    assert_ne!(digit.status, 200, "{}", digit.text());
    post_to(&server, "rollback", &json!({ "to": good })).ok();
    assert_eq!(label(&server, Some(KEY), "acme"), 4);
}

#[test]
fn the_new_file_of_a_model_that_is_unloaded_is_tried_too() {
    let server = start();
    let wrong = upload(&server, b"not a model");
    let put = json!({ "kind": "put_model", "model": "digits", "digest": wrong });
    let unload = json!({ "kind": "unload_model", "model": "digits" });
    let before = server.release();
    let both = post_to(&server, "releases", &json!({ "changes": [put, unload] }));
    both.refused(422, "invalid_model", &["model \"digits\""]);
    assert_eq!(server.release(), before);
    server.put("models/spare", &files::model("digits"));
    let [put, unload] = [put, unload].map(|mut change| {
        change["model"] = "spare".into();
        change
    });
    post_to(&server, "releases", &json!({ "changes": [unload] })).ok();
    for path in ["releases", "releases?dry_run=true"] {
        let refused = post_to(&server, path, &json!({ "changes": [put] }));
        refused.refused(422, "invalid_model", &["model \"spare\""]);
    }
}

#[test]
fn a_tenant_that_comes_back_has_the_keys_that_it_had_last() {
    let server = start();
    let good = server.release();
    server.put_json("tenants/acme/keys/key-1", &json!({ "key": NEW_KEY }));
    server.admin.delete(&path("tenants/acme?cascade=true")).ok();
    post_to(&server, "rollback", &json!({ "to": good, "tenant": "acme" })).ok();
    assert_eq!(label(&server, Some(NEW_KEY), "acme"), 4);
    let replaced = server.data.with_token(KEY).post("/v1/acme/infer", &files::digit(4));
    replaced.refused(401, "unauthenticated", &[]);
}

#[test]
fn no_fault_of_a_change_repeats_a_key() {
    let server = start();
    let secret = "S3cret-key-of-acme";
    for change in [
        json!({ "kind": "put_key", "tenant": "acme", "name": "ci", "key": secret }),
        json!({ "kind": "put_key", "tenant": "acme", "key": "ci", "document": secret }),
        json!({ "kind": "put_key", "tenant": "acme", "key": "ci", "document": { "key": [secret] } }),
        json!(secret),
    ] {
        let refused = post_to(&server, "releases", &json!({ "changes": [change] }));
        let error = refused.refused(422, "unprocessable", &["changes[0]"]);
        assert!(!error.contains("S3cret"), "{error}");
    }
}
