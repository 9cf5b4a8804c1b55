//! Changes that the admin plane refuses, each with a code and with all of its faults.

use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// Try the change, and see that nothing changed.
#[track_caller]
fn change(server: &Server, path: &str, body: &Value) -> Answer {
    let before = server.release();
    let answer = server.admin.put_json(&format!("/admin/v1/{path}"), body);
    assert_eq!(server.release(), before, "{path}: {}", answer.text());
    answer
}

#[test]
fn without_the_admin_token() {
    let server = Server::start();
    for path in ["/admin/v1/status", "/admin/v1/nothing"] {
        let answer = server.admin.without_token().get(path);
        answer.refused(401, "unauthenticated", &["an admin token is needed"]);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let wrong = server.admin.with_token("not-the-admin-token");
    wrong.get("/admin/v1/status").refused(403, "forbidden", &["not an admin token"]);
    let answer = wrong.put_json("/admin/v1/tenants/acme", &json!({ "open": true }));
    answer.refused(403, "forbidden", &["not an admin token"]);
    assert_eq!(server.release(), 0);
}

#[test]
fn a_tenants_key_opens_no_admin_plane() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let admin = server.admin.with_token("the-key-of-acme-1");
    admin.get("/admin/v1/status").refused(403, "forbidden", &["not an admin token"]);
}

#[test]
fn an_unknown_path_or_method() {
    let server = Server::start();
    server.admin.get("/admin/v1/nothing").refused(404, "not_found", &["nothing is served"]);
    server.admin.get("/v1/acme").refused(404, "not_found", &["nothing is served"]);
    let answer = server.admin.post("/admin/v1/status", b"");
    answer.refused(405, "method_not_allowed", &["not allowed"]);
    assert!(answer.header("allow").contains("GET"), "{:?}", answer.headers);
}

#[test]
fn names_that_are_none() {
    let server = Server::start();
    server.open_tenant("acme");
    let spec = json!({ "pre": "a", "model": "b", "post": "c" });
    for (path, body, named) in [
        ("tenants/Acme", json!({ "open": true }), "tenant: \"Acme\" is not a valid name"),
        (
            "tenants/..%2f..%2fetc",
            json!({ "open": true }),
            "tenant: \"../../etc\" is not a valid name",
        ),
        ("tenants/acme/pipelines/a%20b", spec, "pipeline: \"a b\" is not a valid name"),
        ("models/-digits/config", json!({}), "model: \"-digits\" is not a valid name"),
        ("tenants/acme/plugins/_x", json!({}), "plugin: \"_x\" is not a valid name"),
        ("models/x!", json!({}), "model: \"x!\" is not a valid name"),
    ] {
        change(&server, path, &body).refused(400, "invalid_request", &[named]);
    }
}

#[test]
fn a_name_that_is_no_text() {
    let server = Server::start();
    let answer = change(&server, "tenants/%ff", &json!({ "open": true }));
    answer.refused(400, "invalid_request", &[]);
}

#[test]
fn documents_that_do_not_fit() {
    let server = Server::start();
    let answer = change(&server, "tenants/acme", &json!({ "open": "yes", "kees": [] }));
    let named = [
        "tenant \"acme\": ",
        "open is \"yes\": must be true or false",
        "unknown key \"kees\"; known are open, api_keys, default_pipeline, weight, batch_with",
    ];
    assert_plain(&answer.refused(422, "unprocessable", &named));

    server.open_tenant("acme");
    let limits = json!({ "cpu_ms": 1, "memory": 5 });
    let spec = json!({ "pre": "digits", "settings": [], "limits": limits });
    let answer = change(&server, "tenants/acme/pipelines/main", &spec);
    let named = [
        "tenant \"acme\", pipeline \"main\": ",
        "model is missing",
        "post is missing",
        "settings is a list: must be a JSON object",
        "limits: unknown key \"memory\"",
        "limits.cpu_ms is 1: must be 5 to 60000",
        "pre: the tenant has no plugin \"digits\"",
    ];
    assert_plain(&answer.refused(422, "unprocessable", &named));
    let answer = change(&server, "models/digits/config", &json!({ "providers": ["gpu"] }));
    let named = ["providers[0] is \"gpu\": must be one of cuda, cpu, tract"];
    assert_plain(&answer.refused(422, "unprocessable", &named));
}

