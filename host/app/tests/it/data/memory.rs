//! The memory of the server: what holds it, and what is given back.

use serde_json::{Value, json};

use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const MIB: u64 = 1 << 20;

const PARTS: [&str; 7] =
    ["tenants", "plugin_files", "assets", "plugin_memories", "buffers", "models", "store_caches"];

fn memory(server: &Server) -> Value {
    server.status()["memory"].clone()
}

/// A server whose tenant `acme` may call the model `digits`.
fn server(setup: Setup) -> Server {
    let server = setup.start();
    server.model("digits");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["digits"] }));
    server
}

/// Run the model on 4,096 rows, whose batches lie in buffers of 800 KB.
fn run_large(server: &Server) {
    let values = vec!["0"; 4096 * 28 * 28].join(",");
    let body = format!(
        r#"{{"inputs":[{{"name":"input","datatype":"FP32","shape":[4096,1,28,28],"data":[{values}]}}],
        "outputs":[{{"name":"output","parameters":{{"classification":1}}}}]}}"#
    );
    server.data.post("/v1/acme/v2/models/digits/infer", body.as_bytes()).ok();
}

#[test]
fn the_status_says_what_holds_the_memory() {
    let server = Server::start();
    let empty = memory(&server);
    for part in PARTS {
        assert_eq!(empty[format!("{part}_bytes")], 0, "{empty}");
    }
    server.digits("acme");
    server.digits("other");
    server.data.post("/v1/acme/infer", &files::digit(4)).ok();
    let status = server.status();
    let held = &status["memory"];
    let bytes = |part: &str| held[part].as_u64().unwrap();
    // The file of the plugin is mapped once for both tenants.
    let file = status["tenants"]["acme"]["plugin_files_bytes"].as_u64().unwrap();
    assert!(file > 64 << 10, "{status}");
    assert_eq!(status["tenants"]["other"]["plugin_files_bytes"], file);
    assert_eq!(bytes("plugin_files_bytes"), file);
    // The weights of the model.
    let model = status["models"]["digits"]["memory_bytes"].as_u64().unwrap();
    assert!(model >= 64 << 10, "{status}");
    assert_eq!(bytes("models_bytes"), model);
    assert!(bytes("plugin_memories_bytes") > 0, "{held}");
    let process = &status["process"];
    let (anonymous, resident) = (&process["resident_anonymous_bytes"], &process["resident_bytes"]);
    assert!(anonymous.as_u64() < resident.as_u64(), "{process}");
    let metrics = server.admin.get("/metrics").text();
    for part in PARTS {
        let line = format!("gristmill_memory_usage_bytes{{part=\"{part}\"}} ");
        assert!(metrics.contains(&line), "no {line}");
    }
}

#[test]
fn memory_that_nobody_needs_is_given_back() {
    let server = server(Setup::new());
    run_large(&server);
    assert!(memory(&server)["buffers_bytes"].as_u64() > Some(4 * MIB), "{}", memory(&server));
    eventually("the buffers are given back", || memory(&server)["buffers_bytes"] == 0);
}

#[test]
fn memory_for_later_requests_is_kept_within_the_setting() {
    // A fifth of it is for buffers.
    let server = server(Setup::new().flag("--retained-memory-bytes", "16777216"));
    run_large(&server);
    assert!(memory(&server)["buffers_bytes"].as_u64() <= Some(4 * MIB), "{}", memory(&server));
}
