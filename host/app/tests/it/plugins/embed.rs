//! Embeddings of texts: the samples in Rust and in Python give the vectors that WordLlama gives,
//! plain and as OpenAI's clients ask for them. models/embed/golden.py has recorded them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// The difference that a number of a vector may have: float32 is summed in another order, for the
/// longest text 6001 of them.
const TOLERANCE: f32 = 5e-5;

/// A text, its number of tokens, and its vector.
struct Case {
    text: String,
    tokens: u64,
    vector: Vec<f32>,
}

fn golden() -> Vec<Case> {
    let cases: Vec<Value> =
        serde_json::from_slice(&files::of_model("embed", "golden.json")).unwrap();
    let cases = cases.iter().map(|case| Case {
        text: case["text"].as_str().unwrap().repeat(case["times"].as_u64().unwrap() as usize),
        tokens: case["tokens"].as_u64().unwrap(),
        vector: in_base64(&case["vector"]),
    });
    cases.collect()
}

fn in_base64(text: &Value) -> Vec<f32> {
    let bytes = STANDARD.decode(text.as_str().unwrap()).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn numbers(list: &Value) -> Vec<f32> {
    let list = list.as_array().unwrap().iter();
    list.map(|number| number.as_f64().unwrap() as f32).collect()
}

/// The vector with length 1. That of a text without tokens is 0.
fn normalized(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| if length == 0.0 { 0.0 } else { value / length }).collect()
}

#[track_caller]
fn assert_close(what: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_close = (found - expected).abs() <= TOLERANCE;
        assert!(is_close, "{what}, number {at}: {found}, WordLlama {expected}");
    }
}

