//! Rows of different lengths in one batch, by the keys `pad` and `cut`.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::lengths;
use crate::support::server::Server;
use crate::support::setup::Setup;

const TENANTS: [&str; 2] = ["acme", "other"];

fn pad() -> Value {
    let input = json!({ "axis": 1, "value": 0, "buckets": [16, 32] });
    json!({ "ids": input, "attention_mask": input })
}

/// The configuration of `masked` with these `more` keys.
fn config(more: Value) -> Value {
    let mut config = json!({
        "pad": pad(), "cut": { "tokens": { "axis": 1, "as": "ids" } }, "max_batch_size": 8,
    });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config
}

/// A server with the model `masked`, which the tenants may call.
fn server() -> Server {
    let server = Setup::new().start();
    server.put("models/masked", &lengths::masked());
    for tenant in TENANTS {
        server
            .put_json(&format!("tenants/{tenant}"), &json!({ "open": true, "models": ["masked"] }));
    }
    server
}

/// The answer to a row of the ids 1, 2, 3 and so on, with these outputs.
fn ask_for(server: &Server, tenant: &str, length: usize, outputs: &[&str]) -> TestAnswer {
    let input = |name: &str, data: Vec<usize>| json!({ "name": name, "datatype": "INT64", "shape": [1, length], "data": data });
    let ids = input("ids", (1..=length).collect());
    let outputs: Vec<_> = outputs.iter().map(|name| json!({ "name": name })).collect();
    let inputs = [input("attention_mask", vec![1; length]), ids];
    let request = json!({ "inputs": inputs, "outputs": outputs }).to_string();
    let path = format!("/v1/{tenant}/v2/models/masked/infer");
    let wanted = [("gristmill-receipt", "true")];
    server.data.send("POST", &path, &wanted, Some(request.as_bytes()))
}

fn ask(server: &Server, tenant: &str, length: usize) -> TestAnswer {
    ask_for(server, tenant, length, &["tokens", "mean"])
}

/// The outputs are those of the row without any padding. Returns the receipt.
#[track_caller]
fn assert_right(answer: &TestAnswer, length: usize) -> String {
    let document = answer.ok();
    let output = |name: &str| {
        let outputs = document["outputs"].as_array().unwrap();
        outputs.iter().find(|output| output["name"] == name).unwrap().clone()
    };
    let (tokens, mean) = (output("tokens"), output("mean"));
    assert_eq!((&tokens["shape"], &mean["shape"]), (&json!([1, length]), &json!([1, 1])));
    let expected_mean = (length + 1) as f64 / 2.0;
    let near = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-4;
    assert!(near(&mean["data"][0], expected_mean), "{mean}");
    for (at, token) in tokens["data"].as_array().unwrap().iter().enumerate() {
        assert!(near(token, (at + 1) as f64 - expected_mean), "{tokens}");
    }
    answer.header("gristmill-receipt").to_owned()
}

/// Two tenants that know nothing of each other ask at the same time. Each request waits for a
/// second one, for at most a minute, which is longer than its timeout.
fn lengths_meet(provider: &str) {
    let server = server();
    server.put_json("models/masked/config", &config(json!({ "providers": [provider] })));
    let model = || server.status()["models"]["masked"].clone();
    let padding = model()["padding"].clone();
    assert_eq!(padding["buckets"], json!({ "ids": [16, 32], "attention_mask": [16, 32] }));
    let proof = &padding["proofs"][0];
    assert_eq!((&proof["provider"], &proof["reason"]), (&json!(provider), &Value::Null));
    assert!(proof["runs"].as_u64().unwrap() >= 14, "{padding}");
    // Alone, a row is not padded, nor is one that is longer than the largest bucket.
    for length in [1, 3, 12, 16, 33, 100] {
        assert_right(&ask(&server, "acme", length), length);
    }
    assert_eq!(model()["statistics"]["padding_elements"], 0);
    let waits = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2],
        "providers": [provider] });
    server.put_json("models/masked/config", &config(waits));
    std::thread::scope(|scope| {
        for (tenant, length) in TENANTS.into_iter().zip([3, 12]) {
            let server = &server;
            scope.spawn(move || {
                let receipt = assert_right(&ask(server, tenant, length), length);
                assert!(receipt.starts_with("rows=1, batch-rows=2, batch-tenants=2"), "{receipt}");
            });
        }
    });
    let statistics = model()["statistics"].clone();
    assert_eq!(statistics["recent_mixed_batches"], json!([{ "acme": 1, "other": 1 }]));
    // Both inputs have 3 and 12 places of 2 times 16.
    assert_eq!(statistics["padding_elements"], 2 * (2 * 16 - 3 - 12), "{statistics}");
    assert_eq!((&statistics["bisections"], &statistics["fail"]), (&json!(0), &json!(0)));
    let metrics = server.admin.get("/metrics").text();
    let metric = metrics.lines().find(|line| {
        line.starts_with("gristmill_batch_elements_total") && line.contains("kind=\"padding\"")
    });
    assert!(metric.is_some_and(|line| line.ends_with(" 34")), "{metric:?}");
}

