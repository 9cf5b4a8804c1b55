//! Products in the order in which a user is likely to want them: a sample whose features lie in a
//! store.

use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::support::recommend::{PATH, assert_golden, deployed, load};
use crate::support::redis::Redis;
use crate::support::server::Server;

/// A server whose store has the golden features.
fn filled(store: &str) -> Server {
    let server = deployed(store);
    load(&server, "users", "user:");
    load(&server, "products", "product:");
    server
}

/// The last line of the plugin.
fn last_line(server: &Server) -> String {
    let lines = server.admin.get("/admin/v1/tenants/demo/plugins/recommend/logs?limit=1").ok();
    lines["lines"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn the_order_is_that_of_numpy_until_redis_dies() {
    let mut redis = Redis::start();
    let server = filled(&format!("redis = '{}'", redis.url()));
    assert_golden(&server);
    // Both lie in the store under the keys that the documents name.
    assert_eq!(redis.command(&[b"STRLEN", b"features:demo:user:1"]), "64");
    assert_eq!(redis.command(&[b"STRLEN", b"features:demo:product:200"]), "64");

    let body = json!({ "userId": 1, "productIds": [1] }).to_string();
    let answer = server.data.post(PATH, body.as_bytes());
    assert!(answer.header("server-timing").contains(", lookup;dur="));
    redis.kill();
    server.data.post(PATH, body.as_bytes()).refused(500, "plugin_failed", &[]);
    let line = last_line(&server);
    assert!(line.starts_with("plugin failed: store \"features\": "), "{line}");
}

#[test]
fn what_is_missing_or_wrong_is_told() {
    let server = filled("embedded = true");
    assert_golden(&server);
    let sends = |user: Value, ids: Value| {
        let body = json!({ "userId": user, "productIds": ids }).to_string();
        server.data.post(PATH, body.as_bytes())
    };
    let unknown = sends(json!(99), json!([1]));
    unknown.refused(422, "unprocessable", &["userId is 99: this user has no features"]);
    let invalid = |user: Value, ids: Value, text: &str| {
        sends(user, ids).refused(400, "invalid_request", &[text]);
    };
    invalid(json!("1"), json!([1]), "userId is '1', not an integer");
    invalid(json!(1), json!(vec![1; 1001]), "productIds has 1001 ids: must be 1 to 1000");
    invalid(json!(1), json!([]), "productIds has 0 ids");
    invalid(json!(1), json!([1, "2"]), "/productIds/1 is a text, not a number");
    let empty = server.data.post(PATH, b"{}");
    empty.refused(400, "invalid_request", &["/productIds is missing"]);

    let cli = Cli::of(&server);
    let set = ["kv", "set", "features", "product:7", "1,2", "--floats", "--tenant", "demo"];
    cli.ok(&set);
    sends(json!(1), json!([6, 7])).refused(500, "plugin_failed", &[]);
    let line = last_line(&server);
    let text = "plugin failed: the value of \"product:7\" has 8 bytes, but 16 float32 have 64";
    let at = line.strip_prefix(text).unwrap_or_default();
    assert!(at.starts_with(" (app.py:"), "{line}");
}
