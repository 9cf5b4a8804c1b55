//! `wasi:nn`: a handler with the bindings that wit-bindgen makes of it runs the models of its
//! pipeline, in the batches of all.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;

const WANTED: (&str, &str) = ("gristmill-receipt", "true");

/// The number of values of a row of `digits`.
const ROW: usize = 28 * 28;

/// A server whose tenant `acme` has the handler in the pipeline `classes`, and whose document has
/// these keys.
fn classifying(tenant: &Value) -> Server {
    let server = Server::start();
    server.model("digits");
    server.put_json("tenants/acme", tenant);
    server.plugin("acme", "classifier", "digits-nn");
    let models = json!({ "digits": "digits" });
    server.pipeline("acme", "classes", &json!({ "handler": "classifier", "models": models }));
    server
}

fn values(rows: usize) -> Vec<f32> {
    (0..rows * ROW).map(|at| (at % 23) as f32 / 23.0).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn numbers(list: &Value) -> Vec<f32> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_f64().unwrap() as f32).collect()
}

fn classified(server: &Server, query: &str, data: &[u8]) -> TestAnswer {
    let path = format!("/v1/acme/infer/classes?{query}");
    server.data.send("POST", &path, &[WANTED], Some(data))
}

#[test]
fn a_run_gives_what_the_model_gives_over_v2() {
    let server = classifying(&json!({ "open": true, "models": ["digits"] }));
    let values = values(2);
    let answer = classified(&server, "", &bytes(&values));
    let found = answer.ok();
    let shape = [2, 1, 28, 28];
    let input = json!({ "name": "input", "shape": shape, "datatype": "FP32", "data": values });
    let body = json!({ "inputs": [input] }).to_string();
    let expected = server.data.post("/v1/acme/v2/models/digits/infer", body.as_bytes()).ok();
    assert_eq!(found["outputs"], json!([["output", "FP32", [2, 10]]]));
    let logits = numbers(&found["logits"]);
    assert_eq!(logits, numbers(&expected["outputs"][0]["data"]));
    for (best, logits) in found["best"].as_array().unwrap().iter().zip(logits.chunks(10)) {
        let place = best[0]["index"].as_u64().unwrap() as usize;
        assert!(logits.iter().all(|logit| *logit <= logits[place]), "{best}: {logits:?}");
    }
    let receipt = answer.header("gristmill-receipt");
    assert!(receipt.split(", ").any(|part| part == "rows=2"), "{receipt}");
    let usage = server.admin.get("/admin/v1/usage").ok();
    let rows = usage["items"].as_array().unwrap().iter();
    let mut rows = rows.filter(|row| row["pipeline"] == "classes");
    assert!(rows.any(|row| row["model"] == "digits" && row["rows"] == 2), "{usage}");
}

#[test]
fn its_runs_share_batches_with_other_tenants() {
    let server = classifying(&json!({ "open": true }));
    server.digits("globex");
    let config = json!({ "max_batch_size": 512, "max_queue_delay_us": 300_000 });
    server.put_json("models/digits/config", &config);
    let row = bytes(&values(1));
    eventually("a batch has rows of both", || {
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let path = "/v1/globex/infer/digits";
                server.data.send("POST", path, &[WANTED], Some(&files::digit(4)))
            });
            let own_answer = classified(&server, "", &row);
            own_answer.ok();
            let other = other.join().unwrap();
            assert_eq!(other.ok()["label"], 4);
            let of_both = |answer: &TestAnswer| {
                let receipt = answer.header("gristmill-receipt");
                receipt.split(", ").any(|part| part == "batch-tenants=2")
            };
            of_both(&own_answer) && of_both(&other)
        })
    });
}

#[test]
fn the_errors_say_what_is_wrong() {
    let server = classifying(&json!({ "open": true }));
    let row = bytes(&values(1));
    let answered = |query: &str, data: &[u8], code: &str, named: &[&str]| {
        let answer = classified(&server, query, data);
        assert_eq!(answer.status, 422, "{query}: {}", answer.text());
        let answered: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answered["code"], format!("ErrorCode::{code}"), "{answered}");
        let data = answered["data"].as_str().unwrap();
        named.iter().for_each(|part| assert!(data.contains(part), "{part}: {data}"));
    };
    let named = ["\"classes\" has no model \"other\" under \"models\", but \"digits\""];
    answered("model=other", &row, "NotFound", &named);
    let needed = ["\"input\"", "[1, 1, 28, 28] of FP32 need 3136 bytes, but the data has 3135"];
    answered("dimensions=1,1,28,28", &row[1..], "InvalidArgument", &needed);
    answered(
        "dimensions=4294967295,4294967295,4294967295",
        &row,
        "InvalidArgument",
        &["overflows"],
    );
    answered("type=U8", &[0; ROW], "InvalidArgument", &["input", "FP32"]);
    answered("type=I32&dimensions=1,784", &row, "InvalidArgument", &["input"]);
    let refused = ["loads no models of its own", "under \"models\"", "`load-by-name`"];
    answered("load=true", &files::model("digits"), "UnsupportedOperation", &refused);
    classified(&server, "", &row).ok();
}

#[test]
fn an_error_that_the_handler_passes_on_is_that_of_the_run() {
    let server = classifying(&json!({ "open": true, "quota": { "rows_in_flight": 2 } }));
    classified(&server, "pass-on=true", &bytes(&values(2))).ok();
    let refused = classified(&server, "pass-on=true", &bytes(&values(3)));
    refused.refused(429, "quota_exceeded", &[]);
    let refused = classified(&server, "pass-on=true&type=U8", &[0; ROW]);
    refused.refused(500, "plugin_invalid_output", &["input"]);
    classified(&server, "pass-on=true&model=other", b"").refused(500, "plugin_failed", &[]);
}
