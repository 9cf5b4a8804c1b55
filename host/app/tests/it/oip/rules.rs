//! Rules of the Open Inference Protocol that clients of Triton rely on, one test each.

use gristmill_client::{BinaryTensor, infer_body};
use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::protobuf::Message;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::{files, grpc, onnx};

const INVALID_ARGUMENT: u32 = 3;
const NOT_FOUND: u32 = 5;

/// A server whose tenant `acme`, which needs no key, has these models.
fn server(models: &[(&str, Vec<u8>)]) -> Server {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    for (name, file) in models {
        server.put(&format!("models/{name}"), file);
    }
    let names: Vec<_> = models.iter().map(|(name, _)| *name).collect();
    server.put_json("tenants/acme", &json!({ "open": true, "models": names }));
    server
}

fn identity(datatype: &str) -> Vec<u8> {
    files::fixture(&format!("identity-{datatype}.onnx"))
}

fn post(server: &Server, model: &str, body: &Value) -> TestAnswer {
    server.data.post(&format!("/v2/models/{model}/infer"), body.to_string().as_bytes())
}

fn input(datatype: &str, shape: &Value, data: &Value) -> Value {
    json!({ "inputs": [{ "name": "input", "datatype": datatype, "shape": shape, "data": data }] })
}

#[test]
fn a_scalar_input_takes_one_element() {
    let server = server(&[("scalar", onnx::with_scalar())]);
    let described = server.data.get("/v2/models/scalar").ok();
    let shapes = |of: &str| {
        let tensors = described[of].as_array().unwrap().iter();
        tensors.map(|tensor| tensor["shape"].clone()).collect::<Value>()
    };
    assert_eq!((shapes("inputs"), shapes("outputs")), (json!([[-1], [1]]), json!([[-1], []])));
    let config = server.data.get("/v2/models/scalar/config").ok();
    assert_eq!(config["input"][1]["dims"], json!([1]), "{config}");
    let ask = |shape: Value, rates: Value| {
        let x = json!({ "name": "x", "datatype": "FP32", "shape": [2], "data": [1.5, 2.5] });
        let rate = json!({ "name": "rate", "datatype": "INT64", "shape": shape, "data": rates });
        post(&server, "scalar", &json!({ "inputs": [x, rate] }))
    };
    for shape in [json!([1]), json!([])] {
        let answer = ask(shape, json!([16000])).ok();
        assert_eq!(answer["outputs"][1]["data"], json!([16000]), "{answer}");
    }
    ask(json!([2]), json!([1, 2])).refused_by_protocol(400, &["\"rate\"", "shape [2]"]);
    ask(json!([1, 1]), json!([1])).refused_by_protocol(400, &["\"rate\"", "shape [1, 1]"]);
    // Over gRPC, too.
    let tensor = |name: &str, datatype: &str, size: u64| {
        Message::new().text(1, name).text(2, datatype).int(3, size as i64)
    };
    let message = Message::new().text(1, "scalar").message(5, tensor("x", "FP32", 1));
    let message = message.message(5, tensor("rate", "INT64", 1));
    let message = message.bytes(7, &1.5_f32.to_le_bytes()).bytes(7, &7_i64.to_le_bytes());
    let answer = grpc::call(&server.grpc, "ModelInfer", None, &message.into_bytes());
    assert_eq!(answer.status(), 0, "{answer:?}");
    assert!(answer.message.ends_with(&7_i64.to_le_bytes()), "{answer:?}");
}

#[test]
fn dimensions_of_one_name_must_be_equal() {
    let models = [
        ("sum", onnx::with_equal_dims(["rows", "length"])),
        // A dimension without a name, as exporters of PaddlePaddle write it.
        ("open", onnx::with_equal_dims(["?", "?"])),
    ];
    let server = server(&models);
    let ask = |model: &str, length: usize| {
        let of = |name: &str, length: usize| {
            let data = vec![1.0; 2 * length];
            json!({ "name": name, "datatype": "FP32", "shape": [2, length], "data": data })
        };
        post(&server, model, &json!({ "inputs": [of("a", 3), of("b", length)] }))
    };
    for (model, length) in [("sum", 3), ("open", 3), ("open", 1)] {
        let answer = ask(model, length).ok();
        assert_eq!(answer["outputs"][0]["data"], json!([2.0, 2.0, 2.0, 2.0, 2.0, 2.0]), "{model}");
    }
    // ONNX Runtime would repeat it.
    let why = "dimension 1 of input \"b\" is 1, but dimension 1 of input \"a\" is 3: the model \
               calls both \"length\"";
    ask("sum", 1).refused_by_protocol(400, &[why]);
}

