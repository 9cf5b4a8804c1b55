//! `gristmill plugin test`: sample requests through real plugins and models, here and on a server.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::admin_api::make;
use crate::support::files;
use crate::support::guests::with_endless_type;
use crate::support::server::Server;
use crate::support::words::assert_names;

/// A folder with `plugin.wasm`, `model.onnx` and requests.
struct Folder(TempDir);

/// The outcome of a test.
struct Tested {
    passed: bool,
    out: String,
    errors: String,
}

impl Tested {
    fn of(output: &Output) -> Self {
        Self {
            passed: output.status.success(),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            errors: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }
}

impl Folder {
    /// With a plugin of the repository, for the model `digits`.
    fn new(plugin: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folder.path("requests")).unwrap();
        fs::write(folder.path("plugin.wasm"), files::plugin(plugin)).unwrap();
        fs::write(folder.path("model.onnx"), files::model("digits")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// With one more file in `requests/`.
    fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.path("requests").join(name), content).unwrap();
        self
    }

    fn request(&self, name: &str) -> Value {
        let text = fs::read(self.path("requests").join(name)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    /// The command `plugin test` in this folder.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.current_dir(self.0.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command.env("ORT_DYLIB_PATH", files::onnxruntime());
        command.args(["plugin", "test", "--model", "model.onnx"]).args(arguments);
        command
    }

    /// Test `plugin.wasm` with the model `digits` of a server, as a plugin of the tenant `acme`.
    fn test_on(&self, server: &Server, token: &str, flags: &[&str]) -> Tested {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.current_dir(self.0.path()).env("XDG_CACHE_HOME", self.path("cache"));
        command.args(["plugin", "test", "plugin.wasm", "--model", "digits", "--tenant", "acme"]);
        command.args(["--admin", server.admin.address(), "--token", token]).args(flags);
        Tested::of(&command.output().unwrap())
    }

    /// Test `plugin.wasm`.
    fn test(&self, flags: &[&str]) -> Tested {
        self.run(&[&["plugin.wasm"], flags].concat())
    }

    fn run(&self, arguments: &[&str]) -> Tested {
        Tested::of(&self.command(arguments).output().unwrap())
    }

    /// Test `plugin.wasm` with `--output json`; whether it passed, and the results.
    fn document(&self, flags: &[&str]) -> (bool, Value) {
        let Tested { passed, out, errors } = self.test(&[flags, &["--output", "json"]].concat());
        let document = serde_json::from_str(&out);
        (passed, document.unwrap_or_else(|error| panic!("{error}: {out}\n{errors}")))
    }
}

#[test]
fn samples_run_through_the_plugin_and_the_model() {
    let folder = Folder::new("digits")
        .with("seven.png", files::sample("seven.png"))
        .with(
            "seven.expected.json",
            r#"{"status": 200, "json": {
            "label": 7, "probability": 0.99998, "top": [
                {"label": 7, "probability": 0.99998}, {"label": 3, "probability": 0},
                {"label": 2, "probability": 0}]}}"#,
        )
        .with("three.jpg", files::sample("three.jpg"));
    let Tested { passed, out, errors } = folder.test(&[]);
    assert!(passed && errors.is_empty(), "{out}{errors}");
    let shown = ["ok      seven.png", "ok      three.jpg", "pre", "queue", "infer", "post", "CPU"];
    assert_names(&out, &shown);
    assert_names(
        &out,
        &["of 250 ms", "of 64.0 MiB", "without an expectation: 1", "2 of 2 requests"],
    );
    for mode in ["none", "request", "tenant"] {
        let flags = ["--repeat", "5", "--instance-reuse", mode];
        let (passed, document) = folder.document(&flags);
        assert!(passed, "{document:#}");
        let seven = &document["requests"][0];
        assert_eq!(seven["request"], "seven.png");
        for (stage, call) in [("pre", &seven["calls"]["pre"]), ("post", &seven["calls"]["post"])] {
            assert!(seven["times_ms"][stage].as_f64().unwrap() > 0.0, "{document:#}");
            assert!(call["cpu_ms"].as_f64().unwrap() > 0.0, "{document:#}");
            assert!(call["memory_bytes"].as_u64().unwrap() >= 64 << 10, "{document:#}");
        }
        // The decoded image.
        let held = seven["calls"]["pre"]["host_memory_bytes"].as_u64().unwrap();
        assert!(held >= 28 * 28, "{document:#}");
        assert!(seven["median_times_ms"]["total"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_wrong_expectation_is_named_by_its_path() {
    let folder = Folder::new("digits")
        .with("seven.png", files::sample("seven.png"))
        .with("seven.expected.json", r#"{"status": 201, "json": {"label": 1, "new": 0}}"#);
    let Tested { passed, out, errors } = folder.test(&[]);
    assert!(!passed);
    assert_names(&out, &["FAILED  seven.png", "status: expected 201, found 200"]);
    assert_names(&out, &["$.label: expected 1, found 7", "$.new: expected 0, found nothing"]);
    assert_names(&out, &["$.top: expected nothing, found [{"]);
    assert_eq!(errors, "error: 1 of 1 requests failed\n");
    let (passed, document) = folder.document(&[]);
    assert!(!passed);
    assert_eq!((&document["passed"], &document["failed"]), (&json!(0), &json!(1)));
    let differences = document["requests"][0]["differences"].as_array().unwrap();
    let label = json!({ "path": "$.label", "expected": "1", "found": "7" });
    assert!(differences.contains(&label), "{document:#}");
}

#[test]
fn update_writes_expectations_that_then_pass() {
    let folder = Folder::new("digits")
        .with("seven.png", files::sample("seven.png"))
        .with("three.jpg", files::sample("three.jpg"))
        .with("three.expected.json", r#"{"json": {"label": 8}}"#)
        .with("broken.png", b"not a picture");
    assert!(!folder.test(&[]).passed);
    // A failure is written only on demand: the request may be wrong.
    let Tested { passed, out, .. } = folder.test(&["--update"]);
    assert!(!passed && !folder.path("requests/broken.expected.json").exists(), "{out}");
    assert_names(&out, &["FAILED  broken.png", "not written", "--allow-failures"]);
    let Tested { passed, out, errors } = folder.test(&["--update", "--allow-failures"]);
    assert!(passed, "{out}{errors}");
    // Then it is expected, and its words may change.
    let broken = folder.path("requests/broken.expected.json");
    let other = r#"{"code": "unsupported_media_type", "detail": "other words"}"#;
    fs::write(&broken, other).unwrap();
    assert!(folder.test(&["--update"]).passed);
    assert!(!fs::read_to_string(&broken).unwrap().contains("other words"));
    let seven = folder.request("seven.expected.json");
    assert_eq!((&seven["status"], &seven["json"]["label"]), (&json!(200), &json!(7)));
    assert_eq!(seven["content_type"], "application/json");
    assert_eq!(folder.request("three.expected.json")["json"]["label"], 3);
    assert_eq!(folder.request("broken.expected.json")["code"], "unsupported_media_type");
    let Tested { passed, out, errors } = folder.test(&[]);
    assert!(passed, "{out}{errors}");
    assert!(!out.contains("without an expectation"), "{out}");
}

#[test]
fn the_library_of_a_build_is_found() {
    let folder = Folder::new("digits").with("seven.png", files::sample("seven.png"));
    fs::create_dir_all(folder.path("target/onnxruntime")).unwrap();
    let library = files::onnxruntime();
    let name = library.file_name().unwrap().to_str().unwrap();
    symlink(&library, folder.path(&format!("target/onnxruntime/{name}"))).unwrap();
    let mut command = folder.command(&["plugin.wasm"]);
    let output = command.env_remove("ORT_DYLIB_PATH").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.starts_with("model   model.onnx (onnxruntime)\n"), "{out}");
}

#[test]
fn a_panic_is_shown_with_its_message_its_file_and_its_line() {
    let folder = Folder::new("hostile")
        .with("panic.request.json", r#"{"query": "do=panic"}"#)
        .with("well.request.json", r#"{"query": ""}"#)
        .with("well.expected.json", r#"{"text": "harmless"}"#);
    let Tested { passed, out, errors } = folder.test(&[]);
    assert!(!passed);
    assert_names(&out, &["FAILED  panic.request.json", "ERROR plugin: panicked at", "as told"]);
    assert_names(&out, &["ends.rs:11:", "plugin_trapped: pre: plugin trapped", "ok      well"]);
    assert_eq!(errors, "error: 1 of 2 requests failed\n");
    // A fault of the plugin is never written as what is expected of it.
    assert!(!folder.test(&["--update"]).passed);
    assert!(!folder.path("requests/panic.expected.json").exists());
}

#[test]
fn two_plugins_serve_as_one_pipeline() {
    let golden = files::ranker_golden();
    let (rows, scores) = &golden[0];
    let items: Vec<_> = rows.iter().map(|row| json!({ "id": "a", "features": row })).collect();
    let best = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let folder = Folder::new("digits").with("rows.json", json!({ "items": items }).to_string());
    for name in ["ranker-pre", "ranker-post"] {
        fs::write(folder.path(&format!("{name}.wasm")), files::plugin(name)).unwrap();
    }
    fs::write(folder.path("model.onnx"), files::model("ranker")).unwrap();
    let pair = ["--pre", "ranker-pre.wasm", "--post", "ranker-post.wasm"];
    let Tested { passed, out, errors } = folder.run(&[&pair[..], &["--update"]].concat());
    assert!(passed, "{out}{errors}");
    let score = folder.request("rows.expected.json")["json"]["items"][0]["score"].as_f64();
    assert!((score.unwrap() - best).abs() < 1e-4, "{score:?} is not {best}");
    let alone = folder.run(&["ranker-pre.wasm"]);
    assert!(!alone.passed);
    assert_names(&alone.errors, &["ranker-pre.wasm is a preprocessor", "--pre and --post"]);
}

#[test]
fn a_link_that_leads_out_is_refused_in_each_round() {
    let folder = Folder::new("digits").with("seven.png", files::sample("seven.png"));
    let other = Folder::new("digits").with("secret.png", files::sample("seven.png"));
    let requests = folder.path("requests");
    fs::rename(&requests, folder.path("own")).unwrap();
    symlink("own", &requests).unwrap();
    let mut command = folder.command(&["plugin.wasm", "--watch"]);
    let mut watching =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map(Watching).unwrap();
    let mut lines = BufReader::new(watching.0.stderr.take().unwrap()).lines();
    let mut round = || {
        let lines = lines.by_ref().map(Result::unwrap);
        lines.take_while(|line| !line.starts_with("waiting for changes")).collect::<Vec<_>>()
    };
    assert_eq!(round(), [""; 0]);
    let link = folder.path("link");
    symlink(other.path("requests"), &link).unwrap();
    fs::rename(link, requests).unwrap();
    assert_names(&round().concat(), &["requests", "lies outside of"]);
}

/// A test that runs again when files change, until this is dropped.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn mistakes_name_the_file_the_field_and_the_value() {
    let folder = Folder::new("digits").with("a.request.json", r#"{"query": 1, "bdy": 2}"#);
    let error = folder.test(&[]).errors;
    assert_names(&error, &["a.request.json", "query is 1", "\"bdy\""]);
    assert_eq!(error.lines().count(), 1, "{error}");
    fs::write(folder.path("secret"), "of another folder").unwrap();
    for path in ["/etc/passwd", "../secret"] {
        let folder = &folder;
        let document = json!({ "body_file": path }).to_string();
        fs::write(folder.path("requests/a.request.json"), document).unwrap();
        let error = folder.test(&[]).errors;
        let field = format!("body_file is {path:?}");
        assert_names(&error, &["a.request.json", &field, "outside of requests: put a copy there"]);
    }
    symlink("../secret", folder.path("requests/b.expected.json")).unwrap();
    let error = folder.test(&["--update"]).errors;
    assert_names(&error, &["requests/b.expected.json", "outside of requests: put a copy there"]);
    let folder = Folder::new("digits").with("a.png", files::digit(1));
    fs::write(folder.path("settings.json"), "[]").unwrap();
    let error = folder.test(&["--settings", "settings.json"]).errors;
    assert_names(&error, &["--settings", "settings.json", "not a JSON object"]);
    let error = folder.test(&["--requests", "nowhere"]).errors;
    assert_names(&error, &["nowhere", "--requests"]);
    let error = folder.test(&["--tolerance", "-1"]).errors;
    assert!(error.contains("--tolerance"), "{error}");
    // Found before a build: this folder has no plugin that could be built.
    fs::remove_file(folder.path("model.onnx")).unwrap();
    assert_names(&folder.run(&["."]).errors, &["--model: cannot read model.onnx"]);
    fs::write(folder.path("model.onnx"), "not a model").unwrap();
    assert_names(&folder.test(&[]).errors, &["--model", "model.onnx"]);
    fs::write(folder.path("plugin.wasm"), "not a plugin").unwrap();
    fs::write(folder.path("model.onnx"), files::model("digits")).unwrap();
    assert_names(&folder.test(&[]).errors, &["plugin.wasm", "not a WebAssembly component"]);
    fs::write(folder.path("plugin.wasm"), with_endless_type()).unwrap();
    assert_names(&folder.test(&[]).errors, &["plugin.wasm", "signal 6 (SIGABRT) ended it"]);
}

/// A server with the tenant `acme`, and the token of its people.
fn server() -> (Server, String) {
    let server = Server::start();
    server.digits("acme");
    let token = make(&server, "ci", &json!({ "role": "deploy", "tenants": ["acme"] }));
    (server, token)
}

#[test]
fn requests_run_on_a_server_whose_state_stays_as_it_is() {
    let (server, token) = server();
    let before = server.admin.get("/admin/v1/releases?limit=1").ok()["items"].clone();
    let folder = (0..20).fold(Folder::new("digits"), |folder, number| {
        folder.with(&format!("request-{number}.png"), files::digit(number % 10))
    });
    let folder = folder.with("none.txt", "no picture");
    let Tested { passed, out, .. } = folder.test_on(&server, &token, &["--update"]);
    // A failure is shown, and not written.
    assert!(!passed, "{out}");
    assert_names(&out, &["model   digits of ", "FAILED  none.txt", "unsupported_media_type"]);
    assert_eq!(folder.request("request-17.expected.json")["json"]["label"], 7);
    fs::remove_file(folder.path("requests/none.txt")).unwrap();
    let Tested { passed, out, errors } = folder.test_on(&server, &token, &[]);
    assert!(passed && out.ends_with("20 of 20 requests passed\n"), "{out}{errors}");
    // The plugins are uploaded.
    assert_names(&errors, &["server: ", server.admin.authority(), "(--admin)"]);
    let folder = folder.with("request-1.expected.json", r#"{"at": {"/label": 2}}"#);
    let Tested { passed, out, .. } = folder.test_on(&server, &token, &[]);
    assert!(!passed);
    assert_names(&out, &["FAILED  request-1.png", "$.label: expected 2, found 1"]);
    assert_eq!(server.admin.get("/admin/v1/releases?limit=1").ok()["items"], before);
    server.admin.get("/admin/v1/tenants/acme/plugins/plugin-test").refused(404, "not_found", &[]);
}

#[test]
fn what_a_server_cannot_test_is_refused_with_the_cure() {
    let (server, token) = server();
    let folder = Folder::new("digits").with("large.png", vec![0; 200_000]);
    let Tested { passed, errors, .. } = folder.test_on(&server, &token, &[]);
    assert!(!passed);
    assert_names(
        &errors,
        &["large.png: the request of 200000 bytes", "test with the model's file"],
    );
    // A model that the tenant is not granted.
    server.model("ranker");
    let folder = Folder::new("digits").with("seven.png", files::sample("seven.png"));
    let run = |model: &str, flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gristmill"));
        command.current_dir(folder.0.path()).args(["plugin", "test", "plugin.wasm"]);
        command.args(["--admin", server.admin.address(), "--token", &token]);
        Tested::of(&command.args(["--model", model]).args(flags).output().unwrap()).errors
    };
    assert_names(&run("ranker", &["--tenant", "acme"]), &["ranker"]);
    assert_names(&run("ranker", &[]), &["there is no file ranker", "--tenant"]);
    assert_names(&run("model.onnx", &["--tenant", "acme"]), &["model.onnx is a file"]);
    fs::create_dir(folder.path("exported")).unwrap();
    assert_names(&run("exported", &[]), &["there is no file exported", "--tenant"]);
    fs::copy(folder.path("model.onnx"), folder.path("exported/model.onnx")).unwrap();
    assert_names(&run("./exported", &["--tenant", "acme"]), &["exported is a folder"]);
    // A folder here may have the name of a model on the server.
    assert_names(&run("exported", &["--tenant", "acme"]), &["no model \"exported\""]);
    assert_names(&run("model.onnx", &[]), &["--admin says how to reach a server", "--tenant"]);
    assert_names(&run("digits", &["--tenant", "globex"]), &["403", "plugins, assets, pipelines"]);
}
