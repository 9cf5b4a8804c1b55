//! Pipelines with named inputs and outputs, so that clients of another server stay as they are.
//! `faults` has requests and answers that do not fit.

mod faults;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_client::{BinaryTensor, infer_body};
use gristmill_oip::grpc::proto::ModelInferResponse;
use prost::Message as _;
use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deploy::{processor, ranker_body};
use crate::support::files;
use crate::support::grpc;
use crate::support::protobuf::Message;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

const INVALID_ARGUMENT: u32 = 3;

/// A pipeline around `digits` with these named inputs, and outputs for what its plugin answers.
fn digits(inputs: Value) -> Value {
    let mut pipeline = processor("digits", json!({}));
    pipeline["oip"] = json!({
        "inputs": inputs,
        "outputs": [
            { "name": "DIGIT", "datatype": "INT64", "pointer": "/label" },
            { "name": "PROBABILITY", "datatype": "FP32", "pointer": "/probability" },
        ],
    });
    pipeline
}

fn image(encoding: Option<&str>) -> Value {
    json!([{
        "name": "INPUT_IMAGE", "datatype": "BYTES", "encoding": encoding,
        "content_type": "image/png",
    }])
}

/// A server where callers without a key are `acme`, which has the pipeline `food` for photos in
/// base64.
fn server() -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.digits("acme");
    server.pipeline("acme", "food", &digits(image(Some("base64"))));
    server
}

fn photo(digit: usize) -> String {
    STANDARD.encode(files::digit(digit))
}

/// A request with these texts as rows of `INPUT_IMAGE`, in JSON.
fn rows(texts: &[&str]) -> Value {
    let (shape, datatype) = ([texts.len(), 1], "BYTES");
    json!({ "inputs": [
        { "name": "INPUT_IMAGE", "datatype": datatype, "shape": shape, "data": texts },
    ]})
}

fn post(server: &Server, pipeline: &str, body: &Value) -> TestAnswer {
    server.data.post(&format!("/v2/models/{pipeline}/infer"), body.to_string().as_bytes())
}

/// The elements of an output, which has one in each row.
#[track_caller]
fn elements(answer: &Value, name: &str, datatype: &str) -> Vec<Value> {
    let outputs = answer["outputs"].as_array().unwrap();
    let output = outputs.iter().find(|output| output["name"] == name).unwrap();
    let data = output["data"].as_array().unwrap().clone();
    assert_eq!(
        (&output["datatype"], &output["shape"]),
        (&json!(datatype), &json!([data.len(), 1]))
    );
    data
}

/// The bytes of a BYTES tensor.
fn texts(elements: &[&[u8]]) -> Vec<u8> {
    let text = |text: &&[u8]| [&(text.len() as u32).to_le_bytes()[..], text].concat();
    elements.iter().flat_map(text).collect()
}

