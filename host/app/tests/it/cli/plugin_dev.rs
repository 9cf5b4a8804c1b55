//! `gristmill plugin dev`: a plugin that serves while it is written.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::client::Client;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::setup::Setup;

/// A command that runs, and is told to end when this is dropped.
struct Running {
    process: Child,
    stdout: BufReader<ChildStdout>,
    errors: PathBuf,
}

impl Running {
    fn start(mut command: Command, errors: &Path) -> Self {
        let stderr = fs::File::create(errors).unwrap();
        let mut process = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        Self { process, stdout, errors: errors.to_owned() }
    }

    /// The rest of the next line that has this text.
    #[track_caller]
    fn line_after(&mut self, text: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.stdout.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended without {text:?}: {}", self.errors());
            if let Some((_, rest)) = line.split_once(text) {
                return rest.trim_end().to_owned();
            }
        }
    }

    fn errors(&self) -> String {
        fs::read_to_string(&self.errors).unwrap()
    }

    /// As `kill` does, and not as a terminal.
    fn end(&mut self) {
        if self.process.try_wait().unwrap().is_none() {
            let ended = Command::new("kill").arg(self.process.id().to_string()).status();
            assert!(ended.unwrap().success());
            self.process.wait().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends its server.
        self.end();
    }
}

/// Copy the files of a plugin of the repository.
fn copy(plugin: &str, files: &[&str], to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in files {
        let from = files::root().join("plugins").join(plugin).join(file);
        fs::copy(&from, to.join(file)).unwrap();
    }
}

