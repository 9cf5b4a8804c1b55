//! `gristmill kv`: values for plugins, in Redis and in a file.

use serde_json::json;

use crate::support::cli::{Cli, CommandOutput};
use crate::support::redis::Redis;
use crate::support::server::Server;
use crate::support::stores::{asked, configured, granted};

/// A server with a store of each kind, which the tenant `acme` may read.
fn start(redis: &Redis) -> Server {
    let tables = format!(
        "[stores.redis]\nredis = '{}'\ntimeout_ms = 20000\n\
         [stores.file]\nembedded = true\ntimeout_ms = 20000\n",
        redis.url()
    );
    let server = configured(&tables).start();
    granted(&server, "acme", json!({ "redis": "read", "file": "read" }));
    server
}

#[track_caller]
fn done(output: &CommandOutput) -> &str {
    assert_eq!(output.code, Some(0), "{output:?}");
    output.out.trim_end()
}

#[test]
fn a_file_is_loaded_and_its_values_are_found() {
    let redis = Redis::start();
    let server = start(&redis);
    let cli = Cli::of(&server);
    cli.write("items.csv", "item,f1,f2\na,1,2.5\nb,3,4\n");
    cli.write("quoted.csv", "\"item\",\"f1\",\"f2\"\r\n\"c, d\",\"5\",6\r\n");
    let more: String =
        (0..2500).map(|at| format!("{{\"key\":\"k{at}\",\"value\":{at}}}\n")).collect();
    cli.write("more.ndjson", more);
    for store in ["redis", "file"] {
        let run = |command: &str, arguments: &[&str]| {
            cli.run(&[["kv", command, store].as_slice(), arguments, &["--tenant", "acme"]].concat())
        };
        let loaded = run("load", &["items.csv"]);
        assert_eq!(done(&loaded), "2 values set");
        assert!(loaded.stderr.contains("line 1 has no number after the key"), "{loaded:?}");
        let gather = format!("op=gather&bucket={store}&keys=b,none,a&width=2");
        let rows = asked(&server, "acme", &gather);
        assert_eq!(rows, "[3, 2] [3.0, 4.0, -1.0, -1.0, 1.0, 2.5]");
        assert_eq!(done(&run("get", &["a", "--floats"])), "1,2.5");
        assert_eq!(done(&run("load", &["quoted.csv"])), "1 values set");
        assert_eq!(done(&run("get", &["c, d", "--floats"])), "5,6");
        assert_eq!(done(&run("load", &["more.ndjson"])), "2500 values set");
        assert_eq!(asked(&server, "acme", &format!("op=get&bucket={store}&keys=k2499")), "2499");

        assert_eq!(done(&run("set", &["a b/c", "word"])), "set");
        assert_eq!(done(&run("get", &["a b/c"])), "word");
        assert_eq!(done(&run("set", &["row", "-1,2", "--floats"])), "set");
        assert_eq!(done(&run("get", &["row", "--floats", "--output", "json"])), "[-1.0,2.0]");
        assert_eq!(done(&run("delete", &["row"])), "deleted");
        let gone = run("get", &["row"]);
        assert_ne!(gone.code, Some(0), "{gone:?}");
        assert!(gone.stderr.contains("has no key \"row\""), "{gone:?}");
    }
    assert_eq!(redis.command(&[b"GET", b"redis:acme:a b/c"]), "word");
}

#[test]
fn a_wrong_line_is_named_and_a_store_must_be_there() {
    let redis = Redis::start();
    let server = start(&redis);
    let cli = Cli::of(&server);
    cli.write("wrong.csv", "a,1\nb,x\n");
    let wrong = cli.run(&["kv", "load", "file", "wrong.csv", "--tenant", "acme"]);
    assert!(wrong.stderr.contains("line 2: \"x\" is no number"), "{wrong:?}");
    for (store, tenant, text) in
        [("none", "acme", "this server has no store \"none\""), ("file", "nobody", "nobody")]
    {
        let refused = cli.run(&["kv", "set", store, "k", "v", "--tenant", tenant]);
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(refused.stderr.contains(text), "{refused:?}");
    }
}

#[test]
fn the_values_of_a_deleted_tenant_are_cleared() {
    let redis = Redis::start();
    let server = start(&redis);
    let cli = Cli::of(&server);
    let more: String =
        (0..1500).map(|at| format!("{{\"key\":\"k{at}\",\"value\":{at}}}\n")).collect();
    cli.write("more.ndjson", more);
    let run = |command: &str, store: &str, arguments: &[&str]| {
        cli.run(&[&["kv", command, store, "--tenant", "acme"], arguments].concat())
    };
    assert_eq!(done(&run("load", "file", &["more.ndjson"])), "1500 values set");
    server.admin.delete("/admin/v1/tenants/acme?cascade=true").ok();
    let asks = run("clear", "file", &[]);
    assert!(asks.stderr.contains("there is no terminal to ask at: give --yes"), "{asks:?}");
    assert_eq!(done(&run("clear", "file", &["--yes"])), "1500 values deleted");
    granted(&server, "acme", json!({ "file": "read" }));
    assert_eq!(asked(&server, "acme", "op=get&bucket=file&keys=k7"), "none");
    let refused = run("clear", "redis", &["--yes"]);
    assert!(refused.stderr.contains("redis-cli --scan --pattern 'redis:acme:*'"), "{refused:?}");
}

#[test]
fn documents_of_values_have_bounds() {
    let redis = Redis::start();
    let server = start(&redis);
    let path = "/admin/v1/tenants/acme/stores/file";
    let many: Vec<_> = (0..1001).map(|at| json!({ "key": at.to_string(), "text": "" })).collect();
    for (document, text) in [
        (json!({ "values": many }), "values has 1001 items: the limit is 1000"),
        (json!({ "values": [{ "key": "k" }] }), "values[0].text is missing"),
        (json!({ "values": [{ "key": "", "text": "" }] }), "values[0].key is empty"),
        (json!({ "values": [{ "key": "k", "base64": "?" }] }), "values[0].base64 must be base64"),
        (json!({ "values": [], "ttl_ms": 0 }), "ttl_ms must be 1 to"),
        (json!({}), "values is missing"),
    ] {
        let refused = server.admin.send("POST", path, &[], Some(document.to_string().as_bytes()));
        refused.refused(422, "unprocessable", &[text]);
    }
    let long = format!("{path}/values/{}", "k".repeat(1025));
    server.admin.get(&long).refused(422, "unprocessable", &["has 1025 bytes"]);
    let conditional = server.admin.send(
        "PUT",
        &format!("{path}/values/k"),
        &[("if-match", "\"never\"")],
        Some(br#"{"text":"v"}"#),
    );
    conditional.refused(400, "invalid_request", &["not for values in stores"]);
}
