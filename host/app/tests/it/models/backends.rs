//! ONNX Runtime if it is there, otherwise tract.

use std::fs;

use serde_json::{Value, json};

use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

#[track_caller]
fn assert_backend(server: &Server, model: &str, backend: &str) {
    assert_eq!(server.status()["models"][model]["backend"], backend);
}

#[test]
fn models_run_on_onnxruntime() {
    let server = Server::start();
    server.digits("acme");
    server.ranker("other");
    assert_eq!(server.status()["backends"], json!(["onnxruntime", "tract"]));
    assert_backend(&server, "digits", "onnxruntime");
    assert_backend(&server, "ranker", "onnxruntime");
}

#[test]
fn without_its_library_models_run_on_tract() {
    let server = Setup::new().onnxruntime(None).start();
    server.digits("acme");
    server.ranker("other");
    assert_eq!(server.status()["backends"], json!(["tract"]));
    assert_backend(&server, "digits", "tract");
    assert_backend(&server, "ranker", "tract");
    server.assert_reads_digits("acme");
    server.assert_ranks("other");
    // Said once, and not again for each model.
    let log = server.log_with("put model ranker");
    let says = |line: &&str| line.contains("slower") || line.contains("library was not found");
    let lines: Vec<_> = log.lines().filter(says).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("WARN") && lines[0].contains("no ONNX Runtime library found"));
}

#[test]
fn a_library_found_that_is_none_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let library = directory.path().join("libonnxruntime.so");
    fs::write(&library, "no library").unwrap();
    let server = Setup::new().onnxruntime(Some(&library)).start();
    server.digits("acme");
    assert_backend(&server, "digits", "tract");
    server.assert_reads("acme", 2);
    let log = server.log_with("ONNX Runtime cannot be used");
    assert!(log.contains(library.to_str().unwrap()), "{log}");
}

#[test]
fn the_library_is_found_in_the_data_directory() {
    let setup = Setup::new().onnxruntime(None);
    let directory = setup.data_dir().join("onnxruntime");
    fs::create_dir_all(&directory).unwrap();
    let library = files::onnxruntime().canonicalize().unwrap();
    std::os::unix::fs::symlink(library, directory.join("libonnxruntime.so")).unwrap();
    let server = setup.start();
    server.digits("acme");
    assert_backend(&server, "digits", "onnxruntime");
}

#[test]
fn a_model_may_choose_its_providers() {
    let server = Server::start();
    server.digits("acme");
    for (provider, backend) in [("tract", "tract"), ("cpu", "onnxruntime")] {
        server.put_json("models/digits/config", &json!({ "providers": [provider] }));
        assert_backend(&server, "digits", backend);
        server.assert_reads_digits("acme");
        let seven = files::digit(7);
        let answer = server.data.post("/v1/acme/infer/digits", &seven);
        assert_eq!(answer.header("gristmill-provider"), provider);
    }
}

/// The digits' labels with their probabilities, as `acme` sees them.
fn readings(server: &Server) -> Vec<(Value, f64)> {
    let read = |digit| {
        let answer = server.data.post("/v1/acme/infer/digits", &files::digit(digit)).ok();
        (answer["label"].clone(), answer["probability"].as_f64().unwrap())
    };
    (0..10).map(read).collect()
}

#[test]
fn session_options_are_taken_and_change_no_answer() {
    let server = Server::start();
    server.digits("acme");
    server.ranker("other");
    let expected = readings(&server);
    for options in [
        json!({ "graph_optimization": "disable" }),
        json!({ "graph_optimization": "basic" }),
        json!({ "graph_optimization": "extended" }),
        json!({ "graph_optimization": "all" }),
        json!({ "memory_arena": false }),
        json!({ "memory_pattern": false }),
        json!({ "threads": 2 }),
        json!({ "inter_op_threads": 2 }),
        json!({
            "graph_optimization": "disable", "memory_arena": false, "memory_pattern": false,
            "threads": 2, "inter_op_threads": 2,
        }),
    ] {
        for model in ["digits", "ranker"] {
            server.put_json(&format!("models/{model}/config"), &options);
            let config = server.status()["models"][model]["config"].clone();
            for (name, value) in options.as_object().unwrap() {
                assert_eq!(&config[name], value, "{name}, of {options}");
            }
            assert_backend(&server, model, "onnxruntime");
        }
        for ((label, probability), expected) in readings(&server).into_iter().zip(&expected) {
            assert_eq!(label, expected.0, "{options}");
            let off = (probability - expected.1).abs();
            assert!(off < 1e-3, "{options}: {probability} is not {}", expected.1);
        }
        server.assert_ranks("other");
    }
    let wrong = json!({ "graph_optimization": "most" });
    let answer = server.admin.put_json("/admin/v1/models/digits/config", &wrong);
    answer.refused(422, "unprocessable", &["graph_optimization", "most"]);
}

#[test]
fn providers_that_are_not_there_are_passed_over_and_the_rest_stand_by() {
    let server = Server::start();
    server.digits("acme");
    server.put_json("models/digits/config", &json!({ "providers": ["cuda", "cpu", "tract"] }));
    server.assert_reads_digits("acme");
    let providers = server.status()["models"]["digits"]["providers"].clone();
    let names: Vec<_> =
        providers.as_array().unwrap().iter().map(|provider| &provider["name"]).collect();
    assert_eq!(names, ["cpu", "tract"]);
    assert!(providers[0]["runs"].as_u64().unwrap() > 0 && providers[0]["faults"] == 0);
}

#[test]
fn a_model_cannot_choose_a_provider_that_is_not_there() {
    let server = Setup::new().onnxruntime(None).start();
    server.digits("acme");
    let before = server.release();
    let config = json!({ "providers": ["cpu"] });
    let answer = server.admin.put_json("/admin/v1/models/digits/config", &config);
    let named = ["model \"digits\"", "onnxruntime: its library was not found"];
    answer.refused(422, "invalid_model", &named);
    assert_eq!(server.release(), before);
    server.assert_reads("acme", 2);
}