#[test]
fn each_row_is_a_request_and_each_answer_a_row_of_the_outputs() {
    let server = server();
    let answer = post(&server, "food", &rows(&[&photo(7)])).ok();
    assert_eq!(elements(&answer, "DIGIT", "INT64"), [7]);
    assert!(elements(&answer, "PROBABILITY", "FP32")[0].as_f64() > Some(0.5), "{answer}");
    assert_eq!(answer["model_name"], "food");

    let url = format!("data:image/png;base64,{}", photo(3));
    let three = rows(&[&photo(1), &url, &photo(9)]);
    let answer = post(&server, "pipeline:food", &three).ok();
    assert_eq!(elements(&answer, "DIGIT", "INT64"), [1, 3, 9]);
    assert_eq!(elements(&answer, "PROBABILITY", "FP32").len(), 3);

    // Only what is asked for, in this order.
    let mut asked = three.clone();
    asked["outputs"] = json!([{ "name": "PROBABILITY" }, { "name": "DIGIT" }]);
    let outputs = post(&server, "food", &asked).ok()["outputs"].clone();
    assert_eq!(
        (&outputs[0]["name"], &outputs[1]["name"]),
        (&json!("PROBABILITY"), &json!("DIGIT"))
    );
    asked["outputs"] = json!([{ "name": "DIGIT" }]);
    assert_eq!(post(&server, "food", &asked).ok()["outputs"].as_array().unwrap().len(), 1);

    // Binary tensors both ways.
    let sent: Vec<_> = [4, 2].map(photo).into();
    let data = texts(&[sent[0].as_bytes(), sent[1].as_bytes()]);
    let tensor =
        BinaryTensor { name: "INPUT_IMAGE", datatype: "BYTES", shape: &[2, 1], data: &data };
    let body = infer_body(
        &[tensor],
        json!({
            "outputs": [{ "name": "DIGIT", "parameters": { "binary_data": true } }],
        }),
    );
    let answer = server.data.infer("/v2/models/food/infer", &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let expected = [4_i64, 2].map(i64::to_le_bytes).concat();
    assert!(answer.body.ends_with(&expected), "{}", answer.text());

    // The body alone is one row.
    let raw = [("inference-header-content-length", "0")];
    let answer = server.data.send("POST", "/v2/models/food/infer", &raw, Some(photo(5).as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let probability = &answer.body[answer.body.len() - 12..];
    assert_eq!(probability[..8], 5_i64.to_le_bytes());
}

#[test]
fn clients_are_told_the_names_datatypes_and_shapes() {
    let server = server();
    for name in ["food", "pipeline:food"] {
        assert_eq!(server.data.get(&format!("/v2/models/{name}/ready")).status, 200);
        let described = server.data.get(&format!("/v2/models/{name}")).ok();
        let image = json!({ "name": "INPUT_IMAGE", "datatype": "BYTES", "shape": [-1, 1] });
        assert_eq!(described["inputs"], json!([image]));
        let probability = json!({ "name": "PROBABILITY", "datatype": "FP32", "shape": [-1, 1] });
        assert_eq!(described["outputs"][1], probability);
        let config = server.data.get(&format!("/v2/models/{name}/config")).ok();
        assert_eq!(config["max_batch_size"], 64, "{config}");
        let input = &config["input"][0];
        assert_eq!(
            (&input["name"], &input["data_type"], &input["dims"]),
            (&json!("INPUT_IMAGE"), &json!("TYPE_STRING"), &json!([1])),
        );
        assert_eq!(config["output"][0]["data_type"], "TYPE_INT64");
    }
    // Only a pipeline with named inputs has a plain name, and a model that is granted has it first.
    server.data.get("/v2/models/digits").refused_by_protocol(404, &["unknown model: 'digits'"]);
    server.put("models/food", &files::fixture("identity-fp32.onnx"));
    assert_eq!(server.data.get("/v2/models/food").ok()["inputs"][0]["name"], "INPUT_IMAGE");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["food"] }));
    assert_eq!(server.data.get("/v2/models/food").ok()["inputs"][0]["name"], "input");
    let pipeline = server.data.get("/v2/models/pipeline:food").ok();
    assert_eq!(pipeline["inputs"][0]["name"], "INPUT_IMAGE");
}

#[test]
fn another_tenant_finds_nothing_of_it() {
    let server = server();
    server.keyed_tenant("globex", "the-key-of-globex-1");
    let globex = server.data.with_token("the-key-of-globex-1");
    for path in ["/v2/models/food", "/v2/models/pipeline:food", "/v2/models/nothing"] {
        let name = path.rsplit('/').next().unwrap();
        let words = format!("unknown model: '{name}' is not found");
        globex.get(path).refused_by_protocol(404, &[&words]);
    }
    let body = rows(&[&photo(7)]).to_string();
    let answer = globex.post("/v2/models/food/infer", body.as_bytes());
    answer.refused_by_protocol(404, &["unknown model: 'food' is not found"]);
    // A tenant may have one of the same name.
    server.plugin("globex", "digits", "digits");
    server.pipeline("globex", "food", &digits(image(None)));
    let answer = globex.post("/v2/models/food/infer", body.as_bytes());
    answer.refused_by_protocol(415, &[]);
    assert_eq!(post(&server, "food", &rows(&[&photo(7)])).status, 200);
}

