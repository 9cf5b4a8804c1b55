//! `gristmill model import`: a model repository of Triton on a server.

use serde_json::{Value, json};

use crate::support::admin_api::{digest, read};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

const CONFIG: &str = r#"
name: "ranker"
platform: "onnxruntime_onnx"
max_batch_size: 16
input [ { name: "input" data_type: TYPE_FP32 dims: [ 32 ] } ]
output [ { name: "output" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "labels.txt" } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  preserve_ordering: true
}
version_policy { all { } }
input { name: "image" data_type: TYPE_FP32 dims: [ 3 ] }
"#;

/// A repository with two models and an ensemble.
fn repository(cli: &Cli) {
    cli.write("repository/digits/1/model.onnx", files::model("digits"));
    cli.write("repository/ranker/config.pbtxt", CONFIG);
    cli.write("repository/ranker/labels.txt", "click\n");
    for version in [2, 7] {
        let file = format!("repository/ranker/{version}/model.onnx");
        cli.write(&file, files::model("ranker"));
    }
    let ensemble = "platform: \"ensemble\"\nensemble_scheduling { step [ { model_name: \"x\" } ] }";
    cli.write("repository/both/config.pbtxt", ensemble);
    cli.write("repository/both/1/.keep", "");
    cli.write("repository/README.md", "");
}

/// The score of the first recorded row, and the version that has made it.
#[track_caller]
fn score(server: &Server, below: &str) -> (f64, Value) {
    let (rows, _) = &files::ranker_golden()[0];
    let input = json!({ "name": "input", "datatype": "FP32", "shape": [1, 32], "data": rows[0] });
    let body = json!({ "inputs": [input] }).to_string();
    let path = format!("/v2/models/ranker{below}/infer");
    let answer = server.data.post(&path, body.as_bytes()).ok();
    (answer["outputs"][0]["data"][0].as_f64().unwrap(), answer["model_version"].clone())
}

#[test]
fn a_repository_of_triton_is_imported() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    let cli = Cli::of(&server);
    repository(&cli);
    let import = ["model", "import", "repository"];

    // A dry run asks no server.
    let dry = Cli::new();
    repository(&dry);
    let ended = dry.run(&[&import[..], &["--dry-run"]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expected = [
        "digits:\n  version 1: repository/digits/1/model.onnx, ",
        "ranker:\n  version 2: repository/ranker/2/model.onnx, ",
        "\"preferred_batch_sizes\":[4,8]",
        "repository/ranker/config.pbtxt:10: dynamic_batching.preserve_ordering: ",
    ];
    assert_names(&ended.out, &expected);
    let faults = [
        "cannot import both: repository/both/config.pbtxt:1: platform is \"ensemble\"",
        "error: 1 of 3 models cannot be imported: both",
    ];
    assert_names(&ended.stderr, &faults);

    let ended = cli.run(&import);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let expected = [
        "digits is live in release 1",
        "ranker is live in release 2",
        "versions: 2, 7",
        ":10: ",
        "ignored: repository/ranker/config.pbtxt:13: input \"image\": the model has no such input: \
         input",
    ];
    assert_names(&ended.out, &expected);
    assert_names(&ended.stderr, &faults);
    let config = read(&server, "models/ranker/config");
    let policy = json!({ "specific": { "versions": [2, 7] } });
    assert_eq!((&config["max_batch_size"], &config["version_policy"]), (&json!(16), &policy));
    assert_eq!(config["preferred_batch_sizes"], json!([4, 8]));
    assert_eq!(config["max_queue_delay_us"], 100);
    assert_eq!(config["output"], json!([{ "name": "output", "labels": ["click"] }]));
    let ranker = read(&server, "models/ranker");
    assert_eq!(ranker["version"], 7);
    assert_eq!(ranker["kept_versions"]["2"]["digest"], digest(&files::model("ranker")));
    assert_eq!(read(&server, "models/digits/config")["max_batch_size"], "auto");

    server.put_json("tenants/acme", &json!({ "open": true, "models": ["ranker"] }));
    let (_, scores) = &files::ranker_golden()[0];
    for (below, version) in [("", "7"), ("/versions/2", "2")] {
        let (score, by) = score(&server, below);
        assert!((score - scores[0]).abs() < 1e-4, "{score} is not {}", scores[0]);
        assert_eq!(by, version);
    }
}

#[test]
fn a_second_import_brings_only_what_is_new() {
    let server = Server::start();
    let cli = Cli::of(&server);
    repository(&cli);
    let import = ["model", "import", "repository", "--model", "ranker"];
    let first = cli.json(&import);
    assert_eq!(first[0]["versions"], json!([2, 7]));
    let again = cli.json(&import);
    assert_eq!((&again[0]["changed"], &again[0]["release"]), (&json!(false), &json!(1)));
    // A new version has a higher number.
    cli.write("repository/ranker/8/model.onnx", files::model("ranker"));
    let next = cli.json(&import);
    assert_eq!((&next[0]["versions"], &next[0]["release"]), (&json!([7, 8]), &json!(2)));
    let ranker = read(&server, "models/ranker");
    assert_eq!(ranker["version"], 8);
    assert_eq!(ranker["kept_versions"].as_object().unwrap().len(), 2);

    let error = cli.refused(&["model", "import", "repository", "--model", "none"]);
    assert_names(&error, &["--model: repository has no none: it has both, digits, ranker"]);
    let error = cli.refused(&["model", "import", "repository/ranker"]);
    assert_names(&error, &["has a config.pbtxt, so it is a model: give the folder around it"]);
    assert_names(&cli.refused(&["model", "import", "nowhere"]), &["nowhere: No such file"]);
    let error = cli.refused(&["model", "import", "repository/README.md"]);
    assert_names(&error, &["README.md is a file", "unpack an archive first"]);
}
