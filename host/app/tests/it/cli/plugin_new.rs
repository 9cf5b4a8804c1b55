//! Plugins that fit a model.

use std::process::Command;
use std::time::SystemTime;
use std::{env, fs};

use serde_json::{Value, json};

use crate::support::admin_api::make;
use crate::support::cli::{Cli, gristmill};
use crate::support::files;
use crate::support::onnx::{Graph, Set};
use crate::support::server::Server;
use crate::support::words::assert_names;

/// The path of a model, as the command prints it.
fn model(name: &str) -> String {
    files::model_path(name).canonicalize().unwrap().display().to_string()
}

/// Make a plugin for models, and run its sample request through it and them.
fn answer(language: &str, models: &[String]) -> Value {
    let cli = Cli::new().with_tools();
    let flags = models.iter().flat_map(|model| ["--model", model.as_str()]).collect::<Vec<_>>();
    let new = ["plugin", "new", "fitted", "--language", language];
    let made = cli.ok(&[&new[..], &flags].concat());
    let next = format!("gristmill plugin test {}", flags.join(" "));
    let manifest = "[tenants.TENANT.plugins.fitted]\n  folder = \"fitted\"";
    assert!(made.contains(&next) && made.contains(manifest), "{made}");
    let test = ["plugin", "test", "fitted", "--update"];
    let tested = cli.ok(&[&test[..], &flags].concat());
    // All run on the backend that a server has.
    assert_eq!(tested.matches("(onnxruntime)").count(), models.len(), "{tested}");
    // Its own unit tests. Those in Rust would compile the SDK once more.
    let python = env::var("GRISTMILL_TEST_CLIENTS").expect("run cargo xtask test");
    let tests: &[&str] = match language {
        "python" => &[&python, "-m", "pytest", "-q"],
        "js" => &["node", "--test"],
        "c" => &["make", "test"],
        _ => &["true"],
    };
    let mut command = Command::new(tests[0]);
    let ended =
        command.args(&tests[1..]).current_dir(cli.folder().join("fitted")).output().unwrap();
    assert!(ended.status.success(), "{language}: {}", String::from_utf8_lossy(&ended.stdout));
    let requests = fs::read_dir(cli.folder().join("fitted/requests")).unwrap();
    let paths: Vec<_> = requests.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    let expectation = cli.folder().join("fitted/requests/sample.expected.json");
    let expectation: Value = serde_json::from_slice(&fs::read(expectation).unwrap()).unwrap();
    assert_eq!(expectation["status"], 200);
    expectation["json"].clone()
}