#[test]
fn bytes_that_are_not_in_base64_are_the_body_as_they_are() {
    let server = server();
    server.pipeline("acme", "raw", &digits(image(None)));
    let data = texts(&[&files::digit(6), &files::digit(8)]);
    let tensor =
        BinaryTensor { name: "INPUT_IMAGE", datatype: "BYTES", shape: &[2, 1], data: &data };
    let answer = server.data.infer("/v2/models/raw/infer", &infer_body(&[tensor], json!({})));
    assert_eq!(elements(&answer.ok(), "DIGIT", "INT64"), [6, 8]);
    // Texts of the answer are BYTES, and the plugin sees the media type and the query.
    server.ranker("acme");
    let oip = json!({
        "inputs": [{ "name": "ITEMS", "datatype": "BYTES", "content_type": "application/json" }],
        "outputs": [
            { "name": "BEST", "datatype": "BYTES", "pointer": "/items/0/id" },
            { "name": "SCORE", "datatype": "FP64", "pointer": "/items/0/score" },
        ],
    });
    let spec = json!({
        "pre": "ranker-pre", "model": "ranker", "post": "ranker-post", "oip": oip,
    });
    server.pipeline("acme", "best", &spec);
    let (items, _) = &files::ranker_golden()[0];
    let body = ranker_body(&items[..1]).to_string();
    let input =
        json!({ "name": "ITEMS", "datatype": "BYTES", "shape": [2, 1], "data": [body, body] });
    let answer = post(&server, "best", &json!({ "inputs": [input] })).ok();
    assert_eq!(elements(&answer, "BEST", "BYTES"), ["0", "0"]);
    assert_eq!(elements(&answer, "SCORE", "FP64").len(), 2);
}

#[test]
fn several_inputs_become_a_json_object() {
    let server = server();
    let inputs = json!([
        { "name": "IMAGE", "datatype": "BYTES", "pointer": "/image" },
        { "name": "TURN", "datatype": "FP32", "dims": [2, 2], "pointer": "/turn" },
        { "name": "COUNT", "datatype": "UINT8", "pointer": "/count" },
    ]);
    server.pipeline("acme", "members", &digits(inputs));
    let image = |shape: Value, data: Value| json!({ "name": "IMAGE", "datatype": "BYTES", "shape": shape, "data": data });
    let turn = json!({
        "name": "TURN", "datatype": "FP32", "shape": [2, 2, 2], "data": [0, 1, 2, 3, 4, 5, 6, 0.5],
    });
    let count = json!({ "name": "COUNT", "datatype": "UINT8", "shape": [2, 1], "data": [1, 2] });
    let images = image(json!([2, 1]), json!([photo(1), photo(4)]));
    let whole = json!({ "inputs": [count, turn, images] });
    let answer = post(&server, "members", &whole).ok();
    assert_eq!(elements(&answer, "DIGIT", "INT64"), [1, 4]);

    let mut few = whole.clone();
    few["inputs"][2] = image(json!([2, 1]), json!([photo(1)]));
    post(&server, "members", &few).refused_by_protocol(400, &["\"IMAGE\"", "fewer elements"]);
    let mut other = whole.clone();
    other["inputs"][2] = image(json!([1, 1]), json!([photo(1)]));
    let named = ["input \"IMAGE\" has 1 rows, and input \"TURN\" has 2"];
    post(&server, "members", &other).refused_by_protocol(400, &named);
    let mut parameter = whole.clone();
    parameter["inputs"][2]["parameters"] = json!({ "query": "size=3" });
    let named = ["input \"IMAGE\" has the parameter \"query\", which is for an input that is"];
    post(&server, "members", &parameter).refused_by_protocol(400, &named);
    let mut missing = whole;
    missing["inputs"].as_array_mut().unwrap().remove(0);
    post(&server, "members", &missing).refused_by_protocol(400, &["input \"COUNT\" is missing"]);
}

