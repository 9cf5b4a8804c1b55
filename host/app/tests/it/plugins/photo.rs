//! What is on a photo: samples in Rust and in Python around a real classifier of ImageNet say what
//! PyTorch says. models/photo/golden.py has recorded that.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::support::client::TestAnswer;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

/// The samples' pipelines, which have the names of their plugins.
const SAMPLES: [&str; 2] = ["photo", "photo-python"];

/// The difference of a probability from PyTorch's: pictures are decoded and resized by other code.
const TOLERANCE: f64 = 0.02;

/// A server with the plugins of both samples, and the labels that they name.
fn start() -> Server {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("demo");
    for plugin in SAMPLES {
        server.plugin("demo", plugin, plugin);
    }
    server.put("tenants/demo/assets/photo-labels", &files::fetched("photo", "labels.txt"));
    server
}

/// Put both pipelines as `cargo xtask demo --all` deploys them, with time for a busy machine and
/// this model.
fn put_pipelines(server: &Server, model: &str) {
    for name in SAMPLES {
        let mut pipeline = files::manifest_of_all()["tenants"]["demo"]["pipelines"][name].clone();
        pipeline["model"] = json!(model);
        pipeline["limits"] = json!({ "cpu_ms": 60_000, "timeout_ms": 600_000 });
        server.pipeline("demo", name, &pipeline);
    }
}

fn ask(server: &Server, sample: &str, content_type: &str, body: &[u8]) -> TestAnswer {
    let headers = [("content-type", content_type)];
    server.data.send("POST", &format!("/v1/demo/infer/{sample}"), &headers, Some(body))
}

fn ask_json(server: &Server, sample: &str, body: &Value) -> TestAnswer {
    ask(server, sample, "application/json; charset=utf-8", body.to_string().as_bytes())
}

/// A form with a text, and with the photo as the file `name`.
fn ask_form(server: &Server, sample: &str, name: &str, photo: &[u8]) -> TestAnswer {
    let note = "--edge\r\ncontent-disposition: form-data; name=\"note\"\r\n\r\nmine\r\n";
    let file = format!(
        "--edge\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"photo\"\r\n\
         content-type: application/octet-stream\r\n\r\n"
    );
    let body = [note.as_bytes(), file.as_bytes(), photo, b"\r\n--edge--\r\n"].concat();
    ask(server, sample, "multipart/form-data; boundary=edge", &body)
}

/// Fails unless the five best labels are these, with about these probabilities.
#[track_caller]
fn assert_says(what: &str, answer: &Value, expected: &Value) {
    let top = answer["top"].as_array().unwrap();
    let expected = expected.as_array().unwrap();
    let labels = |top: &[Value]| top.iter().map(|one| one["label"].clone()).collect::<Vec<_>>();
    assert_eq!(labels(top), labels(expected), "{what}");
    let probability = |one: &Value| one["probability"].as_f64().unwrap();
    for (one, expected) in top.iter().zip(expected) {
        let (one, expected) = (probability(one), probability(expected));
        assert!((one - expected).abs() <= TOLERANCE, "{what}: {answer}, PyTorch {expected}");
    }
    assert_eq!(answer["prediction"], top[0]["label"], "{what}");
    assert_eq!(answer["probability"], top[0]["probability"], "{what}");
}

#[test]
fn both_samples_say_of_each_photo_what_pytorch_says() {
    let server = start();
    let file = files::manifest_of_all()["models"]["photo"]["file"].clone();
    assert_eq!(file, "../target/models/photo/efficientnet-lite0.onnx");
    server.put("models/photo", &files::fetched("photo", "efficientnet-lite0.onnx"));
    put_pipelines(&server, "photo");
    let batching = server.status()["models"]["photo"]["batching"].clone();
    assert_eq!(batching["is_on"], true, "models/photo/README.md says that it is: {batching}");
    let golden: Map<String, Value> =
        serde_json::from_slice(&files::of_model("photo", "golden.json")).unwrap();
    assert_eq!(golden.len(), 3);
    for (name, expected) in &golden {
        let photo = files::fetched("photo", name);
        let (base64, is_png) = (STANDARD.encode(&photo), name.ends_with(".png"));
        let media_type = if is_png { "image/png" } else { "image/jpeg" };
        let url = format!("data:{media_type};base64,{base64}");
        let body = ask(&server, SAMPLES[0], media_type, &photo).ok();
        assert_says(name, &body, expected);
        for sample in SAMPLES {
            for answer in [
                ask(&server, sample, media_type, &photo),
                ask_form(&server, sample, "image", &photo),
                ask_json(&server, sample, &json!({ "image": base64 })),
                ask_json(&server, sample, &json!({ "image": url })),
            ] {
                // The host prepares the tensor in the same way for both, and runs the same model.
                assert_eq!(answer.ok(), body, "{sample}: {name}");
            }
        }
    }
}

#[test]
fn what_is_not_a_photo_is_refused_with_the_field() {
    let server = start();
    // No request reaches the model.
    server.model("digits");
    put_pipelines(&server, "digits");
    let photo = files::fetched("photo", "rocket.jpg");
    for sample in SAMPLES {
        let text = ask(&server, sample, "image/jpeg", b"a photo");
        text.refused(415, "unsupported_media_type", &["not a JPEG, PNG, WebP, BMP or GIF"]);
        let cut = ask(&server, sample, "image/jpeg", &photo[..photo.len() / 2]);
        cut.refused(400, "invalid_request", &["malformed image"]);
        let other = ask_form(&server, sample, "photo", &photo);
        other.refused(400, "invalid_request", &["the form has no part", "image", "note", "photo"]);
        for (body, named) in [
            (json!({ "picture": "" }), "/image is missing"),
            (json!({ "image": 7 }), "/image is a number"),
            (json!({ "image": "iVBORw0K!" }), "/image: base64 has '!' at position 8"),
        ] {
            ask_json(&server, sample, &body).refused(400, "invalid_request", &[named]);
        }
        let text = ask_json(&server, sample, &json!({ "image": "TWFu" }));
        text.refused(415, "unsupported_media_type", &["not a JPEG, PNG, WebP, BMP or GIF"]);
    }
}
