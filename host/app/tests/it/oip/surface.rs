//! Parts of the Open Inference Protocol that its clients do not reach: descriptions of models over
//! HTTP that they do not request, and a change between a call's headers and its message.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::h2;
use crate::support::protobuf::Message;
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
    let statistics = server.data.get("/v2/models/pipeline:digits/stats").ok();
    let counts =
        |name: &str| statistics["model_stats"][0]["inference_stats"][name]["count"].clone();
    let counted = ["success", "fail", "queue", "compute_infer"].map(counts);
    assert_eq!(json!(counted), json!([2, 1, 2, 2]), "{statistics}");
}

/// Begin a call of `ModelInfer` with this key.
fn begin_infer(server: &Server, key: &str) -> TcpStream {
    let mut call = h2::connect(&server.grpc);
    let headers = h2::headers_with_key("/inference.GRPCInferenceService/ModelInfer", key);
    call.write_all(&h2::frame(h2::HEADERS, h2::END_HEADERS, 1, &headers)).unwrap();
    call
}

#[test]
fn an_admitted_call_is_answered_although_its_key_is_revoked_before_its_message() {
    let server = Setup::new().start();
    server.put("models/identity", &files::fixture("identity-fp32.onnx"));
    let with_key = |key: &str| {
        server.put_json("tenants/acme", &json!({ "api_keys": [key], "models": ["identity"] }))
    };
    with_key("the-key-that-is-revoked");
    let values = 1.5_f32.to_le_bytes();
    let input = Message::new().text(1, "input").text(2, "FP32").int(3, 1).int(3, 1);
    let message = Message::new().text(1, "identity").message(5, input).bytes(7, &values);
    let message = message.into_bytes();
    let framed = [&[0], &(message.len() as u32).to_be_bytes()[..], &message].concat();
    let (begin, rest) = framed.split_at(framed.len() / 2);

    let mut admitted = begin_infer(&server, "the-key-that-is-revoked");
    admitted.write_all(&h2::frame(h2::DATA, 0, 1, begin)).unwrap();
    // The bytes of a message count only after its caller was found.
    eventually("the call is admitted", || {
        server.status()["tenants"]["acme"]["bytes_under_way"] != 0
    });
    with_key("the-key-that-is-kept");
    admitted.write_all(&h2::frame(h2::DATA, h2::END_STREAM, 1, rest)).unwrap();
    let answer = h2::read_answer(&mut admitted);
    assert!(answer.ends_with(&values), "{answer:?}");

    for (key, expected) in [("the-key-that-is-kept", &answer), ("the-key-that-is-revoked", &vec![])]
    {
        let mut next = begin_infer(&server, key);
        // A call that is refused by its headers may be closed before its message is sent.
        let _ = next.write_all(&h2::frame(h2::DATA, h2::END_STREAM, 1, &framed));
        assert_eq!(&h2::read_answer(&mut next), expected, "{key}");
    }
}
