//! The versions of the plugin contract: plugins of older ones run unchanged beside those of 0.3.
//!
//! The plugins of older contracts are files in `plugins/fixtures`, built before there was the next.

use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

#[test]
fn plugins_of_the_old_contract_run_unchanged() {
    let server = Server::start();
    server.open_tenant("old");
    server.model("digits");
    server.put("tenants/old/plugins/digits", &files::old_plugin("0.1.0", "digits"));
    server.pipeline("old", "digits", &processor("digits", json!({})));
    server.assert_reads_digits("old");
}

#[test]
fn plugins_of_both_contracts_serve_one_pipeline() {
    let server = Server::start();
    // Deploys the plugins of 0.3.
    server.ranker("acme");
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-pre", &files::old_plugin("0.1.0", "ranker-pre"));
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-post", &files::old_plugin("0.1.0", "ranker-post"));
    server.assert_ranks("acme");
}

/// The plugin `hostile` of 0.2 compares all that its contract offers.
#[test]
fn a_plugin_of_contract_0_2_has_its_functions_and_its_rounding() {
    let server = Server::start();
    server.hostile("new");
    server.open_tenant("old");
    server.put("tenants/old/plugins/hostile", &files::old_plugin("0.2.0", "hostile"));
    server.pipeline("old", "hostile", &processor("hostile", json!({})));
    let done = |tenant: &str, deed: &str| {
        let answer = server.data.post(&format!("/v1/{tenant}/infer/hostile?do={deed}"), b"");
        (answer.status, answer.text())
    };
    for tenant in ["old", "new"] {
        assert_eq!(done(tenant, "operations"), (200, "harmless".into()), "{tenant}");
        let (status, text) = done(tenant, "context");
        assert_eq!(status, 200, "{text}");
        assert!(text.contains(&format!("pre tenant={tenant} pipeline=hostile")), "{text}");
    }
    // As torchvision has them since 0.3, to the nearest and to the left before.
    assert_eq!(done("new", "rounding").1, "298x224 [0, 0, 1, 2, 2, 2, 3, 4]");
    assert_eq!(done("old", "rounding").1, "299x224 [0, 0, 1, 1, 2, 2, 3, 3]");
    let contract = |tenant: &str| {
        server.admin.get(&format!("/admin/v1/tenants/{tenant}/plugins/hostile")).ok()["contract"]
            .clone()
    };
    assert_eq!((contract("old"), contract("new")), (json!("0.2"), json!("0.3")));
}

#[test]
fn both_calls_see_their_circumstances() {
    let server = Server::start();
    server.hostile("acme");
    let spec = json!({
        "pre": "hostile", "model": "digits", "post": "hostile", "settings": { "colour": "red" },
        "limits": { "timeout_ms": 600_000 },
    });
    server.pipeline("acme", "shown", &spec);
    let headers = [("content-type", "Text/Plain; charset=utf-8"), ("x-request-id", "order-66")];
    let path = "/v1/acme/infer/shown?do=context&a=b%20c";
    let answer = server.data.send("POST", path, &headers, Some(b""));
    let shown = "tenant=acme pipeline=shown model=digits id=order-66 \
                 settings={\"colour\":\"red\"} in-time=true";
    let expected = format!("type=text/plain query=do=context&a=b c\npre {shown}\npost {shown}");
    assert_eq!((answer.status, answer.text()), (200, expected));
}

#[test]
fn a_pipeline_over_the_open_inference_protocol_has_a_type_and_a_query() {
    let server = Server::start();
    server.hostile("acme");
    let path = "/v1/acme/v2/models/pipeline:hostile/infer";
    let ask = |parameters: Value| {
        let input = json!({
            "name": "REQUEST", "datatype": "BYTES", "shape": [1], "data": [""],
            "parameters": parameters,
        });
        server.data.post(path, json!({ "inputs": [input] }).to_string().as_bytes())
    };
    let parameters = json!({ "content_type": "image/PNG; a=b", "query": "do=context&c=%26" });
    let answer = ask(parameters).ok();
    let text = answer["outputs"][0]["data"][0].as_str().unwrap();
    assert!(text.starts_with("type=image/png query=do=context&c=&\npre tenant=acme"), "{text}");
    assert!(!text.contains("id= "), "{text}");
    ask(json!({ "query": 5 })).refused_by_protocol(400, &["`5`", "expected a text"]);
    ask(json!({ "query": "q".repeat(2000) })).refused_by_protocol(400, &["the limit is 1024"]);
}