#[test]
fn a_plugin_for_a_model_of_pictures_answers_at_once() {
    let mut answers = Vec::new();
    for language in ["python", "js", "rust", "c"] {
        let top = answer(language, &[model("digits")])["top"].as_array().unwrap().clone();
        assert_eq!(top.len(), 5);
        let scores: Vec<_> = top.iter().map(|found| found["score"].as_f64().unwrap()).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        answers.push(top.iter().map(|found| found["index"].clone()).collect::<Vec<_>>());
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
}

#[test]
fn a_plugin_for_a_model_of_rows_answers_at_once() {
    // One in Rust, which takes longest to build, answers in another test.
    for language in ["python", "js", "c"] {
        let scores = answer(language, &[model("ranker")])["output"].clone();
        assert_eq!(scores.as_array().map(Vec::len), Some(2), "{scores}");
        assert!(scores[0][0].is_f64() && scores[0] == scores[1], "{scores}");
    }
}

#[test]
fn a_handler_for_several_models_answers_at_once() {
    for language in ["python", "js", "rust", "c"] {
        let flags = ["look", "rank"].map(|name| {
            let of = if name == "look" { "digits" } else { "ranker" };
            format!("{name}={}", model(of))
        });
        let answer = answer(language, &flags);
        assert_eq!(answer["look"]["top"].as_array().map(Vec::len), Some(5), "{answer}");
        let scores = &answer["rank"]["output"];
        assert_eq!(scores.as_array().map(Vec::len), Some(2), "{language}: {answer}");
        assert!(scores[0][0].is_f64() && scores[0] == scores[1], "{language}: {answer}");
    }
}

/// A model of texts: a vector of four numbers for each token, and the number of tokens.
fn model_of_texts() -> Vec<u8> {
    let as_float = [("to", Set::Int(1))];
    Graph::default()
        .numbers_in("input_ids", &[-1, -1])
        .numbers_in("attention_mask", &[-1, -1])
        .constant("last", &[1], &[-1])
        .fractions("factors", &[4], &[0.1, 0.2, 0.3, 0.4])
        .node_set("Cast", &["input_ids"], &["ids"], &as_float)
        .node("Unsqueeze", &["ids", "last"], &["columns"])
        .node("Mul", &["columns", "factors"], &["last_hidden_state"])
        .node_set("Cast", &["attention_mask"], &["mask"], &as_float)
        .node_set("ReduceSum", &["mask", "last"], &["lengths"], &[("keepdims", Set::Int(0))])
        .floats_out("last_hidden_state", &[-1, -1, 4])
        .floats_out("lengths", &[-1])
        .model()
}

#[test]
fn a_plugin_for_a_model_of_texts_answers_at_once() {
    // The tokenizer beside the model is taken.
    let exported = tempfile::tempdir().unwrap();
    let tokenizer = files::root().join("host/text/tests/fixtures/word_piece.json");
    fs::copy(&tokenizer, exported.path().join("tokenizer.json")).unwrap();
    let model = exported.path().canonicalize().unwrap().join("model.onnx");
    fs::write(&model, model_of_texts()).unwrap();
    let models = [model.display().to_string()];
    let answers = ["python", "js", "rust", "c"].map(|language| answer(language, &models));
    for answer in &answers {
        assert_eq!(answer["lengths"], answers[0]["lengths"], "{answer}");
        assert!(answer["lengths"][1].as_f64().unwrap() >= 2.0, "{answer}");
    }
    let [python, js, rust, c] = answers.map(|answer| answer["last_hidden_state"].clone());
    let vector = python[1].as_array().unwrap();
    let square: f64 = vector.iter().map(|value| value.as_f64().unwrap().powi(2)).sum();
    assert!(vector.len() == 4 && (square - 1.0).abs() < 1e-5, "{python}");
    assert!(js == python && rust == python, "{python}, {js}, {rust}");
    // In C no function makes one vector of those of a text's tokens.
    assert_eq!(c, json!([2, 32, 4]));
}

#[test]
fn a_tokenizer_is_that_of_a_model_of_texts() {
    let cli = Cli::new();
    cli.write("model.onnx", model_of_texts());
    cli.write("no.json", "{}");
    let new = ["plugin", "new", "fitted", "--language", "python", "--model"];
    let refused = |more: &[&str]| cli.refused(&[&new[..], more].concat());
    let ranker = model("ranker");
    let error = refused(&[&ranker, "--tokenizer", "no.json"]);
    assert_names(&error, &["no.json is not a tokenizer.json", "no object \"model\""]);
    cli.write("words.json", r#"{ "model": {} }"#);
    let error = refused(&[&ranker, "--tokenizer", "words.json"]);
    assert_names(&error, &["--tokenizer is given, but no model takes tokens", "input_ids"]);
    let error = refused(&["model.onnx", "--tokenizer", "none.json"]);
    assert_names(&error, &["--tokenizer: cannot read none.json"]);
    // Without one the plugin takes tokens.
    let made = cli.ok(&[&new[..], &["model.onnx"]].concat());
    assert_names(&made, &["With --tokenizer FILE"]);
    let app = fs::read_to_string(cli.folder().join("fitted/app.py")).unwrap();
    assert_names(&app, &["tensor_at(request, \"/input_ids\", Dtype.INT64, [None, None])"]);
}

#[test]
fn a_handler_names_its_models_and_a_pair_has_one() {
    let cli = Cli::new();
    let new = ["plugin", "new", "fitted", "--language", "python"];
    let (digits, ranker) = (model("digits"), model("ranker"));
    let two = ["--model", &digits, "--model", &ranker];
    let made = cli.ok(&[&new[..], &two].concat());
    assert_names(
        &made,
        &["gristmill plugin test --model digits=/", "models.\"ranker\" = \"MODEL\""],
    );
    let app = fs::read_to_string(cli.folder().join("fitted/app.py")).unwrap();
    assert_names(&app, &["models.infer(\"digits\", ", "request.json_blob(\"/digits\")"]);
    let twice = ["--model", &digits, "--model", &digits];
    let error = cli.refused(&[&new[..], &twice].concat());
    assert_names(&error, &["two models have the name digits"]);
    let named = format!("a={digits}");
    let mixed = ["--model", &named, "--model", "b=served"];
    let error = cli.refused(&[&new[..], &mixed].concat());
    assert_names(&error, &["some are files and some are on a server"]);
}

#[test]
fn another_plugin_of_the_same_name_is_not_taken_for_it() {
    let build = |text: &str| {
        let cli = Cli::new().with_tools();
        cli.ok(&["plugin", "new", "same", "--language", "rust"]);
        let source = cli.folder().join("same/src/lib.rs");
        let changed = fs::read_to_string(&source).unwrap().replace("rows read", text);
        fs::write(&source, changed).unwrap();
        // As an older checkout has.
        let file = fs::File::options().write(true).open(&source).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        cli.ok(&["plugin", "build", "same"]);
        fs::read(cli.folder().join("same/same.wasm")).unwrap()
    };
    for text in ["one text of a plugin", "another text of one"] {
        let is_in = |file: &[u8]| file.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(is_in(&build(text)), "{text}");
    }
}

#[test]
fn a_request_that_does_not_fit_the_model_says_how_it_differs() {
    for (language, sizes) in
        [("python", "['any', 32]"), ("js", "[any, 32]"), ("rust", "[any, 32]"), ("c", "[any, 32]")]
    {
        let (cli, model) = (Cli::new().with_tools(), model("ranker"));
        cli.ok(&["plugin", "new", "fitted", "--language", language, "--model", &model]);
        cli.write("fitted/requests/sample.json", "[[1, 2]]");
        let test = ["plugin", "test", "fitted", "--model", &model, "--update", "--allow-failures"];
        cli.ok(&test);
        let expectation = cli.folder().join("fitted/requests/sample.expected.json");
        let text = fs::read_to_string(expectation).unwrap();
        assert_names(&text, &["invalid_request", "the body has the sizes [1, 2]", sizes]);
    }
}

#[test]
fn a_file_that_is_no_model_makes_no_folder() {
    let cli = Cli::new();
    cli.write("no.onnx", "text");
    let new = |language: &str, model: &str| {
        cli.refused(&["plugin", "new", "fitted", "--language", language, "--model", model])
    };
    assert_names(&new("python", "no.onnx"), &["--model: cannot load no.onnx"]);
    assert_names(&new("python", "none.onnx"), &["--model: cannot read none.onnx"]);
    assert!(!cli.folder().join("fitted").exists());
}

#[test]
fn a_plugin_fits_a_model_on_the_server_that_its_token_reaches() {
    let server = Server::start();
    server.ranker("acme");
    server.model("digits");
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    let directory = tempfile::tempdir().unwrap();
    let new = |model: &str| {
        let new = ["plugin", "new", model, "--language", "python", "--model", model];
        let flags = ["--admin", server.admin.address(), "--token", &token];
        gristmill(directory.path(), &[&new[..], &flags].concat())
    };
    let made = new("ranker");
    let printed = String::from_utf8(made.stdout).unwrap();
    assert!(made.status.success() && printed.contains("model = \"ranker\""), "{printed}");
    let app = fs::read_to_string(directory.path().join("ranker/app.py")).unwrap();
    assert!(app.contains("Dtype.FLOAT32, [None, 32])"), "{app}");
    // One that the tenant is not granted is as one that is not there.
    for model in ["digits", "nothing"] {
        let error = String::from_utf8(new(model).stderr).unwrap();
        assert_names(&error, &[&format!("no file {model}"), "serves no model of this name"]);
        assert!(!directory.path().join(model).exists());
    }
}