/// The model's configuration in the manifest, with these `more` keys.
fn config(more: Value) -> Value {
    let mut config = files::manifest_of_all()["models"]["embed"]["config"].clone();
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// The model as `cargo xtask demo --all` deploys it, but for these keys of its configuration.
fn put_model(server: &Server, more: Value) {
    server.put("models/embed", &files::fetched("embed", "model.onnx"));
    server.put_json("models/embed/config", &config(more));
}

/// A pipeline as `cargo xtask demo --all` deploys it, for an open tenant, with time for a busy
/// machine. `file` is the built plugin.
fn put_pipeline(server: &Server, tenant: &str, name: &str, file: &str) {
    server.open_tenant(tenant);
    server.put(
        &format!("tenants/{tenant}/assets/embed-tokenizer"),
        &files::fetched("embed", "tokenizer.json"),
    );
    let mut pipeline = files::manifest_of_all()["tenants"]["demo"]["pipelines"][name].clone();
    server.plugin(tenant, pipeline["pre"].as_str().unwrap(), file);
    pipeline["limits"]["cpu_ms"] = json!(60_000);
    pipeline["limits"]["timeout_ms"] = json!(600_000);
    server.pipeline(tenant, name, &pipeline);
}

fn ask(server: &Server, path: &str, body: &Value) -> Value {
    server.data.post(path, body.to_string().as_bytes()).ok()
}

/// Fails unless the pipeline gives WordLlama's vectors in each form of an answer.
fn assert_golden(server: &Server, pipeline: &str) {
    let cases = golden();
    assert_eq!(cases.len(), 16);
    let path = format!("/v1/demo/infer/{pipeline}");
    let texts: Vec<_> = cases.iter().map(|case| case.text.as_str()).collect();
    let plain = |norm: Option<bool>| {
        let mut body = Map::from_iter([("texts".to_owned(), json!(texts))]);
        body.extend(norm.map(|norm| ("norm".to_owned(), json!(norm))));
        let answer = ask(server, &path, &body.into());
        answer["vectors"].as_array().unwrap().iter().map(numbers).collect::<Vec<_>>()
    };
    let (vectors, of_length_1) = (plain(None), plain(Some(true)));
    assert_eq!((vectors.len(), of_length_1.len()), (cases.len(), cases.len()));
    for (case, (vector, of_length_1)) in cases.iter().zip(vectors.iter().zip(&of_length_1)) {
        let start: String = case.text.chars().take(40).collect();
        let what = format!("{pipeline}: {start:?}");
        assert_close(&what, vector, &case.vector);
        assert_close(&what, of_length_1, &normalized(&case.vector));
    }

    let openai = |input: Value, format: &str| {
        let body = json!({ "input": input, "model": "m", "encoding_format": format });
        ask(server, &path, &body)
    };
    let tokens: u64 = cases.iter().map(|case| case.tokens).sum();
    let formats = [("float", numbers as fn(&Value) -> Vec<f32>), ("base64", in_base64)];
    for (format, read) in formats {
        let answer = openai(json!(texts), format);
        let usage = json!({ "prompt_tokens": tokens, "total_tokens": tokens });
        assert_eq!((&answer["object"], &answer["usage"]), (&json!("list"), &usage));
        assert_eq!(answer["model"], "wordllama-l2-supercat-256");
        let data = answer["data"].as_array().unwrap();
        assert_eq!(data.len(), cases.len());
        for (at, (item, expected)) in data.iter().zip(&of_length_1).enumerate() {
            assert_eq!((&item["object"], &item["index"]), (&json!("embedding"), &json!(at)));
            let what = format!("{pipeline}: {format}, text {at}");
            assert_close(&what, &read(&item["embedding"]), expected);
        }
    }
    let one = openai(json!(texts[0]), "float");
    assert_eq!(one["data"].as_array().unwrap().len(), 1);
    assert_close(pipeline, &numbers(&one["data"][0]["embedding"]), &of_length_1[0]);
    assert_eq!(one["usage"]["total_tokens"], cases[0].tokens);
}

#[test]
fn vectors_are_those_of_wordllama_in_rust_and_in_python() {
    let server = Setup::new().with_runtimes().start();
    put_model(&server, json!({}));
    put_pipeline(&server, "demo", "embeddings", "embed");
    put_pipeline(&server, "demo", "embed-python", "embed-python");
    let status = server.status()["models"]["embed"].clone();
    let proof = &status["padding"]["proofs"][0];
    assert_eq!((&proof["provider"], &proof["reason"]), (&json!("cpu"), &Value::Null), "{status}");
    for pipeline in ["embeddings", "embed-python"] {
        assert_golden(&server, pipeline);
    }
}

/// Each request waits for a second text, for at most a minute.
#[test]
fn texts_of_two_tenants_share_a_batch() {
    let server = Server::start();
    put_model(&server, json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2] }));
    let cases = golden();
    let tenants = ["acme", "other"];
    for tenant in tenants {
        put_pipeline(&server, tenant, "embeddings", "embed");
    }
    std::thread::scope(|scope| {
        for (tenant, case) in tenants.into_iter().zip(&cases) {
            let server = &server;
            scope.spawn(move || {
                let body = json!({ "texts": [case.text] }).to_string();
                let path = format!("/v1/{tenant}/infer/embeddings");
                let wanted = [("gristmill-receipt", "true")];
                let answer = server.data.send("POST", &path, &wanted, Some(body.as_bytes()));
                assert_close(tenant, &numbers(&answer.ok()["vectors"][0]), &case.vector);
                let receipt = answer.header("gristmill-receipt");
                let is_shared = receipt.contains("batch-rows=2, batch-tenants=2");
                assert!(is_shared, "{tenant}: {receipt}");
            });
        }
    });
    let statistics = server.status()["models"]["embed"]["statistics"].clone();
    assert_eq!(statistics["recent_mixed_batches"], json!([{ "acme": 1, "other": 1 }]));
    // 12 and 5 tokens, each of two inputs, of 2 times 16.
    assert_eq!(statistics["padding_elements"], 2 * (2 * 16 - 12 - 5), "{statistics}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_text_and_the_limit() {
    let server = Server::start();
    put_model(&server, json!({}));
    put_pipeline(&server, "demo", "embeddings", "embed");
    let refused = |body: &Value, status: u16, code: &str, named: &[&str]| {
        let path = "/v1/demo/infer/embeddings";
        server.data.post(path, body.to_string().as_bytes()).refused(status, code, named);
    };
    for (body, named) in [
        (json!({ "input": [[1, 2]], "model": "m" }), "/input/0/0 is a number, not a text"),
        (json!({ "text": ["a"] }), "/input is missing"),
        (json!({ "texts": "a" }), "texts is not a list of texts"),
        (json!({ "input": "a", "encoding_format": "int8" }), "encoding_format is \"int8\""),
    ] {
        refused(&body, 400, "invalid_request", &[named]);
    }
    // Each "a" is a token.
    let long = |tokens: usize| "a ".repeat(tokens - 1) + "a";
    let mut padded = vec!["a".to_owned(); 1001];
    padded[1000] = long(600);
    for (body, named) in [
        (json!({ "texts": [] }), "texts has 0 texts; a request may have 1 to 2048"),
        (json!({ "input": vec!["a"; 2049] }), "input has 2049 texts; a request may have 1 to 2048"),
        (json!({ "texts": ["a", long(8193)] }), "texts/1 has 8193 tokens; a text may have 8192"),
        (
            json!({ "input": padded }),
            "1001 texts as long as input/1000, the longest, which has 600 tokens",
        ),
        (json!({ "texts": ["a", "a".repeat(200_000)] }), "texts[1] has 200000 bytes"),
        (json!({ "input": "a", "dimensions": 64 }), "dimensions is 64"),
    ] {
        refused(&body, 422, "unprocessable", &[named]);
    }
    let path = "/v1/demo/infer/embeddings";
    let answer = ask(&server, path, &json!({ "texts": [long(8192)] }));
    assert_eq!(answer["vectors"][0].as_array().unwrap().len(), 256);
}
