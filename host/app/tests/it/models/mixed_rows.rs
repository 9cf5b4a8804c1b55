//! Requests of several tenants to models whose rows influence each other. Each answer must be that
//! of the request alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::mixing::{Mixing, corpus};
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::soak;

/// Clients at the same time.
const CLIENTS: usize = 16;

/// Requests that differ from each other, for each model.
const REQUESTS: usize = 12;

/// Of these the last has more rows than a batch.
fn request(number: usize) -> Value {
    let rows = if number == REQUESTS - 1 { 300 } else { 1 + number % 3 };
    let value = |at: usize| ((at * 29 + number * 53) % 23) as f64 / 4.0 - 2.5;
    let data: Vec<_> = (0..rows * 4).map(value).collect();
    json!({
        "inputs": [{ "name": "x", "datatype": "FP32", "shape": [rows, 4], "data": data }],
        // An output may have no number.
        "parameters": { "binary_data_output": true },
    })
}

/// An output.
#[derive(Debug)]
struct Output {
    shape: Value,
    is_whole: bool,
    data: Vec<u8>,
}

/// The model's answer, or its error.
fn ask(server: &Server, key: &str, model: &str, request: &Value) -> Result<Output, String> {
    let data = server.data.with_token(key);
    let answer = data.post(&format!("/v2/models/{model}/infer"), request.to_string().as_bytes());
    if answer.status != 200 {
        return Err(answer.text());
    }
    let head: usize = answer.header("inference-header-content-length").parse().unwrap();
    let (head, data) = answer.body.split_at(head);
    let output = serde_json::from_slice::<Value>(head).unwrap()["outputs"][0].clone();
    let is_whole = output["datatype"] == "INT64";
    let bytes = output["parameters"]["binary_data_size"].as_u64().unwrap() as usize;
    Ok(Output { shape: output["shape"].clone(), is_whole, data: data[..bytes].to_vec() })
}

/// Whether both are the same but for rounding.
fn is_same(a: &Output, b: &Output) -> bool {
    if a.shape != b.shape || a.is_whole || a.data == b.data {
        return a.shape == b.shape && a.data == b.data;
    }
    let is_near = |(a, b): (f32, f32)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= 1e-4 * a.abs().max(1.0)
    };
    fractions(a).zip(fractions(b)).all(is_near)
}

fn fractions(output: &Output) -> impl Iterator<Item = f32> {
    output.data.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()))
}

const TENANTS: [&str; 2] = ["red-key-0123456789", "blue-key-0123456789"];

/// The name of a model whose rows are independent.
const INDEPENDENT: &str = "independent";

/// The answers to all requests of each model alone, and then many of them at the same time from two
/// tenants, with the default configuration and `providers`. Returns the number of models that the
/// providers run.
fn answers_are_those_alone(providers: Value, requests: usize) -> usize {
    let mut corpus = corpus();
    // It runs beside them, and its rows do meet.
    corpus.push(Mixing { name: INDEPENDENT, file: onnx::softmax() });
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
    let answers = |model: &&'static str| {
        let numbers = 0..REQUESTS;
        let all = numbers.map(|number| ask(&server, TENANTS[0], model, &request(number)));
        Some((*model, all.collect::<Result<Vec<_>, _>>().ok()?))
    };
    // A provider may load a model that it cannot run.
    let (served, alone): (Vec<_>, Vec<_>) = served.iter().filter_map(answers).unzip();
    for model in &served {
        server.put_json(&format!("models/{model}/config"), &json!({ "providers": providers }));
        let batching = server.status()["models"][model]["batching"].clone();
        assert_eq!(batching["is_on"], *model == INDEPENDENT, "{model}: {batching}");
        let reason = batching["certificates"][0]["reason"].as_str().unwrap_or_default();
        assert_eq!(reason.is_empty(), *model == INDEPENDENT, "{model}: {batching}");
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
                    let (name, expected) = (served[model], &alone[model][number]);
                    let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}"));
                    assert!(is_same(&answer, expected), "{name}: {answer:?} is not {expected:?}");
                }
            });
        }
    });
    served.iter().filter(|model| **model != INDEPENDENT).count()
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
