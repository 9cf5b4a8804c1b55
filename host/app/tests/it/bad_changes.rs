//! Changes that the admin plane refuses, each with a code and with everything that is wrong.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::deploy::processor;
use crate::files;
use crate::server::{Server, Setup};

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
        answer.refused(401, "unauthenticated", &["the admin token is needed"]);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let wrong = server.admin.with_token("not-the-admin-token");
    wrong.get("/admin/v1/status").refused(403, "forbidden", &["not the admin token"]);
    let answer = wrong.put_json("/admin/v1/tenants/acme", &json!({ "open": true }));
    answer.refused(403, "forbidden", &["not the admin token"]);
    assert_eq!(server.release(), 0);
}

#[test]
fn a_tenants_key_opens_no_admin_plane() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let admin = server.admin.with_token("the-key-of-acme-1");
    admin.get("/admin/v1/status").refused(403, "forbidden", &["not the admin token"]);
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
        ("tenants/Acme", json!({ "open": true }), "tenant: \"Acme\" is no valid name"),
        (
            "tenants/..%2f..%2fetc",
            json!({ "open": true }),
            "tenant: \"../../etc\" is no valid name",
        ),
        ("tenants/acme/pipelines/a%20b", spec, "pipeline: \"a b\" is no valid name"),
        ("models/-digits/config", json!({}), "model: \"-digits\" is no valid name"),
        ("tenants/acme/plugins/_x", json!({}), "plugin: \"_x\" is no valid name"),
        ("models/x!", json!({}), "model: \"x!\" is no valid name"),
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
fn json_that_does_not_fit() {
    let server = Server::start();
    let answer = change(&server, "tenants/acme", &json!({ "open": true, "kees": [] }));
    answer.refused(422, "unprocessable", &["unknown field `kees`"]);
    let answer = change(&server, "tenants/acme", &json!({ "open": "yes" }));
    answer.refused(422, "unprocessable", &["open", "expected a boolean"]);

    server.open_tenant("acme");
    let answer = change(&server, "tenants/acme/pipelines/main", &json!({ "pre": "digits" }));
    answer.refused(422, "unprocessable", &["missing field `model`"]);
    let answer = change(&server, "models/digits/config", &json!({ "providers": ["gpu"] }));
    answer.refused(422, "unprocessable", &["providers", "gpu"]);
}

#[test]
fn what_is_not_json() {
    let server = Server::start();
    let json = [("content-type", "application/json")];
    let answer = server.admin.send("PUT", "/admin/v1/tenants/acme", &json, Some(b"{\"open\":"));
    answer.refused(400, "invalid_request", &["line 1"]);
    let answer = server.admin.put("/admin/v1/tenants/acme", b"{\"open\":true}");
    answer.refused(415, "unsupported_media_type", &["application/json"]);
    assert_eq!(server.release(), 0);
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
        "memory_bytes": (64 << 20) + 1, "response_bytes": 1_u64 << 40, "log_bytes": 0,
    });
    let answer = change(&server, "tenants/acme/pipelines/main", &processor("digits", limits));
    let named = [
        "limits.timeout_ms is 600001: must be 1 to 600000",
        "limits.body_bytes is 0: must be 1 to",
        "limits.cpu_ms is 60001: must be 1 to 60000",
        "limits.memory_bytes is 67108865: must be 1 to 67108864",
        "limits.response_bytes is 1099511627776: must be 1 to",
        "limits.log_bytes is 0: must be 1 to",
    ];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_model_configuration_with_several_faults() {
    let server = Server::start();
    server.model("digits");
    let body = json!({
        "max_batch_size": 70_000, "max_queue_rows": 1, "instances": 0, "threads": 257,
        "preferred_batch_sizes": [8, 0], "max_queue_delay_us": 60_000_001, "priority_levels": 2,
        "default_priority_level": 3, "priority_ageing_ms": 0,
        "priority_queue_policies": { "3": { "default_timeout_us": 3_600_000_001_u64 } },
        "max_tenant_queue_rows": 2, "providers": ["cpu", "cpu"],
        "provider_options": { "tract": {}, "cuda": { "device_id": "0" } },
    });
    let named = [
        "preferred_batch_sizes is 0: must be 1 to 70000",
        "max_queue_delay_us is 60000001: must be 0 to 60000000",
        "default_priority_level is 3: must be 0 to 2",
        "priority_ageing_ms is 0: must be 1 to 3600000",
        "priority_queue_policies is 3: must be 1 to 2",
        "default_timeout_us is 3600000001: must be 0 to 3600000000",
        "max_tenant_queue_rows is 2: must be 1 to 1",
        "providers[1] is \"cpu\", which is named before",
        "provider_options has \"tract\", which takes none",
        "provider_options has \"cuda\", which is not among providers",
        "max_batch_size is 70000: must be 1 to 65536",
        "max_queue_rows is 1: must be at least max_batch_size, 70000",
        "instances is 0: must be 1 to 64",
        "threads is 257: must be 1 to 256",
    ];
    change(&server, "models/digits/config", &body).refused(422, "unprocessable", &named);
    let body = json!({
        "nope": 1, "typo": 2, "instances": 0, "threads": "x", "providers": ["gpu"],
        "default_queue_policy": { "max_queue_size": -1 },
    });
    let named = [
        "nope: unknown field",
        "typo: unknown field",
        "instances is 0",
        "threads: invalid type",
        "providers: unknown variant `gpu`",
        "default_queue_policy: invalid value",
    ];
    change(&server, "models/digits/config", &body).refused(422, "unprocessable", &named);
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
fn what_a_pipeline_needs_cannot_be_deleted() {
    let server = Server::start();
    server.digits("acme");
    let before = server.release();
    for (path, named) in [
        ("tenants/acme/plugins/digits", "the tenant has no plugin \"digits\""),
        ("models/digits", "no model \"digits\""),
    ] {
        let answer = server.admin.delete(&format!("/admin/v1/{path}"));
        answer.refused(422, "unprocessable", &["pipeline \"digits\"", named]);
    }
    assert_eq!(server.release(), before);
    server.assert_reads("acme", 6);

    let in_order = [
        "tenants/acme/pipelines/digits",
        "tenants/acme/plugins/digits",
        "models/digits",
        "tenants/acme",
    ];
    for path in in_order {
        server.admin.delete(&format!("/admin/v1/{path}")).ok();
    }
    let answer = server.data.post("/v1/acme/infer/digits", &files::digit(6));
    answer.refused(404, "tenant_not_found", &["\"acme\""]);
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
