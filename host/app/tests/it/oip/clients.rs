//! The Open Inference Protocol with its own Python clients. Each library has one test, which starts
//! a server and runs the library's cases in tests/clients with pytest.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::deploy::processor;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::{ADMIN_TOKEN, Setup};
use crate::support::tls::Authority;

const KEY: &str = "the-key-of-acme-1";
const OTHERS_KEY: &str = "the-key-of-other-1";
const DATATYPES: [&str; 14] = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "fp16",
    "bf16", "fp32", "fp64", "bytes",
];

/// A server with all that tests/clients/server.py asks for.
fn server(setup: Setup) -> Server {
    let server = setup.flag("--message-bytes-max", "8388608").start();
    let identities = DATATYPES.map(|datatype| format!("identity-{datatype}"));
    let fixtures = ["fixed-rows", "look-up", "simple"].map(str::to_owned);
    let mut granted = [&identities[..], &fixtures].concat();
    for name in &granted {
        server.put(&format!("models/{name}"), &files::fixture(&format!("{name}.onnx")));
    }
    for name in ["configured", "ranker", "waits"] {
        server.put(&format!("models/{name}"), &files::model("ranker"));
        granted.push(name.to_owned());
    }
    let configured = json!({
        "max_batch_size": 16, "preferred_batch_sizes": [8, 4], "max_queue_delay_us": 1500,
        "priority_levels": 3, "default_priority_level": 3, "instances": 2,
        "default_queue_policy": { "default_timeout_us": 5_000_000, "timeout_action": "delay" },
        "priority_queue_policies": { "1": { "max_queue_size": 7, "allow_timeout_override": true } },
    });
    server.put_json("models/configured/config", &configured);
    // Its requests wait for a second one, until their own timeout.
    let waits = json!({
        "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [2],
        "priority_levels": 2, "default_priority_level": 2,
        "default_queue_policy": { "allow_timeout_override": true, "max_queue_size": 1 },
    });
    server.put_json("models/waits/config", &waits);
    // A request with more rows runs in parts, and the statistics count each.
    server.put_json("models/ranker/config", &json!({ "max_batch_size": 16 }));
    let labels = json!({ "output": [{ "name": "output", "labels": ["cat", "dog"] }] });
    server.put_json("models/identity-fp32/config", &labels);
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": granted }));
    let other = json!({ "api_keys": [OTHERS_KEY], "models": ["identity-int64", "ranker"] });
    server.put_json("tenants/other", &other);
    // This also uploads a model that no tenant may run.
    server.digits_for("acme");
    for plugin in ["ranker-pre", "ranker-post"] {
        server.plugin("acme", plugin, plugin);
    }
    let ranker = json!({ "pre": "ranker-pre", "model": "ranker", "post": "ranker-post" });
    server.pipeline("acme", "ranker", &ranker);
    let image = json!({ "name": "INPUT_IMAGE", "datatype": "BYTES", "encoding": "base64" });
    let outputs = json!([
        { "name": "DIGIT", "datatype": "INT64", "pointer": "/label" },
        { "name": "PROBABILITY", "datatype": "FP32", "pointer": "/probability" },
    ]);
    let mut named = processor("digits", json!({}));
    named["oip"] = json!({ "inputs": [image], "outputs": outputs });
    server.pipeline("acme", "digit_classifier", &named);
    server
}

/// Run all cases for the library. Fails with pytest's report unless all pass. Prints their number,
/// also if the test's output is captured.
#[track_caller]
fn assert_passes(library: &str) {
    assert_passes_with(library, Setup::new(), None);
}

/// The same with a server that is set up like this, whose certificate the authority in the file
/// signed.
#[track_caller]
fn assert_passes_with(library: &str, setup: Setup, ca: Option<&Path>) {
    let server = server(setup);
    let python = std::env::var_os("GRISTMILL_TEST_CLIENTS").map(PathBuf::from).unwrap_or_default();
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients");
    let run = Command::new(&python)
        .args(["-B", "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "--color=no"])
        .args(["-q", "--tb=short", "--library", library, "--rootdir"])
        .args([&cases, &cases])
        // Dependencies of the libraries have plugins for pytest, which must not be loaded.
        .env("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        .env("GRISTMILL_HTTP", server.data.authority())
        .env("GRISTMILL_GRPC", &server.grpc)
        .env("GRISTMILL_ADMIN", server.admin.authority())
        .envs(ca.map(|file| ("GRISTMILL_CA_FILE", file)))
        .env("GRISTMILL_KEY", KEY)
        .env("GRISTMILL_OTHERS_KEY", OTHERS_KEY)
        .env("GRISTMILL_ADMIN_TOKEN", ADMIN_TOKEN)
        .output()
        .unwrap_or_else(|error| {
            panic!("GRISTMILL_TEST_CLIENTS is {python:?}: {error}: run cargo xtask test")
        });
    let (stdout, failed) =
        (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{library}: {}\n{stdout}\n{failed}", run.status);
    let summary = stdout.lines().rfind(|line| line.contains(" passed")).unwrap_or_default();
    let passed = summary.split(' ').next().and_then(|count| count.parse::<usize>().ok());
    assert!(passed.is_some_and(|passed| passed > 5), "{library} ran too few cases:\n{stdout}");
    let _ = writeln!(std::io::stderr(), "{library}: {summary}");
}

#[test]
fn tritonclient_http() {
    assert_passes("tritonclient.http");
}

#[test]
fn tritonclient_http_aio() {
    assert_passes("tritonclient.http.aio");
}

#[test]
fn tritonclient_grpc() {
    assert_passes("tritonclient.grpc");
}

#[test]
fn tritonclient_grpc_over_tls() {
    let authority = Authority::new();
    let setup = Setup::new().with_tls(&authority);
    assert_passes_with("tritonclient.grpc", setup, Some(&authority.ca()));
}

#[test]
fn tritonclient_grpc_aio() {
    assert_passes("tritonclient.grpc.aio");
}

#[test]
fn kserve() {
    assert_passes("kserve");
}