#[test]
fn bytes_that_are_not_utf8_reach_the_model_and_a_nul_does_not() {
    let server = server(&[("texts", identity("bytes"))]);
    let ask = |texts: &[&[u8]], binary: bool| {
        let bytes: Vec<u8> = texts
            .iter()
            .flat_map(|text| [&(text.len() as u32).to_le_bytes()[..], text].concat())
            .collect();
        let shape = [1, texts.len()];
        let input = BinaryTensor { name: "input", datatype: "BYTES", shape: &shape, data: &bytes };
        let wanted = json!({ "parameters": { "binary_data_output": binary } });
        let answer = server.data.infer("/v2/models/texts/infer", &infer_body(&[input], wanted));
        (answer, bytes)
    };
    // Short and long ones, because short texts lie elsewhere.
    let long = [0xff; 1000];
    let (answer, bytes) =
        ask(&[&b"\xff\xfe"[..], b"", b"caf\xe9", &long, "grüße".as_bytes()], true);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.body.ends_with(&bytes), "{:?}", answer.body);
    let (answer, _) = ask(&[&b"\xff"[..]], false);
    answer.refused_by_protocol(400, &["output \"output\"", "not UTF-8", "binary_data_output"]);
    let (answer, _) = ask(&[&b"a"[..], b"\xffb\0c"], true);
    answer.refused_by_protocol(400, &["\"input\"", "element 1 has a NUL byte"]);
}

#[test]
fn floats_that_json_has_not_are_answered_as_triton_writes_them() {
    let server = server(&[("single", identity("fp32")), ("double", identity("fp64"))]);
    let singles = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.5].map(f32::to_le_bytes).concat();
    let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5].map(f64::to_le_bytes).concat();
    for (model, datatype, data) in [("single", "FP32", singles), ("double", "FP64", doubles)] {
        let input = BinaryTensor { name: "input", datatype, shape: &[1, 4], data: &data };
        let path = format!("/v2/models/{model}/infer");
        let answer = server.data.infer(&path, &infer_body(&[input], json!({})));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let expected = "\"data\":[NaN,Infinity,-Infinity,0.5]";
        assert!(answer.text().contains(expected), "{}", answer.text());
    }
}

#[test]
fn a_body_that_is_not_json_is_told_what_to_do() {
    let server = server(&[("single", identity("fp32"))]);
    let ask = |body: &[u8]| server.data.post("/v2/models/single/infer", body);
    let good = input("FP32", &json!([1, 1]), &json!([1.0])).to_string();
    for token in ["NaN", "-Infinity"] {
        let body = good.replace("1.0", token);
        ask(body.as_bytes()).refused_by_protocol(400, &[token, "is not JSON", "as binary data"]);
    }
    let marked = [b"\xef\xbb\xbf", good.as_bytes()].concat();
    ask(&marked).refused_by_protocol(400, &["byte order mark", "send UTF-8 without one"]);
    ask(good.replace("1.0", "1e39").as_bytes()).refused_by_protocol(400, &["1e39 is out of FP32"]);
    ask(b"[]").refused_by_protocol(400, &["expected an object with inputs"]);
    for path in ["/v2/repository/index", "/v2/repository/models/single/load"] {
        let operator = server.data.with_token(crate::support::setup::ADMIN_TOKEN);
        operator.post(path, b"[]").refused_by_protocol(400, &["expected an object"]);
        operator.post(path, b"\xef\xbb\xbf{}").refused_by_protocol(400, &["byte order mark"]);
    }
}

