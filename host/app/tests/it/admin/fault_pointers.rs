//! The faults of a document, each with the JSON pointer of its value.

use serde_json::{Value, json};

use crate::support::client::{Client, TestAnswer};
use crate::support::planes::Planes;
use crate::support::server::Server;

/// The pointers of a refusal with 422, in order. Each fault is also in the detail.
#[track_caller]
fn pointers(answer: &TestAnswer) -> Vec<String> {
    let detail = answer.refused(422, "unprocessable", &[]);
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    let faults = document["errors"].as_array().unwrap();
    let pointer = |fault: &Value| {
        let text = fault["detail"].as_str().unwrap();
        assert!(detail.contains(text), "{text} is not in {detail}");
        fault["pointer"].as_str().unwrap().to_owned()
    };
    faults.iter().map(pointer).collect()
}

fn put(admin: &Client, path: &str, document: &Value) -> TestAnswer {
    admin.put_json(&format!("/admin/v1/{path}"), document)
}

#[test]
fn of_a_tenant() {
    let planes = Planes::open();
    let document = json!({
        "api_keys": ["short", { "name": "A", "key": "x" }], "weight": 0, "models": ["a", 7],
        "quota": { "burst": "x", "bursts": 1 }, "a/b": 1, "default_pipeline": "none",
        "cors": { "origins": ["https://a.example", "https://A.example"], "headers": ["*/"] },
    });
    let mut named = pointers(&put(&planes.admin, "tenants/acme", &document));
    named.sort();
    let expected = [
        "/api_keys/1",
        "/a~1b",
        "/cors/headers/0",
        "/cors/origins/1",
        "/default_pipeline",
        "/models/1",
        "/quota/burst",
        "/quota/bursts",
        "/weight",
    ];
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(named, expected);
}

#[test]
fn of_a_pipeline_also_of_what_it_names() {
    let planes = Planes::open();
    planes.open_tenant("acme");
    let document = json!({
        "pre": "none", "model": "none", "post": "none", "limits": { "cpu_ms": 1 },
        "samples": [{ "name": "s", "expect": { "at": { "a.b/c": 1 }, "status": 1 } }],
    });
    let named = pointers(&put(&planes.admin, "tenants/acme/pipelines/p", &document));
    let expected = [
        "/samples/0/expect/status",
        "/samples/0/expect/at/a.b~1c",
        "/limits/cpu_ms",
        "/pre",
        "/post",
        "/model",
    ];
    assert_eq!(named, expected);
    // A document that is well formed names them in the same way.
    let document = json!({ "pre": "none", "model": "none", "post": "none" });
    let named = pointers(&put(&planes.admin, "tenants/acme/pipelines/p", &document));
    assert_eq!(named, ["/pre", "/post", "/model"]);
}

#[test]
fn of_a_models_configuration_and_of_a_token() {
    let server = Server::start();
    server.model("digits");
    let document = json!({ "threads": 0, "priority_queue_policies": { "a.b": {}, "1": 7 } });
    let named = pointers(&put(&server.admin, "models/digits/config", &document));
    assert_eq!(named, ["/priority_queue_policies/1", "/priority_queue_policies/a.b", "/threads"]);
    let document = json!({ "role": "deploy", "tenants": ["none"] });
    assert_eq!(pointers(&put(&server.admin, "tokens/ci", &document)), ["/tenants"]);
}

#[test]
fn of_a_release_of_many_changes() {
    let planes = Planes::open();
    let post = |changes: Value| {
        let document = json!({ "changes": changes }).to_string();
        planes.admin.post("/admin/v1/releases", document.as_bytes())
    };
    let named = pointers(&post(json!([
        { "kind": "put_tenant", "tenant": "acme", "document": { "open": 1, "weight": 0 } },
        { "kind": "put_tenant", "tenant": "Acme", "document": { "open": true } },
        { "kind": "put_model_config", "model": "m", "document": { "thread": 1 } },
        { "kind": "nothing" },
    ])));
    let expected = [
        "/changes/0/document/open",
        "/changes/0/document/weight",
        "/changes/1/tenant",
        "/changes/2/document/thread",
        "/changes/3/kind",
    ];
    assert_eq!(named, expected);
    // Faults that only the state shows.
    let named = pointers(&post(json!([
        { "kind": "put_tenant", "tenant": "acme", "document": { "open": true } },
        { "kind": "put_tenant", "tenant": "b", "document": { "open": true, "models": ["none"] } },
    ])));
    assert_eq!(named, ["/changes/1/document/models"]);
    let digest = format!("sha256:{}", "0".repeat(64));
    let named = pointers(&post(json!([
        { "kind": "put_model", "model": "m", "digest": digest },
    ])));
    assert_eq!(named, ["/changes/0"]);
    assert_eq!(planes.release(), 0);
}
