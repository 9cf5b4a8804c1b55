//! Descriptions of models over HTTP that the Open Inference Protocol has, but that its clients do
//! not request.

use serde_json::{Value, json};

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};

/// A server whose tenant `acme`, which needs no key, has the pipeline `digits` and two models.
fn server() -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    for (model, file) in [("identity", "identity-fp32.onnx"), ("simple", "simple.onnx")] {
        server.put(&format!("models/{model}"), &files::fixture(file));
    }
    server.digits("acme");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity", "simple"] }));
    server
}

/// The names and states in the index.
#[track_caller]
fn index(server: &Server, body: &str) -> Value {
    let index = server.data.post("/v2/repository/index", body.as_bytes()).ok();
    let models = index.as_array().unwrap().iter();
    models.map(|model| json!([model["name"], model["state"]])).collect()
}

#[test]
fn the_index_may_be_of_what_is_ready_and_outlasts_a_restart() {
    let server = server();
    server.put("models/simple?force=true", &files::fixture("fixed-rows.onnx"));
    let operator = server.data.with_token(ADMIN_TOKEN);
    operator.post("/v2/repository/models/identity/unload", b"").ok();
    let all = json!([
        ["identity", "UNAVAILABLE"],
        ["simple", "READY"],
        ["simple", "UNAVAILABLE"],
        ["pipeline:digits", "READY"],
    ]);
    let ready = json!([["simple", "READY"], ["pipeline:digits", "READY"]]);
    let bodies =
        [("", &all), ("{}", &all), (r#"{"ready":false}"#, &all), (r#"{"ready":true}"#, &ready)];
    for (body, expected) in bodies {
        assert_eq!(&index(&server, body), expected, "{body}");
    }
    let wrong = server.data.post("/v2/repository/index", br#"{"ready":"yes"}"#);
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    let server = server.kill().start();
    for (body, expected) in bodies {
        assert_eq!(&index(&server, body), expected, "{body}");
    }
}

#[test]
fn a_pipelines_statistics_count_what_failed_too() {
    let server = server();
    let raw = [("inference-header-content-length", "0")];
    let path = "/v2/models/pipeline:digits/infer";
    let no_picture = b"no picture".to_vec();
    for (body, status) in [(files::digit(7), 200), (no_picture, 415), (files::digit(1), 200)] {
        let answer = server.data.send("POST", path, &raw, Some(&body));
        assert_eq!(answer.status, status, "{}", answer.text());
    }
    let told = server.data.get("/v2/models/pipeline:digits/stats").ok();
    let counts = |name: &str| told["model_stats"][0]["inference_stats"][name]["count"].clone();
    let counted = ["success", "fail", "queue", "compute_infer"].map(counts);
    assert_eq!(json!(counted), json!([2, 1, 2, 2]), "{told}");
}