#[test]
fn rows_come_and_go_over_grpc() {
    let server = server();
    let infer = |sent: &[&[u8]]| {
        let input = Message::new().text(1, "INPUT_IMAGE").text(2, "BYTES");
        let input = input.int(3, sent.len() as i64).int(3, 1);
        let message = Message::new().text(1, "food").message(5, input).bytes(7, &texts(sent));
        grpc::call(&server.grpc, "ModelInfer", None, &message.into_bytes())
    };
    let photos = [7, 0, 5].map(photo);
    let answer = infer(&photos.each_ref().map(|photo| photo.as_bytes()));
    assert_eq!(answer.status(), 0, "{answer:?}");
    let answer = ModelInferResponse::decode(answer.message).unwrap();
    let names: Vec<_> = answer.outputs.iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["DIGIT", "PROBABILITY"]);
    assert_eq!(answer.outputs[0].shape, [3, 1]);
    let expected = [7_i64, 0, 5].map(i64::to_le_bytes).concat();
    assert_eq!(answer.raw_output_contents[0], expected);
    let refused = infer(&[photos[0].as_bytes(), b"\xff"]);
    assert_eq!(refused.status(), INVALID_ARGUMENT, "{refused:?}");
    let text = refused.header("grpc-message").replace("%20", " ").replace("%22", "\"");
    assert_names(&text, &["row 1: input \"INPUT_IMAGE\": it is not a text in base64"]);
    let message = Message::new().text(1, "food").into_bytes();
    let described = grpc::call(&server.grpc, "ModelMetadata", None, &message);
    assert_names(&String::from_utf8_lossy(&described.message), &["INPUT_IMAGE", "PROBABILITY"]);
}

#[test]
fn a_request_is_charged_once_with_the_use_of_all_its_rows() {
    let server = server();
    let body = rows(&[&photo(1), &photo(2), &photo(3)]).to_string();
    let wanted = [("gristmill-receipt", "true")];
    let path = "/v2/models/food/infer";
    let answer = server.data.send("POST", path, &wanted, Some(body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.header("gristmill-receipt").starts_with("rows=3, "), "{:?}", answer.headers);
    let usage = server.admin.get("/admin/v1/usage").ok();
    let row = usage["items"].as_array().unwrap().iter().find(|row| row["pipeline"] == "food");
    let row = row.unwrap();
    assert_eq!((&row["requests"], &row["rows"]), (&json!(1), &json!(3)), "{row}");
    assert_eq!(server.status()["tenants"]["acme"]["bytes_under_way"], 0);
}

#[test]
fn each_row_counts_against_the_quota_of_requests() {
    let server = server();
    let quota = json!({ "requests_per_s": 1, "burst": 5 });
    server.put_json("tenants/acme", &json!({ "open": true, "quota": quota }));
    let three = rows(&[&photo(1), &photo(2), &photo(3)]);
    let first = post(&server, "food", &three);
    assert_eq!(first.status, 200, "{}", first.text());
    assert!(first.header("ratelimit").contains("r=2;"), "{:?}", first.headers);
    let many: Vec<_> = (0..6).map(|_| "").collect();
    let named = ["the request has 6 rows, each of which counts as a request", "5 at once"];
    post(&server, "food", &rows(&many)).refused_by_protocol(429, &named);
}

#[test]
fn captures_and_candidates_take_rows_one_by_one() {
    let server = server();
    server.put("tenants/acme/plugins/other", &files::plugin_that_begins_with("digits", 32));
    let mut pipeline = digits(image(Some("base64")));
    pipeline["capture"] = json!({ "percent": 100 });
    pipeline["candidate"] = json!({ "pre": "other", "post": "other", "traffic_percent": 100 });
    server.pipeline("acme", "food", &pipeline);
    let answer = post(&server, "food", &rows(&[&photo(1), &photo(2)]));
    assert_eq!(answer.header("gristmill-variant"), "candidate", "{}", answer.text());
    assert_eq!(elements(&answer.ok(), "DIGIT", "INT64"), [1, 2]);
    let at = "/admin/v1/tenants/acme/pipelines/food";
    let report = server.admin.get(&format!("{at}/candidate")).ok();
    assert_eq!(report["candidate"]["requests"], 1, "{report}");
    // Captures belong to the pipeline itself.
    pipeline.as_object_mut().unwrap().remove("candidate");
    server.pipeline("acme", "food", &pipeline);
    assert_eq!(post(&server, "food", &rows(&[&photo(1), &photo(2)])).status, 200);
    let kept = server.admin.get(&format!("{at}/captured")).ok();
    let kept = kept["items"].as_array().unwrap();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(kept[0]["sample"]["request"]["content_type"], "image/png");
    // The candidate's document does not change names.
    pipeline["candidate"] = json!({ "pre": "other", "traffic_percent": 1, "oip": {} });
    let refused = server.admin.put_json(at, &pipeline);
    refused.refused(422, "unprocessable", &["candidate: unknown key \"oip\""]);
}
