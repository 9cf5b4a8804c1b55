//! The versions of the plugin contract: plugins of 0.1 run unchanged beside those of 0.2.
//!
//! The plugins of 0.1 are files in `plugins/fixtures/0.1.0`, built before there was 0.2.

use serde_json::{Value, json};

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;

#[test]
fn plugins_of_the_old_contract_run_unchanged() {
    let server = Server::start();
    server.open_tenant("old");
    server.model("digits");
    server.put("tenants/old/plugins/digits", &files::old_plugin("digits"));
    server.pipeline("old", "digits", &processor("digits", json!({})));
    server.assert_reads_digits("old");
}

#[test]
fn plugins_of_both_contracts_serve_one_pipeline() {
    let server = Server::start();
    // Deploys the plugins of 0.2.
    server.ranker("acme");
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-pre", &files::old_plugin("ranker-pre"));
    server.assert_ranks("acme");
    server.put("tenants/acme/plugins/ranker-post", &files::old_plugin("ranker-post"));
    server.assert_ranks("acme");
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
