//! The sample `recommend`, and the golden answers that models/recommend/train.py has recorded.

use serde_json::{Value, json};

use super::cli::Cli;
use super::files;
use super::server::Server;
use super::stores::configured;

pub(crate) const PATH: &str = "/v1/demo/infer/recommend";

/// The difference that a score may have from NumPy's.
const SCORE: f64 = 1e-6;

/// A server with this table of the store `features`, and with the sample as `cargo xtask demo
/// --all` deploys it, with time for a busy machine.
pub(crate) fn deployed(store: &str) -> Server {
    let table = format!("[stores.features]\n{store}\ntimeout_ms = 20000\n");
    let server = configured(&table).with_runtimes().start();
    let stores = json!({ "features": "read" });
    server.put_json("tenants/demo", &json!({ "open": true, "stores": stores }));
    server.model("recommend");
    server.plugin("demo", "recommend", "recommend-python");
    server.pipeline("demo", "recommend", &pipeline());
    server
}

/// The pipeline of the manifest.
pub(crate) fn pipeline() -> Value {
    let manifest = files::manifest_of_all();
    let mut pipeline = manifest["tenants"]["demo"]["pipelines"]["recommend"].clone();
    pipeline["limits"] = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    pipeline
}

/// Features of users and products, and requests with NumPy's answers.
fn golden() -> Value {
    serde_json::from_slice(&files::of_model("recommend", "golden.json")).unwrap()
}

/// The golden features of `users` or `products` as a CSV file with these words before the keys.
pub(crate) fn features(kind: &str, before: &str) -> String {
    let golden = golden();
    let rows = golden[kind].as_object().unwrap().iter().map(|(key, row)| {
        let row: Vec<_> = row.as_array().unwrap().iter().map(Value::to_string).collect();
        format!("{before}{key},{}\n", row.join(","))
    });
    let columns: Vec<_> = (0..16).map(|column| format!("f{column}")).collect();
    format!("key,{}\n{}", columns.join(","), rows.collect::<String>())
}

/// Load the golden features of `users` or `products` into the store.
#[track_caller]
pub(crate) fn load(server: &Server, kind: &str, before: &str) {
    let cli = Cli::of(server);
    cli.write("rows.csv", features(kind, before));
    let loaded = cli.ok(&["kv", "load", "features", "rows.csv", "--tenant", "demo"]);
    assert!(loaded.ends_with(" values set\n"), "{loaded}");
}

/// Fails unless the answers to the golden requests are NumPy's.
#[track_caller]
pub(crate) fn assert_golden(server: &Server) {
    for case in golden()["cases"].as_array().unwrap() {
        assert_case(server, case);
    }
}

#[track_caller]
fn assert_case(server: &Server, case: &Value) {
    let answer = server.data.post(PATH, case["request"].to_string().as_bytes()).ok();
    let (items, expected) =
        (answer["items"].as_array().unwrap(), case["items"].as_array().unwrap());
    let ids = |items: &[Value]| -> Vec<Value> {
        items.iter().map(|item| item["productId"].clone()).collect()
    };
    assert_eq!(ids(items), ids(expected), "{}", case["request"]);
    for (item, expected) in items.iter().zip(expected) {
        let difference = item["score"].as_f64().unwrap() - expected["score"].as_f64().unwrap();
        assert!(difference.abs() <= SCORE, "{item}, NumPy {expected}");
    }
}
