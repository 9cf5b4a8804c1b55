//! Calls that the admin plane refuses, each with a code and with all of its faults: those for which
//! no plugin and no model is needed, on planes in memory.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::planes::Planes;
use crate::support::setup::ADMIN_TOKEN;
use crate::support::words::assert_plain;

/// Try the change, and see that nothing changed.
#[track_caller]
fn change(planes: &Planes, path: &str, body: &Value) -> TestAnswer {
    let before = planes.release();
    let answer = planes.admin.put_json(&format!("/admin/v1/{path}"), body);
    assert_eq!(planes.release(), before, "{path}: {}", answer.text());
    answer
}

#[test]
fn without_the_admin_token() {
    let planes = Planes::open();
    for path in ["/admin/v1/status", "/admin/v1/nothing"] {
        let answer = planes.admin.without_token().get(path);
        answer.refused(401, "unauthenticated", &["an admin token is needed"]);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let wrong = planes.admin.with_token("not-the-admin-token");
    wrong.get("/admin/v1/status").refused(403, "forbidden", &["not an admin token"]);
    let answer = wrong.put_json("/admin/v1/tenants/acme", &json!({ "open": true }));
    answer.refused(403, "forbidden", &["not an admin token"]);
    assert_eq!(planes.release(), 0);
}

#[test]
fn a_tenants_key_opens_no_admin_plane() {
    let planes = Planes::open();
    planes.keyed_tenant("acme", "the-key-of-acme-1");
    let admin = planes.admin.with_token("the-key-of-acme-1");
    admin.get("/admin/v1/status").refused(403, "forbidden", &["not an admin token"]);
}

#[test]
fn an_unknown_path_or_method() {
    let planes = Planes::open();
    planes.admin.get("/admin/v1/nothing").refused(404, "not_found", &["nothing is served"]);
    planes.admin.get("/v1/acme").refused(404, "not_found", &["nothing is served"]);
    let answer = planes.admin.post("/admin/v1/status", b"");
    answer.refused(405, "method_not_allowed", &["not allowed"]);
    assert!(answer.header("allow").contains("GET"), "{:?}", answer.headers);
}

/// A change that ignored `dry_run` would be made.
#[test]
fn parameters_that_a_call_does_not_have() {
    let planes = Planes::open();
    planes.open_tenant("acme");
    let before = planes.release();
    let tenant = json!({ "open": true, "weight": 3 });
    let key = json!({ "key": "the-key-of-acme-1" });
    for (path, body) in [("tenants/acme", &tenant), ("tenants/acme/keys/ci", &key)] {
        for parameter in ["dry_run=true", "cascade=true", "a"] {
            let path = format!("/admin/v1/{path}?{parameter}&wait=all");
            let answer = planes.admin.put_json(&path, body);
            answer.refused(400, "invalid_request", &["unknown parameter", "this call has none"]);
        }
    }
    assert_eq!(planes.release(), before);
    let answer = planes.admin.get("/admin/v1/status?a=1");
    answer.refused(400, "invalid_request", &["unknown parameter \"a\""]);
}

#[test]
fn names_that_are_none() {
    let planes = Planes::open();
    planes.open_tenant("acme");
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
        change(&planes, path, &body).refused(400, "invalid_request", &[named]);
    }
}

#[test]
fn a_name_that_is_no_text() {
    let planes = Planes::open();
    let answer = change(&planes, "tenants/%ff", &json!({ "open": true }));
    answer.refused(400, "invalid_request", &[]);
}

#[test]
fn documents_that_do_not_fit() {
    let planes = Planes::open();
    let answer = change(&planes, "tenants/acme", &json!({ "open": "yes", "kees": [] }));
    let named = [
        "tenant \"acme\": ",
        "open is \"yes\": must be true or false",
        "unknown key \"kees\"; known are open, api_keys, default_pipeline, weight, batch_with",
    ];
    assert_plain(&answer.refused(422, "unprocessable", &named));

    planes.open_tenant("acme");
    let limits = json!({ "cpu_ms": 1, "memory": 5 });
    let spec = json!({ "pre": "digits", "settings": [], "limits": limits });
    let answer = change(&planes, "tenants/acme/pipelines/main", &spec);
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
    let answer = change(&planes, "models/digits/config", &json!({ "providers": ["gpu"] }));
    let named = ["providers[0] is \"gpu\": must be one of cuda, cpu, tract"];
    assert_plain(&answer.refused(422, "unprocessable", &named));
}