fn edit(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

/// Serves a plugin in a language, and saves its file anew, with faults and without.
#[track_caller]
fn assert_each_save_is_live(language: &str, files: [&str; 2], [from, to]: [&str; 2], fault: &str) {
    let cli = Cli::new().with_tools();
    let folder = cli.folder().join("ranker");
    copy(&format!("{language}/ranker"), &files, &folder);
    let file = files[1];
    let source = folder.join(file);
    let model = files::root().join("models/ranker/ranker.onnx").canonicalize().unwrap();
    let model = model.to_str().unwrap();
    let arguments = ["plugin", "dev", "ranker", "--model", model, "--listen", "127.0.0.1:0"];
    let mut dev = Running::start(cli.command(&arguments), &cli.folder().join("errors"));
    dev.line_after("input FP32 [-1,32] -> output FP32 [-1,1]");
    dev.line_after("live after");
    let url = dev.line_after("send requests to ");
    let url = url.split(';').next().unwrap().to_owned();
    let (plane, path) = url.split_at(url.find("/v1/").unwrap());
    let client = Client::new(plane, None);
    let item = json!({ "id": "a", "features": vec![0.5; 32] });
    let body = json!({ "items": [item] }).to_string();
    let ask = || client.post(path, body.as_bytes());
    let before: Value = ask().ok();
    assert_eq!(before["items"][0]["id"], "a");
    edit(&source, from, to);
    dev.line_after("live after");
    assert_eq!(ask().ok()["items"][0]["points"], before["items"][0]["score"]);
    // A fault is told with its line, and what was there serves on.
    let good = fs::read_to_string(&source).unwrap();
    fs::write(&source, format!("{good}\n{fault}\n")).unwrap();
    eventually("the fault is told", || dev.errors().contains("save a file to try again"));
    let line = good.lines().count() + 2;
    let errors = dev.errors();
    let places = [format!("{file}:{line}"), format!("line {line}")];
    assert!(places.iter().any(|place| errors.contains(place)), "{errors}");
    assert!(errors.contains(fault), "{errors}");
    assert!(ask().ok()["items"][0]["points"].is_number());
    fs::write(&source, &good).unwrap();
    dev.line_after("live after");
    // A request that fails says why.
    let answer = client.post(path, b"{}");
    answer.refused(400, "invalid_request", &["/items is missing"]);
    // Its server ends with it.
    dev.end();
    eventually("nothing listens", || std::net::TcpStream::connect(client.authority()).is_err());
}

#[test]
fn each_save_in_python_is_live() {
    let edit = ["\"score\": score", "\"points\": score"];
    let fault = "LABELS = open('none')";
    assert_each_save_is_live("python", ["pyproject.toml", "app.py"], edit, fault);
}

#[test]
fn each_save_in_javascript_is_live() {
    let edit = ["{ id, score: scores[index] }", "{ id, points: scores[index] }"];
    let fault = "throw new Error('no labels');";
    assert_each_save_is_live("js", ["package.json", "plugin.js"], edit, fault);
}

#[test]
fn two_plugins_serve_together() {
    let cli = Cli::new().with_tools();
    let pre = "from gristmill_plugin import Prepared, Preprocessor, export\n\
        @export\nclass Pre(Preprocessor):\n    \
            def preprocess(self, context, request):\n        \
                return Prepared({'input': request.json_tensor('')}, b'one')\n";
    let post = "from gristmill_plugin import Postprocessor, Response, export\n\
        @export\nclass Post(Postprocessor):\n    \
            def postprocess(self, context, outputs, state):\n        \
                return Response.text(state.decode())\n";
    for (name, app) in [("pre", pre), ("post", post)] {
        let project = format!("[project]\nname = \"{name}\"\n[tool.gristmill]\n");
        cli.write(&format!("{name}/pyproject.toml"), project);
        cli.write(&format!("{name}/app.py"), app);
    }
    let model = files::root().join("models/ranker/ranker.onnx").canonicalize().unwrap();
    let model = model.to_str().unwrap();
    let dev = ["plugin", "dev", "pre", "--model", model, "--listen", "127.0.0.1:0"];
    let arguments = [&dev[..], &["--post", "post"]].concat();
    let mut dev = Running::start(cli.command(&arguments), &cli.folder().join("errors"));
    dev.line_after("live after");
    let url = dev.line_after("send requests to ");
    let url = url.split(';').next().unwrap().to_owned();
    let (plane, path) = url.split_at(url.find("/v1/").unwrap());
    let client = Client::new(plane, None);
    let body = json!([vec![0.5; 32]]).to_string();
    let ask = || client.post(path, body.as_bytes()).text();
    assert_eq!(ask(), "one");
    edit(&cli.folder().join("pre/app.py"), "b'one'", "b'two'");
    dev.line_after("live after");
    assert_eq!(ask(), "two");
    edit(&cli.folder().join("post/app.py"), "state.decode()", "state.decode() * 2");
    dev.line_after("live after");
    assert_eq!(ask(), "twotwo");
    let ended = cli.run(&["plugin", "dev", "pre", "--model", model, "--post", "none"]);
    assert!(ended.stderr.contains("--post none"), "{}", ended.stderr);
}

#[test]
fn a_handler_is_served_with_its_models() {
    let cli = Cli::new().with_tools();
    copy("python/number", &["pyproject.toml", "app.py"], &cli.folder().join("number"));
    let model = files::model_path("digits").canonicalize().unwrap();
    let flag = format!("digits={}", model.display());
    let dev = ["plugin", "dev", "number", "--model", &flag];
    let arguments = [&dev[..], &["--listen", "127.0.0.1:0"]].concat();
    let mut dev = Running::start(cli.command(&arguments), &cli.folder().join("errors"));
    dev.line_after("digits: input FP32 [-1,1,28,28] -> output FP32 [-1,10]");
    dev.line_after("live after");
    let url = dev.line_after("send requests to ");
    let url = url.split(';').next().unwrap().to_owned();
    let (plane, path) = url.split_at(url.find("/v1/").unwrap());
    let client = Client::new(plane, None);
    let images = [4, 2].map(|digit| BASE64_STANDARD.encode(files::digit(digit)));
    let body = json!({ "images": images }).to_string();
    let ask = || client.post(path, body.as_bytes()).ok();
    assert_eq!(ask()["text"], "42");
    edit(&cli.folder().join("number/app.py"), "\"text\":", "\"number\":");
    dev.line_after("live after");
    assert_eq!(ask()["number"], "42");
    let ended = cli.run(&["plugin", "dev", "number", "--model", &flag, "--post", "number"]);
    assert!(ended.stderr.contains("give --model FILE once"), "{}", ended.stderr);
}

#[test]
fn each_save_goes_to_a_server_that_runs() {
    let server = Setup::new().with_runtimes().start();
    server.open_tenant("acme");
    server.model("ranker");
    server.plugin("acme", "ranker", "ranker-python");
    let pipeline = json!({ "pre": "ranker", "model": "ranker", "post": "ranker" });
    server.pipeline("acme", "ranker", &pipeline);
    let cli = Cli::of(&server).with_tools();
    let folder = cli.folder().join("ranker");
    copy("python/ranker", &["pyproject.toml", "app.py"], &folder);
    edit(&folder.join("app.py"), "\"score\": score", "\"rank\": score");
    let arguments = ["plugin", "dev", "ranker", "--tenant", "acme"];
    let mut dev = Running::start(cli.command(&arguments), &cli.folder().join("errors"));
    let item = json!({ "id": "a", "features": vec![0.5; 32] });
    let body = json!({ "items": [item] }).to_string();
    let ask = || server.data.post("/v1/acme/infer/ranker", body.as_bytes()).ok();
    dev.line_after("live after");
    assert!(ask()["items"][0]["rank"].is_number());
    edit(&folder.join("app.py"), "\"rank\": score", "\"place\": score");
    dev.line_after("live after");
    assert!(ask()["items"][0]["place"].is_number());
    // Under a name that no pipeline has.
    let arguments = ["plugin", "dev", "ranker", "--tenant", "acme", "--name", "other"];
    let mut dev = Running::start(cli.command(&arguments), &cli.folder().join("more-errors"));
    let hint = dev.line_after("no pipeline of acme names other yet: ");
    assert!(hint.contains("gristmill pipeline set other --tenant acme pre=other"), "{hint}");
    dev.line_after("gristmill logs acme --follow");
    // No save makes a tenant.
    let ended = cli.run(&["plugin", "dev", "ranker", "--tenant", "nobody"]);
    assert!(ended.stderr.contains("--tenant: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("no tenant \"nobody\""), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_served_is_told_before_anything_starts() {
    let cli = Cli::new().with_tools();
    cli.write("pyproject.toml", "[project]\nname = \"it\"\n[tool.gristmill]\n");
    let model = cli.write("model.onnx", "no model");
    let refused = |arguments: &[&str], named: &str| {
        let ended = cli.run(&[&["plugin", "dev"][..], arguments].concat());
        assert_ne!(ended.code, Some(0));
        assert!(ended.stderr.contains(named), "{named}: {}", ended.stderr);
    };
    refused(&[], "--model <FILE>");
    refused(&["--model", "none.onnx"], "none.onnx");
    cli.write("settings.json", "[1]");
    let model = model.to_str().unwrap();
    let free = ["--model", model, "--listen", "127.0.0.1:0"];
    refused(&[&free[..], &["--settings", "settings.json"]].concat(), "not a JSON object");
    refused(&free, "--model: ");
    cli.write("empty/notes", "no plugin");
    let no_plugin = "empty is not the folder of a plugin";
    refused(&[&["empty"][..], &free].concat(), &format!("FOLDER: {no_plugin}"));
    refused(&[&free[..], &["--post", "empty"]].concat(), &format!("--post: {no_plugin}"));
    refused(&["none", "--tenant", "acme"], "FOLDER: none is not a folder");
    refused(&["--model", model, "--listen", "nowhere"], "nowhere");
    refused(&["--model", model, "--tenant", "acme"], "cannot be used with");
    refused(&["--model", model, "--admin", "127.0.0.1:1"], "--admin says how to reach a server");
}
