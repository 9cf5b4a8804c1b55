//! Requests of several tenants to models whose rows influence each other. Each answer must be that
//! of the request alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::mixing::{Mixing, corpus};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak;

/// Clients at the same time.
const CLIENTS: usize = 16;

/// Requests that differ from each other, for each model.
const REQUESTS: usize = 12;

fn request(number: usize) -> Value {
    let rows = 1 + number % 3;
    let value = |at: usize| ((at * 29 + number * 53) % 23) as f64 / 4.0 - 2.5;
    let data: Vec<_> = (0..rows * 4).map(value).collect();
    json!({ "inputs": [{ "name": "x", "datatype": "FP32", "shape": [rows, 4], "data": data }] })
}

fn ask(server: &Server, tenant: &str, model: &str, request: &Value) -> Value {
    let data = server.data.with_token(tenant);
    let answer = data.post(&format!("/v2/models/{model}/infer"), request.to_string().as_bytes());
    let output = answer.ok()["outputs"][0].clone();
    json!({ "shape": output["shape"], "data": output["data"] })
}

/// Whether both are the same but for rounding.
fn is_same(a: &Value, b: &Value) -> bool {
    let numbers = |value: &Value| -> Vec<f64> {
        value["data"].as_array().unwrap().iter().map(|one| one.as_f64().unwrap_or(0.0)).collect()
    };
    let pairs = numbers(a).into_iter().zip(numbers(b));
    a["shape"] == b["shape"]
        && pairs.into_iter().all(|(a, b)| (a - b).abs() <= 1e-4 * a.abs().max(1.0))
}

const TENANTS: [&str; 2] = ["red-key-0123456789", "blue-key-0123456789"];

/// The answers to all requests of each model alone, and then many of them at the same time from two
/// tenants, with the default configuration and `providers`. Returns the number of models that the
/// providers run.
fn answers_are_those_alone(providers: Value, requests: usize) -> usize {
    let corpus = corpus();
    let server = Setup::new().start();
    let mut served = Vec::new();
    for Mixing { name, file } in &corpus {
        server.put(&format!("models/{name}"), file);
        let alone = json!({ "batching": "off", "providers": providers });
        let path = format!("/admin/v1/models/{name}/config");
        if server.admin.put_json(&path, &alone).status < 300 {
            served.push(*name);
        }
    }
    for (tenant, key) in ["red", "blue"].into_iter().zip(TENANTS) {
        server.put_json(
            &format!("tenants/{tenant}"),
            &json!({ "api_keys": [key], "models": served }),
        );
    }
    let alone: Vec<Vec<Value>> = served
        .iter()
        .map(|model| (0..REQUESTS).map(|number| ask(&server, TENANTS[0], model, &request(number))))
        .map(Iterator::collect)
        .collect();
    for model in &served {
        server.put_json(&format!("models/{model}/config"), &json!({ "providers": providers }));
        let batching = server.status()["models"][model]["batching"].clone();
        assert_eq!(batching["is_on"], false, "{model}: {batching}");
        let reason = batching["certificates"][0]["reason"].as_str().unwrap_or_default();
        assert!(!reason.is_empty(), "{model}: {batching}");
    }
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (server, served, alone, next) = (&server, &served, &alone, &next);
            scope.spawn(move || {
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= requests {
                        return;
                    }
                    // Neighbours in time ask the same model.
                    let model = turn / CLIENTS % served.len();
                    let number = (turn * 7 + client) % REQUESTS;
                    let answer = ask(server, TENANTS[client % 2], served[model], &request(number));
                    let expected = &alone[model][number];
                    let name = served[model];
                    assert!(is_same(&answer, expected), "{name}: {answer} is not {expected}");
                }
            });
        }
    });
    served.len()
}

#[test]
fn rows_that_influence_each_other_never_meet_on_onnxruntime() {
    let served = answers_are_those_alone(json!(["cpu"]), soak::times(4_000, 100_000));
    assert_eq!(served, corpus().len(), "ONNX Runtime runs all of them");
}

#[test]
fn rows_that_influence_each_other_never_meet_on_tract() {
    let served = answers_are_those_alone(json!(["tract"]), soak::times(2_000, 100_000));
    assert!(served >= 20, "tract runs {served} of them");
}