#[test]
fn an_output_is_asked_for_once() {
    let server = server(&[("single", identity("fp32"))]);
    let mut body = input("FP32", &json!([1, 1]), &json!([1.0]));
    body["outputs"] = json!([{ "name": "output" }, { "name": "output" }]);
    post(&server, "single", &body).refused_by_protocol(400, &["\"output\" is asked for twice"]);
    let tensor = Message::new().text(1, "input").text(2, "FP32").int(3, 1).int(3, 1);
    let message = Message::new().text(1, "single").message(5, tensor);
    let message = message.message(6, Message::new().text(1, "output"));
    let message = message.message(6, Message::new().text(1, "output")).bytes(7, &[0; 4]);
    let answer = grpc::call(&server.grpc, "ModelInfer", None, &message.into_bytes());
    assert_eq!(answer.status(), INVALID_ARGUMENT, "{answer:?}");
}

#[test]
fn a_model_that_is_not_there_is_told_in_tritons_words() {
    let server = server(&[("single", identity("fp32"))]);
    let operator = server.data.with_token(crate::support::setup::ADMIN_TOKEN);
    for path in ["/v2/models/none", "/v2/models/none/config", "/v2/models/none/stats"] {
        let answer = server.data.get(path);
        answer.refused_by_protocol(404, &["Request for unknown model: 'none' is not found"]);
    }
    let version = server.data.get("/v2/models/single/versions/9999");
    let words = "Request for unknown model: 'single' version 9999 is not found";
    version.refused_by_protocol(404, &[words, "is loaded"]);
    operator.post("/v2/repository/models/single/unload", b"").ok();
    let unloaded = post(&server, "single", &input("FP32", &json!([1, 1]), &json!([1.0])));
    let words = "Request for unknown model: 'single' has no available versions";
    unloaded.refused_by_protocol(503, &[words]);
    let message = Message::new().text(1, "none").into_bytes();
    let answer = grpc::call(&server.grpc, "ModelMetadata", None, &message);
    assert_eq!(answer.status(), NOT_FOUND, "{answer:?}");
    let text = answer.header("grpc-message").replace("%20", " ").replace("%27", "'");
    assert!(text.starts_with("Request for unknown model: 'none' is not found"), "{text}");
}

#[test]
fn a_message_that_is_not_the_protocols_is_the_clients_fault() {
    let server = server(&[("single", identity("fp32"))]);
    let tensor = || Message::new().text(1, "input").text(2, "FP32").int(3, 1).int(3, 1);
    let message = |tensor: Message| Message::new().text(1, "single").message(5, tensor);
    let contents = Message::new().bytes(6, &1.5_f32.to_le_bytes());
    let answered = message(tensor().message(5, contents)).into_bytes();
    let answer = grpc::call(&server.grpc, "ModelInfer", None, &answered);
    assert_eq!(answer.status(), 0, "{answer:?}");
    let both = Message::new().bytes(6, &1.5_f32.to_le_bytes()).bytes(2, &[1]);
    for (method, bytes) in [
        // Names that are numbers, that are not UTF-8, and that end early.
        ("ModelInfer", Message::new().int(1, 7).into_bytes()),
        ("ModelInfer", Message::new().bytes(1, b"\xff").into_bytes()),
        ("ModelInfer", vec![0x0a, 9, b'x']),
        ("ModelMetadata", Message::new().int(1, 7).into_bytes()),
        ("RepositoryIndex", Message::new().bytes(1, b"\xff").into_bytes()),
        // Two kinds of contents.
        ("ModelInfer", message(tensor().message(5, both)).into_bytes()),
    ] {
        let answer = grpc::call(&server.grpc, method, None, &bytes);
        assert_eq!(answer.status(), INVALID_ARGUMENT, "{method} {bytes:?}: {answer:?}");
    }
}

#[test]
fn a_model_may_be_called_as_the_path_of_all_statistics() {
    let server = server(&[("single", identity("fp32")), ("stats", identity("fp64"))]);
    post(&server, "stats", &input("FP64", &json!([1, 1]), &json!([1.0]))).ok();
    let answer = server.data.get("/v2/models/stats").ok();
    assert_eq!(
        (&answer["name"], &answer["inputs"][0]["datatype"]),
        (&json!("stats"), &json!("FP64"))
    );
    let names = answer["model_stats"].as_array().unwrap().iter().map(|model| &model["name"]);
    assert!(names.eq(["single", "stats"]), "{answer}");
    assert_eq!(server.data.get("/v2/models/stats/stats").ok()["model_stats"][0]["name"], "stats");
}

