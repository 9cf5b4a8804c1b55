//! `gristmill bench --explain`: the parts of a load, and what it says when it cannot tell them.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::{SHORT, bench, stalling};
use crate::support::cli::Cli;
use crate::support::files;
use crate::support::server::Server;

#[test]
fn a_load_is_explained_by_its_parts() {
    let server = Server::with_acme();
    let cli = Cli::of(&server);
    let body = cli.write("seven.png", files::digit(7));
    let url = format!("{}/v1/acme/infer/digits", server.data.address());
    let saved = cli.folder().join("saved.json");
    let arguments =
        ["--body", body.to_str().unwrap(), "-c", "4", "--save", saved.to_str().unwrap()];
    let explained = bench(&cli, &[&[&*url, "--explain"], &arguments[..]].concat());
    assert_eq!(
        [&explained["tenant"], &explained["pipeline"], &explained["model"]],
        ["acme", "digits", "digits"]
    );
    let parts = explained["parts"].as_array().unwrap();
    let names: Vec<_> = parts.iter().map(|part| &part["part"]).collect();
    assert_eq!(names, ["client", "http", "pre", "infer", "post"]);
    assert!(parts.iter().all(|part| part["cpu_us"].as_f64() > Some(0.0)), "{explained}");
    for figure in ["per_second", "p50_us", "p99_us", "batch_rows", "server_cpu_us"] {
        let values = &explained["figures"][figure];
        assert!(values["predicted"].as_f64() > Some(0.0), "{figure}: {explained}");
        assert!(values["measured"].as_f64() > Some(0.0), "{figure}: {explained}");
    }
    assert!(explained["bottleneck"]["name"].is_string(), "{explained}");
    // The tenant may not call this model by itself.
    assert_eq!(explained["batches_are_measured"], false);
    let changes = explained["changes"].as_array().unwrap();
    let gains: Vec<_> = changes.iter().map(|change| change["gain"].as_f64().unwrap()).collect();
    assert!(gains.len() >= 5 && gains.is_sorted_by(|one, other| one >= other), "{explained}");
    let kept: Value = serde_json::from_slice(&std::fs::read(saved).unwrap()).unwrap();
    assert_eq!(kept["measured"][0], explained["measured"]);
}

#[test]
fn a_load_of_a_handler_is_explained_by_its_parts() {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    server.model("ranker");
    server.plugin("acme", "pages", "digits-pages");
    let handler = |models: Value| json!({ "handler": "pages", "models": models });
    server.pipeline("acme", "pages", &handler(json!({ "digits": "digits" })));
    let cli = Cli::of(&server);
    let images = [1, 2].map(|digit| BASE64_STANDARD.encode(files::digit(digit)));
    let body = cli.write("pages.json", json!({ "images": images }).to_string());
    let url = format!("{}/v1/acme/infer/pages", server.data.address());
    let arguments = [&*url, "--explain", "--body", body.to_str().unwrap(), "-c", "2"];
    let explained = bench(&cli, &arguments);
    assert_eq!((&explained["model"], &explained["rows"]), (&json!("digits"), &json!(2)));
    let parts = explained["parts"].as_array().unwrap();
    let names: Vec<_> = parts.iter().map(|part| &part["part"]).collect();
    assert_eq!(names, ["client", "http", "handle", "infer"]);
    assert!(parts.iter().all(|part| part["cpu_us"].as_f64() > Some(0.0)), "{explained}");
    let two = json!({ "digits": "digits", "other": "ranker" });
    server.pipeline("acme", "pages", &handler(two));
    let error = cli.refused(&["bench", &url, "--explain", "--body", body.to_str().unwrap()]);
    assert!(error.contains("pipeline pages: it runs digits, ranker, and --explain"), "{error}");
}

#[test]
fn a_load_of_a_model_is_explained_in_words() {
    let server = Server::with_acme();
    let url = format!("{}/v1/acme/v2/models/ranker", server.data.address());
    let arguments = ["bench", &url, "--rows", "8", "-c", "2", "--explain"];
    let text = Cli::of(&server).ok(&[&arguments[..], &SHORT].concat());
    let words = [
        "model ranker, 8 rows a request, 2 connections",
        "PART",
        "client",
        "http",
        "infer",
        "ROWS",
        "16",
        "PREDICTED",
        "answers a second",
        "p50",
        "p99",
        "rows of a batch",
        "Bottleneck: ",
        "half the time in the model",
    ];
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in\n{text}"));
}

#[test]
fn what_cannot_be_explained_is_said() {
    let server = Server::with_acme();
    let cli = Cli::of(&server);
    let address = server.data.address();
    for (url, named) in [
        (format!("{address}/livez"), &["/livez is not a pipeline or a model of Gristmill"][..]),
        (stalling(Duration::ZERO), &["/ is not a pipeline or a model of Gristmill"]),
        (format!("{address}/v1/nobody/infer"), &["cannot read tenant nobody"]),
        (format!("{address}/v1/acme/infer/none"), &["cannot read pipeline none"]),
        (format!("{address}/v2/models/none"), &["the model none does not serve"]),
        ("http://192.0.2.1/v1/acme/infer".to_owned(), &["192.0.2.1:80", "server's machine"]),
    ] {
        let error = cli.refused(&["bench", &url, "--explain"]);
        named.iter().for_each(|named| assert!(error.contains(named), "{url}: {error}"));
    }
    // The body is not an image.
    let url = format!("{address}/v1/acme/infer/digits");
    let body = cli.write("text.txt", "no picture");
    let arguments = ["bench", &url, "--explain", "--body", body.to_str().unwrap()];
    let error = cli.refused(&arguments);
    assert!(error.contains("the server answers 415"), "{error}");
    let error = Cli::new().refused(&["bench", &url, "--explain"]);
    assert!(error.contains("no token"), "{error}");
}