#[test]
fn json_needs_no_content_type_but_must_be_json() {
    let planes = Planes::open();
    for (body, status, code, named) in [
        ("{\"open\":", 400, "invalid_request", "it ends too early at line 1, column 8"),
        ("{'open': true}", 400, "invalid_request", "it has an error at line 1, column 2"),
        ("{\"rate\": NaN}", 400, "invalid_request", "it has NaN at line 1, column 10"),
        ("\u{feff}{}", 400, "invalid_request", "it begins with a byte order mark: send UTF-8"),
        ("", 400, "invalid_request", "the body is empty"),
        ("[]", 422, "unprocessable", "the body is a list: a JSON object is needed"),
    ] {
        let answer = planes.admin.put("/admin/v1/tenants/acme", body.as_bytes());
        assert_plain(&answer.refused(status, code, &[named]));
    }
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let open = Some(b"{\"open\":true}".as_slice());
    for headers in [&[][..], &form] {
        planes.admin.send("PUT", "/admin/v1/tenants/acme", headers, open).ok();
    }
    assert_eq!(planes.release(), 1);
}

#[test]
fn a_tenant_that_is_both_open_and_keyed_or_neither() {
    let planes = Planes::open();
    let both = json!({ "open": true, "api_keys": ["the-key-of-acme-1"] });
    for body in [both, json!({}), json!({ "open": false, "api_keys": [] })] {
        let answer = change(&planes, "tenants/acme", &body);
        answer.refused(422, "unprocessable", &["either open", "api_keys"]);
    }
}

#[test]
fn a_key_that_could_never_be_used() {
    let planes = Planes::open();
    planes.keyed_tenant("other", "the-key-of-other-1");
    let keys = [
        "the-key-of-acme-1",
        "a-blank-at-the-end ",
        "not-ascii-\u{e4}-1234567",
        "a-bell-\u{7}-12345678",
    ];
    let answer = change(&planes, "tenants/acme", &json!({ "api_keys": keys, "weight": 0 }));
    let named = [
        "api_keys[1] cannot be sent in a header",
        "api_keys[2] cannot be sent in a header",
        "api_keys[3] cannot be sent in a header",
        "weight is 0",
    ];
    let detail = answer.refused(422, "unprocessable", &named);
    assert!(!detail.contains("api_keys[0]") && !detail.contains("ascii"), "{detail}");
    let keys = ["the-key-of-acme-1", "the-key-of-other-1", ADMIN_TOKEN];
    let answer = change(&planes, "tenants/acme", &json!({ "api_keys": keys }));
    let named = ["api_keys[1] is in use elsewhere", "api_keys[2] is in use elsewhere"];
    answer.refused(422, "unprocessable", &named);
}

#[test]
fn a_key_that_can_be_guessed() {
    let planes = Planes::open();
    let body = json!({ "api_keys": ["the-key-of-acme-1", "short"] });
    let answer = change(&planes, "tenants/acme", &body);
    answer.refused(422, "unprocessable", &["api_keys[1] is shorter than 16 characters"]);
}

#[test]
fn a_pipeline_of_things_that_are_not_there() {
    let planes = Planes::open();
    planes.open_tenant("acme");
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
    change(&planes, "tenants/acme/pipelines/main", &spec).refused(422, "unprocessable", &named);
}

#[test]
fn things_that_are_not_there() {
    let planes = Planes::open();
    planes.open_tenant("acme");
    for (path, named) in [
        ("tenants/nobody", "no tenant \"nobody\""),
        ("tenants/nobody/plugins/digits", "no tenant \"nobody\""),
        ("tenants/acme/plugins/digits", "no plugin \"digits\""),
        ("tenants/acme/pipelines/main", "no pipeline \"main\""),
        ("models/digits", "no model \"digits\""),
    ] {
        planes.admin.delete(&format!("/admin/v1/{path}")).refused(404, "not_found", &[named]);
    }
    let answer = change(&planes, "models/digits/config", &json!({}));
    answer.refused(404, "not_found", &["no model \"digits\""]);
    assert_eq!(planes.release(), 1);
}