/// No texts of the libraries that read documents.
#[track_caller]
fn assert_plain(detail: &str) {
    for word in ["serde", "deserialize", "struct", "expected", "`", "invalid type"] {
        assert!(!detail.contains(word), "{word:?} is in: {detail}");
    }
}

#[test]
fn json_needs_no_content_type_but_must_be_json() {
    let server = Server::start();
    for (body, status, code, named) in [
        ("{\"open\":", 400, "invalid_request", "it ends too early at line 1, column 8"),
        ("{'open': true}", 400, "invalid_request", "it has an error at line 1, column 2"),
        ("", 400, "invalid_request", "the body is empty"),
        ("[]", 422, "unprocessable", "the body is a list: a JSON object is needed"),
    ] {
        let answer = server.admin.put("/admin/v1/tenants/acme", body.as_bytes());
        assert_plain(&answer.refused(status, code, &[named]));
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let open = Some(b"{\"open\":true}".as_slice());
    for headers in [&[][..], &form] {
        server.admin.send("PUT", "/admin/v1/tenants/acme", headers, open).ok();
    }
    assert_eq!(server.release(), 1);
}

#[test]
fn a_tenant_that_is_both_open_and_keyed_or_neither() {
    let server = Server::start();
    let both = json!({ "open": true, "api_keys": ["the-key-of-acme-1"] });
    for body in [both, json!({}), json!({ "open": false, "api_keys": [] })] {
        let answer = change(&server, "tenants/acme", &body);
        answer.refused(422, "unprocessable", &["either open", "api_keys"]);
    }
}

#[test]
fn a_key_that_could_never_be_used() {
    let server = Server::start();
    server.keyed_tenant("other", "the-key-of-other-1");
    let keys = [
        "the-key-of-acme-1",
        "a-blank-at-the-end ",
        "not-ascii-\u{e4}-1234567",
        "a-bell-\u{7}-12345678",
    ];
    let answer = change(&server, "tenants/acme", &json!({ "api_keys": keys, "weight": 0 }));
    let named = [
        "api_keys[1] cannot be sent in a header",
        "api_keys[2] cannot be sent in a header",
        "api_keys[3] cannot be sent in a header",
        "weight is 0",
    ];
    let detail = answer.refused(422, "unprocessable", &named);
    assert!(!detail.contains("api_keys[0]") && !detail.contains("ascii"), "{detail}");
    let keys = ["the-key-of-acme-1", "the-key-of-other-1", crate::support::setup::ADMIN_TOKEN];
    let answer = change(&server, "tenants/acme", &json!({ "api_keys": keys }));
    let named = ["api_keys[1] is in use elsewhere", "api_keys[2] is in use elsewhere"];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_default_pipeline_that_is_not_there() {
    let server = Server::start();
    let named = |name: &str| json!({ "open": true, "default_pipeline": name });
    let answer = change(&server, "tenants/acme", &named("digits"));
    let none = "the tenant has no pipeline \"digits\"; it has none yet: put the pipeline first";
    answer.refused(422, "unprocessable", &[none]);
    server.digits("acme");
    let answer = change(&server, "tenants/acme", &named("nope"));
    let other = "default_pipeline: the tenant has no pipeline \"nope\"; it has digits";
    answer.refused(422, "unprocessable", &[other]);
    server.put_json("tenants/acme", &named("digits"));
}

#[test]
fn settings_that_are_too_large() {
    let server = Server::start();
    server.digits("acme");
    let mut spec = processor("digits", json!({}));
    spec["settings"] = json!({ "labels": "x".repeat(65_523) });
    server.pipeline("acme", "most", &spec);
    spec["settings"] = json!({ "labels": "x".repeat(65_524) });
    let answer = change(&server, "tenants/acme/pipelines/more", &spec);
    let named = ["settings take 65537 bytes as JSON: the limit is 65536"];
    answer.refused(422, "unprocessable", &named);
    spec["settings"] = json!({ "labels": "x".repeat(1 << 20) });
    let answer = change(&server, "tenants/acme/pipelines/more", &spec);
    answer.refused(413, "body_too_large", &["over the limit of JSON documents, 1048576 bytes"]);
}

#[test]
fn memory_that_a_plugin_does_not_even_begin_with() {
    let server = Server::start();
    server.digits("acme");
    let limits = |bytes: usize| processor("large", json!({ "memory_bytes": bytes }));
    let large = files::plugin_that_begins_with("digits", 32);
    server.put("tenants/acme/plugins/large", &large);
    let answer = change(&server, "tenants/acme/pipelines/main", &limits(1 << 20));
    let named = [
        "limits.memory_bytes is 1048576: pre, plugin \"large\", begins with 2097152",
        "limits.memory_bytes is 1048576: post, plugin \"large\", begins with 2097152",
    ];
    server.pipeline("acme", "main", &limits(4 << 20));
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_key_that_can_be_guessed() {
    let server = Server::start();
    let body = json!({ "api_keys": ["the-key-of-acme-1", "short"] });
    let answer = change(&server, "tenants/acme", &body);
    answer.refused(422, "unprocessable", &["api_keys[1] is shorter than 16 characters"]);
}

#[test]
fn a_pipeline_of_things_that_are_not_there() {
    let server = Server::start();
    server.open_tenant("acme");
    let spec = json!({
        "pre": "front", "model": "middle", "post": "back",
        "limits": { "timeout_ms": 0 },
    });
    let named = [
        "tenant \"acme\", pipeline \"main\"",
        "pre: the tenant has no plugin \"front\"",
        "model: no model \"middle\"",
        "post: the tenant has no plugin \"back\"",
        "limits.timeout_ms is 0",
    ];
    change(&server, "tenants/acme/pipelines/main", &spec).refused(422, "unprocessable", &named);
}

#[test]
fn a_pipeline_whose_document_and_parts_are_wrong() {
    let server = Server::start();
    server.ranker("acme");
    let spec = json!({
        "pre": "ranker-post", "model": "ranker", "post": "ranker-post",
        "limits": { "cpu_ms": 1 }, "priority": 9,
    });
    let named = [
        "limits.cpu_ms is 1",
        "pre: plugin \"ranker-post\" is a postprocessor and exports no `preprocess`",
        "priority is 9: the model has levels 1 to 1",
    ];
    change(&server, "tenants/acme/pipelines/main", &spec).refused(422, "unprocessable", &named);
}

#[test]
fn a_plugin_of_another_tenant() {
    let server = Server::start();
    server.digits("acme");
    server.open_tenant("other");
    let answer = change(&server, "tenants/other/pipelines/main", &processor("digits", json!({})));
    answer.refused(422, "unprocessable", &["pre: the tenant has no plugin \"digits\""]);
}

#[test]
fn plugins_in_each_others_places() {
    let server = Server::start();
    server.ranker("acme");
    let spec = json!({ "pre": "ranker-post", "model": "ranker", "post": "ranker-pre" });
    let named = [
        "pre: plugin \"ranker-post\" is a postprocessor and exports no `preprocess`",
        "post: plugin \"ranker-pre\" is a preprocessor and exports no `postprocess`",
    ];
    change(&server, "tenants/acme/pipelines/main", &spec).refused(422, "unprocessable", &named);
}

#[test]
fn limits_out_of_range() {
    let server = Server::start();
    server.digits("acme");
    let limits = json!({
        "timeout_ms": 600_001, "body_bytes": 0, "cpu_ms": 60_001,
        "memory_bytes": (64 << 20) + 1, "response_bytes": 1_u64 << 40, "log_bytes": 1 << 30,
    });
    let answer = change(&server, "tenants/acme/pipelines/main", &processor("digits", limits));
    let named = [
        "limits.timeout_ms is 600001: must be 1 to 600000",
        "limits.body_bytes is 0: must be 1 to",
        "limits.cpu_ms is 60001: must be 5 to 60000",
        "limits.memory_bytes is 67108865: must be 1048576 to 67108864",
        "limits.response_bytes is 1099511627776: must be 1 to",
        "limits.log_bytes is 1073741824: must be 0 to 16777216",
    ];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_model_configuration_with_several_faults() {
    let server = Server::start();
    server.model("digits");
    let body = json!({
        "max_batch_size": 70_000, "instances": 0, "threads": 257, "nope": 1,
        "preferred_batch_sizes": [8, 0], "max_queue_delay_us": 60_000_001, "priority_levels": 2,
        "default_priority_level": 3, "priority_ageing_ms": 0,
        "priority_queue_policies": { "3": { "default_timeout_us": 3_600_000_001_u64 } },
        "max_queue_rows": 1, "max_tenant_queue_rows": 2, "providers": ["cpu", "cpu"],
        "provider_options": { "tract": {}, "cuda": { "device_id": "0" } },
        "default_queue_policy": { "max_queue_size": -1 },
    });
    let named = [
        "preferred_batch_sizes is 0: must be 1 to 65536",
        "max_queue_delay_us is 60000001: must be 0 to 60000000",
        "default_priority_level is 3: must be 0 to 2",
        "priority_ageing_ms is 0: must be 1 to 3600000",
        "priority_queue_policies.3: the levels are 1 to 2",
        "priority_queue_policies.3.default_timeout_us is 3600000001: must be 0 to 3600000000",
        "max_tenant_queue_rows is 2: must be 1 to 1",
        "providers[1] is \"cpu\", which is named twice",
        "provider_options has \"tract\", which takes no options",
        "provider_options has \"cuda\", which is not among providers",
        "max_batch_size is 70000: must be 0 to 65536",
        "instances is 0: must be 1 to 64",
        "threads is 257: must be 1 to 256",
        "default_queue_policy.max_queue_size is -1: must be a whole number from 0 on",
        "unknown key \"nope\"; known are max_batch_size",
    ];
    assert_plain(&change(&server, "models/digits/config", &body).refused(
        422,
        "unprocessable",
        &named,
    ));
    let body = json!({ "max_batch_size": 256, "max_queue_rows": 1 });
    let answer = change(&server, "models/digits/config", &body);
    let named = ["max_queue_rows is 1: must be at least max_batch_size, 256"];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn no_fault_follows_from_another() {
    let server = Server::start();
    server.model("digits");
    let body = json!({ "max_batch_size": 70_000, "preferred_batch_sizes": [512] });
    let detail = change(&server, "models/digits/config", &body).refused(422, "unprocessable", &[]);
    assert_eq!(detail, "max_batch_size is 70000: must be 0 to 65536");
}

#[test]
fn weights_and_priorities_out_of_range() {
    let server = Server::start();
    let answer = change(&server, "tenants/acme", &json!({ "open": true, "weight": 0 }));
    answer.refused(422, "unprocessable", &["weight is 0: must be 1 to 1000"]);
    server.digits("acme");
    let mut pipeline = processor("digits", json!({}));
    pipeline["priority"] = json!(2);
    let answer = change(&server, "tenants/acme/pipelines/urgent", &pipeline);
    answer.refused(422, "unprocessable", &["priority is 2: the model has levels 1 to 1"]);
    server.put_json("models/digits/config", &json!({ "priority_levels": 2 }));
    server.put_json("tenants/acme/pipelines/urgent", &pipeline);
    let digit = files::digit(4);
    assert_eq!(server.data.post("/v1/acme/infer/urgent", &digit).ok()["label"], 4);
}

#[test]
fn things_that_are_not_there() {
    let server = Server::start();
    server.open_tenant("acme");
    for (path, named) in [
        ("tenants/nobody", "no tenant \"nobody\""),
        ("tenants/nobody/plugins/digits", "no tenant \"nobody\""),
        ("tenants/acme/plugins/digits", "no plugin \"digits\""),
        ("tenants/acme/pipelines/main", "no pipeline \"main\""),
        ("models/digits", "no model \"digits\""),
    ] {
        server.admin.delete(&format!("/admin/v1/{path}")).refused(404, "not_found", &[named]);
    }
    let answer = change(&server, "models/digits/config", &json!({}));
    answer.refused(404, "not_found", &["no model \"digits\""]);
    assert_eq!(server.release(), 1);
}

#[test]
fn an_upload_over_the_limit() {
    let server = Setup::new().flag("--upload-bytes-max", "2048").start();
    server.open_tenant("acme");
    for path in ["tenants/acme/plugins/digits", "models/digits"] {
        let answer = server.admin.put(&format!("/admin/v1/{path}"), &[0; 2049]);
        answer.refused(413, "body_too_large", &["2048"]);
    }
    assert_eq!(server.release(), 1);
}