#[test]
fn two_tenants_share_a_batch_of_texts_on_onnxruntime() {
    lengths_meet("cpu");
}

#[test]
fn two_tenants_share_a_batch_of_texts_on_tract() {
    lengths_meet("tract");
}

#[test]
fn a_row_without_places_is_not_padded() {
    let server = server();
    server.put_json("models/masked/config", &config(json!({})));
    let tokens = ask_for(&server, "acme", 0, &["tokens"]).ok()["outputs"][0].clone();
    assert_eq!((&tokens["shape"], &tokens["data"]), (&json!([1, 0]), &json!([])));
    assert_right(&ask(&server, "other", 5), 5);
    let status = server.status()["models"]["masked"].clone();
    assert_eq!((&status["state"], &status["batching"]["is_on"]), (&json!("ready"), &json!(true)));
}

#[test]
fn a_claim_that_is_not_true_is_refused_with_the_difference() {
    let server = server();
    server.put("models/unmasked", &lengths::unmasked());
    let put = |model: &str, config: &Value| {
        server.admin.put_json(&format!("/admin/v1/models/{model}/config"), config)
    };
    let claim = json!({ "pad": { "x": { "axis": 1, "buckets": [16] } } });
    let text = put("unmasked", &claim).refused(
        422,
        "invalid_model",
        &[
            "output \"y\" of a row of length",
            "% of its largest element when the row is padded to 16",
            "attention mask",
        ],
    );
    assert!(!text.contains("NaN"), "{text}");
    let status = server.status()["models"]["unmasked"].clone();
    assert_eq!((&status["state"], &status["config"].get("pad")), (&json!("ready"), &None));
    // The tokens grow with the row.
    let uncut = put("masked", &json!({ "pad": pad() }));
    uncut.refused(422, "invalid_model", &["output \"tokens\" has the shape [1, ", "under cut"]);
    let mut alone = pad();
    alone.as_object_mut().unwrap().remove("attention_mask");
    let alone = put("masked", &json!({ "pad": alone }));
    alone.refused(422, "invalid_model", &["\"places\"", "name \"attention_mask\" under pad"]);
    let unknown = json!({ "pad": { "tokens": { "axis": 1, "buckets": [16] } } });
    put("masked", &unknown).refused(422, "invalid_model", &["pad names \"tokens\"", "\"ids\""]);
    let faulty = json!({ "pad": { "ids": { "axis": 0, "buckets": [32, 16] } } });
    let named = ["pad.ids: axis is 0", "buckets[1] is 16: must be more than 32"];
    put("masked", &faulty).refused(422, "unprocessable", &named);
}

/// The claim is kept with the model, and so is its proof.
#[test]
fn a_restart_keeps_padding() {
    let server = server();
    server.put_json("models/masked/config", &config(json!({})));
    let padding = server.status()["models"]["masked"]["padding"].clone();
    assert_eq!(padding["buckets"]["ids"], json!([16, 32]));
    let server = server.kill().start();
    assert_eq!(server.status()["models"]["masked"]["padding"], padding);
}
