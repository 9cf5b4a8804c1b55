//! The first runs of a model's instances, before it serves.

use serde_json::{Value, json};

use crate::support::admin_api::{path, read};
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::Setup;

const CONFIG: &str = "models/m/config";

/// The warnings of the answer to a configuration.
#[track_caller]
fn warnings(server: &Server, config: &Value) -> Vec<String> {
    let answer = server.admin.put_json(&path(CONFIG), config).ok();
    let warnings = answer["warnings"].as_array().unwrap().iter();
    warnings.map(|warning| warning.as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_size_that_the_model_cannot_run_is_a_warning() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/m", &onnx::single_rows());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["m"] }));
    assert_eq!(read(&server, CONFIG)["warm_up"], json!(null));
    let one = warnings(&server, &json!({ "batching": "declared", "warm_up": [1, 3, 8] }));
    let text = |rows: usize| format!("onnxruntime: a first run on {rows} rows of zeros failed: ");
    assert_eq!(one.len(), 2, "{one:?}");
    assert!(one[0].starts_with(&text(3)) && one[1].starts_with(&text(8)), "{one:?}");
    assert!(!one[0].contains('/'), "{one:?}");
    assert_eq!(server.status()["models"]["m"]["warnings"], json!(one));
    // It serves what it can.
    let row = |rows: usize| {
        json!({ "inputs": [{ "name": "x", "datatype": "FP32",
        "shape": [rows, 1], "data": vec![3.0; rows] }] })
    };
    let ask = |rows| server.data.post("/v2/models/m/infer", row(rows).to_string().as_bytes());
    assert_eq!(ask(1).ok()["outputs"][0]["data"], json!([9.0]));
    // No request made these runs, so no figures have them.
    assert_eq!(server.status()["models"]["m"]["statistics"]["success"], 1);
    assert_eq!(warnings(&server, &json!({ "batching": "declared", "warm_up": [] })), [""; 0]);
    assert_eq!(read(&server, CONFIG)["warm_up"], json!([]));
}

#[test]
fn a_size_that_takes_too_much_memory_refuses_the_configuration() {
    let limit = (32 << 20).to_string();
    let server = Setup::new().flag("--model-run-memory-bytes", &limit).start();
    server.put("models/m", &onnx::doubling(1 << 20));
    let release = server.release();
    let refused = server.admin.put_json(&path(CONFIG), &json!({ "warm_up": [1, 12] }));
    let named = ["a first run on 12 rows of zeros", "model_run_memory_bytes"];
    refused.refused(422, "invalid_model", &named);
    assert_eq!(
        (server.release(), server.status()["models"]["m"]["state"].as_str()),
        (release, Some("ready"))
    );
    // The inputs themselves are bounded, too.
    let much = warnings(&server, &json!({ "warm_up": [1, 200] }));
    assert!(
        much.len() == 1 && much[0].contains("200 rows") && much[0].contains("too large"),
        "{much:?}"
    );
}

#[test]
fn a_model_whose_rows_form_no_batches_runs_once() {
    let server = Server::start();
    server.put("models/m", &onnx::fixed_rows());
    let text = "onnxruntime: warm_up: its rows form no batches, so it ran once";
    assert_eq!(warnings(&server, &json!({ "warm_up": [4] })), [text]);
    assert_eq!(warnings(&server, &json!({ "instances": 2 })), [""; 0]);
}

#[test]
fn sizes_out_of_range_are_refused() {
    let server = Server::start();
    server.put("models/m", &onnx::doubling(4));
    let config = json!({ "max_batch_size": 8, "warm_up": [1, 9, 0] });
    let named = ["warm_up[1] is 9: must be 1 to 8", "warm_up[2] is 0: must be 1 to 8"];
    server.admin.put_json(&path(CONFIG), &config).refused(422, "unprocessable", &named);
    let config = json!({ "warm_up": vec![1; 17] });
    let named = ["warm_up has 17 sizes: the limit is 16"];
    server.admin.put_json(&path(CONFIG), &config).refused(422, "unprocessable", &named);
}
