//! Changes that the admin plane refuses because of plugins, models and settings of a whole server,
//! each with a code and with all of its faults. `bad_documents` has those that need none of these.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_plain;

/// Try the change, and see that nothing changed.
#[track_caller]
fn change(server: &Server, path: &str, body: &Value) -> TestAnswer {
    let before = server.release();
    let answer = server.admin.put_json(&format!("/admin/v1/{path}"), body);
    assert_eq!(server.release(), before, "{path}: {}", answer.text());
    answer
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
fn an_upload_over_the_limit() {
    let server = Setup::new().flag("--upload-bytes-max", "2048").start();
    server.open_tenant("acme");
    for path in ["tenants/acme/plugins/digits", "models/digits"] {
        let answer = server.admin.put(&format!("/admin/v1/{path}"), &[0; 2049]);
        answer.refused(413, "body_too_large", &["2048"]);
    }
    assert_eq!(server.release(), 1);
}