#[test]
fn inputs_that_the_runtime_refuses_are_the_clients_fault() {
    let server =
        server(&[("table", files::fixture("look-up.onnx")), ("scaled", onnx::look_up_scaled())]);
    // Also beside an input that has a default.
    let ask = |index: i64| {
        let mut body = input("INT64", &json!([1]), &json!([index]));
        body["inputs"][0]["name"] = json!("x");
        let scale = json!({ "name": "scale", "datatype": "FP32", "shape": [1], "data": [10] });
        body["inputs"].as_array_mut().unwrap().push(scale);
        post(&server, "scaled", &body)
    };
    assert_eq!(ask(2).ok()["outputs"][0]["data"], json!([30.0]));
    ask(9).refused_by_protocol(400, &["out of data bounds", "idx=9"]);
    let ask = |row: i64| post(&server, "table", &input("INT64", &json!([1, 1]), &json!([row])));
    assert_eq!(ask(2).ok()["outputs"][0]["data"], json!([20]));
    let refused = ask(9);
    refused.refused_by_protocol(400, &["out of data bounds", "idx=9"]);
    let text = refused.text();
    assert!(![".cc", ".h:", "onnxruntime::", "/"].iter().any(|word| text.contains(word)), "{text}");
}

#[test]
fn classes_have_the_labels_of_the_models_configuration() {
    let scalar = onnx::with_scalar();
    let models = [("single", identity("fp32")), ("pictures", onnx::pictures()), ("scalar", scalar)];
    let server = server(&models);
    let labels = json!({ "output": [{ "name": "output", "labels": ["cat", "dog"] }] });
    server.put_json("models/single/config", &labels);
    let ask = |binary: bool| {
        let mut body = input("FP32", &json!([2, 3]), &json!([0.25, 0.75, 0.5, 3, -1, 2]));
        let parameters = json!({ "classification": 2, "binary_data": binary });
        body["outputs"] = json!([{ "name": "output", "parameters": parameters }]);
        post(&server, "single", &body)
    };
    let output = &ask(false).ok()["outputs"][0];
    let expected = ["0.750000:1:dog", "0.500000:2", "3.000000:0:cat", "2.000000:2"];
    assert_eq!((&output["datatype"], &output["shape"]), (&json!("BYTES"), &json!([2, 2])));
    assert_eq!(output["data"], json!(expected));
    let binary = ask(true);
    assert!(binary.body.ends_with(b"\x0a\0\0\x002.000000:2"), "{}", binary.text());
    let config = |model: &str| server.data.get(&format!("/v2/models/{model}/config")).ok();
    let single = config("single");
    assert_eq!(single["output"][0]["label_filename"], "labels.txt", "{single}");
    assert_eq!(single["input"][0]["format"], "FORMAT_NONE", "{single}");
    // An image can have its channels in one place only, unless the configuration says otherwise.
    let format = || config("pictures")["input"][0]["format"].clone();
    assert_eq!(format(), "FORMAT_NCHW");
    for format_name in ["FORMAT_NONE", "FORMAT_NHWC"] {
        let document = json!({ "input": [{ "name": "x", "format": format_name }] });
        server.put_json("models/pictures/config", &document);
        assert_eq!(format(), format_name);
    }
    // Two outputs have two files.
    let both = json!([{ "name": "y", "labels": ["a"] }, { "name": "rate_out", "labels": ["b"] }]);
    server.put_json("models/scalar/config", &json!({ "output": both }));
    let scalar = config("scalar");
    for (index, name) in ["labels_y.txt", "labels_rate_out.txt"].into_iter().enumerate() {
        assert_eq!(scalar["output"][index]["label_filename"], name, "{scalar}");
    }
    // A client can send back what it got, without the files.
    let operator = server.data.with_token(crate::support::setup::ADMIN_TOKEN);
    let load = json!({ "parameters": { "config": scalar.to_string() } }).to_string();
    operator.post("/v2/repository/models/scalar/load", load.as_bytes()).ok();
    assert_eq!(server.admin.get("/admin/v1/models/scalar/config").ok()["output"], both);
    // They outlast a restart.
    let server = server.kill().start();
    let output = server.data.get("/v2/models/single/config").ok()["output"][0].clone();
    assert_eq!(output["label_filename"], "labels.txt");
    assert_eq!(server.admin.get("/admin/v1/models/single/config").ok()["output"], labels["output"]);
}
