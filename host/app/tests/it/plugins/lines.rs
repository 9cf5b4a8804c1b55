//! A plugin's last lines: what is kept of them, who sees them, and who does not.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::admin_api::make;
use crate::support::cli::Cli;
use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::server::Server;
use crate::support::setup::ADMIN_TOKEN;
use crate::support::words::assert_names;

/// The bounds on what is kept of a plugin.
const LINES_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 10;

/// A server whose tenant `acme` has the plugin `hostile`.
fn server() -> Server {
    let server = Server::start();
    server.hostile("acme");
    server
}

/// Put the pipeline `debug` of the tenant `acme`, with this value of `debug`.
fn put_debug(server: &Server, debug: bool) {
    let mut spec = processor("hostile", json!({}));
    spec["debug"] = debug.into();
    server.pipeline("acme", "debug", &spec);
}

fn done(server: &Server, pipeline: &str, deed: &str, id: &str) -> TestAnswer {
    let path = format!("/v1/acme/infer/{pipeline}?do={deed}");
    server.data.send("POST", &path, &[("x-request-id", id)], Some(b""))
}

fn logs_path(tenant: &str, plugin: &str) -> String {
    format!("/admin/v1/tenants/{tenant}/plugins/{plugin}/logs")
}

/// The lines that are kept of a plugin.
#[track_caller]
fn kept(server: &Server, tenant: &str, plugin: &str) -> Vec<Value> {
    let document = server.admin.get(&logs_path(tenant, plugin)).ok();
    document["lines"].as_array().unwrap().clone()
}

fn text<'a>(line: &'a Value, part: &str) -> &'a str {
    line[part].as_str().unwrap_or_else(|| panic!("no {part} in {line}"))
}

/// The problem document's part about the plugin.
fn plugin_error(answer: &TestAnswer) -> Value {
    let mut document: Value = serde_json::from_slice(&answer.body).unwrap();
    document["plugin_error"].take()
}

#[test]
fn lines_are_kept_with_their_request() {
    let server = server();
    assert_eq!(done(&server, "hostile", "log-line", "order-1").status, 200);
    done(&server, "hostile", "panic", "order-2").refused(500, "plugin_trapped", &[]);
    done(&server, "hostile", "internal-error", "order-3").refused(500, "plugin_failed", &[]);
    done(&server, "hostile", "post-trap", "order-4").refused(500, "plugin_trapped", &[]);
    let refused = done(&server, "hostile", "no-such-deed", "order-5");
    refused.refused(400, "invalid_request", &[]);

    let mut lines = kept(&server, "acme", "hostile");
    for time in lines.iter_mut().map(|line| line["time"].take()) {
        assert!(time.as_str().is_some_and(|time| time.ends_with('Z')), "{time}");
    }
    let [logged, panicked, trapped, failed, post] = &lines[..] else { panic!("{lines:#?}") };
    let expected = json!({
        "time": null, "level": "warn", "request_id": "order-1", "pipeline": "hostile",
        "plugin": "hostile", "call": "preprocess", "message": "hashed\n\"it\"",
        "fields": { "texts": "1", "tenant": "a \"forged\" one" },
    });
    assert_eq!(*logged, expected);
    assert_names(text(panicked, "message"), &["panicked at", "ends.rs:11:", "as told"]);
    let parts = |line| ["level", "request_id", "call"].map(|part| text(line, part));
    assert_eq!(parts(panicked), ["error", "order-2", "preprocess"]);
    assert_names(text(trapped, "message"), &["plugin trapped", "unreachable"]);
    assert_eq!(parts(trapped), ["error", "order-2", "preprocess"]);
    assert_eq!(text(failed, "message"), "plugin failed: a secret of the plugin");
    assert_eq!(parts(post), ["error", "order-4", "postprocess"]);
}

#[test]
fn a_call_that_used_up_its_time_is_kept_with_its_functions() {
    let server = server();
    let late = done(&server, "hostile", "loop", "order-1");
    let detail = late.refused(504, "plugin_timeout", &["pre: plugin used up its 250 ms of CPU"]);
    assert!(!detail.contains("hostile::"), "{detail}");
    let lines = kept(&server, "acme", "hostile");
    let message = text(&lines[0], "message");
    let named = ["plugin used up its 250 ms of CPU time", "limits.cpu_ms", ", in ", "preprocess"];
    assert_names(message, &named);
    assert!(!message.contains("_ZN"), "{message}");
}

/// The limit on CPU time is not reached.
#[test]
fn a_call_that_is_under_way_when_the_time_is_over_is_kept() {
    let server = server();
    let mut spec = processor("hostile", json!({}));
    spec["limits"] = json!({ "cpu_ms": 60_000, "timeout_ms": 4000 });
    server.pipeline("acme", "hostile", &spec);
    done(&server, "hostile", "loop", "order-1").refused(504, "deadline_exceeded", &["4000 ms"]);
    let lines = kept(&server, "acme", "hostile");
    let message = text(&lines[0], "message");
    assert_names(message, &["no answer within 4000 ms: pre was under way", "limits.timeout_ms"]);
    assert_eq!(text(&lines[0], "request_id"), "order-1");
}

#[test]
fn what_a_plugin_prints_is_kept() {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    server.plugin("acme", "hostile-wasi", "hostile-wasi");
    server.pipeline("acme", "wasi", &processor("hostile-wasi", json!({})));
    assert_eq!(done(&server, "wasi", "lines", "order-1").text(), "true");
    done(&server, "wasi", "exit", "order-2").refused(500, "plugin_trapped", &[]);
    let lines = kept(&server, "acme", "hostile-wasi");
    let printed: Vec<_> =
        lines.iter().map(|line| (text(line, "level"), text(line, "message"))).collect();
    let expected = [
        ("info", "one line"),
        ("info", "second line"),
        ("warn", "an unended \"line\""),
        ("error", "plugin called exit with status 1: a plugin has to return from its call"),
    ];
    assert_eq!(printed, expected);
}

#[test]
fn only_an_operator_sees_them_and_of_each_tenant_its_own() {
    let server = server();
    server.hostile("globex");
    assert_eq!(done(&server, "hostile", "log-line", "order-1").status, 200);
    assert_eq!(kept(&server, "acme", "hostile").len(), 1);
    assert!(kept(&server, "globex", "hostile").is_empty());

    let path = logs_path("acme", "hostile");
    server.admin.without_token().get(&path).refused(401, "unauthenticated", &[]);
    let wrong = server.admin.with_token("not-the-admin-token");
    wrong.get(&path).refused(403, "forbidden", &[]);
    server.data.with_token(ADMIN_TOKEN).get(&path).refused(404, "not_found", &[]);
    server.admin.put(&path, b"").refused(405, "method_not_allowed", &[]);
    for (tenant, plugin, named) in
        [("acme", "none", "no plugin \"none\""), ("none", "hostile", "no tenant \"none\"")]
    {
        server.admin.get(&logs_path(tenant, plugin)).refused(404, "not_found", &[named]);
    }
    server.admin.get(&logs_path("acme", "A")).refused(400, "invalid_request", &["plugin: \"A\""]);
}

#[test]
fn a_limit_leaves_the_newest() {
    let server = server();
    for id in ["order-1", "order-2", "order-3"] {
        assert_eq!(done(&server, "hostile", "log-line", id).status, 200);
    }
    let path = logs_path("acme", "hostile");
    let last = server.admin.get(&format!("{path}?limit=2")).ok();
    let ids: Vec<_> =
        last["lines"].as_array().unwrap().iter().map(|line| text(line, "request_id")).collect();
    assert_eq!(ids, ["order-2", "order-3"]);
    for (query, named) in [
        ("limit=0", "limit is \"0\": must be 1 to 256"),
        ("limit=257", "limit is \"257\": must be 1 to 256"),
        ("limit=all", "limit is \"all\""),
        ("lines=3", "unknown parameter \"lines\"; known is limit"),
    ] {
        let refused = server.admin.get(&format!("{path}?{query}"));
        refused.refused(400, "invalid_request", &[named]);
    }
}

#[test]
fn of_a_flood_only_the_end_is_kept() {
    let server = server();
    let much = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000, "log_bytes": 16 << 20 });
    server.pipeline("acme", "chatty", &processor("hostile", much));
    for (deed, fills_lines) in [("log-short", true), ("flood-log", false)] {
        assert_eq!(done(&server, "chatty", deed, deed).text(), "harmless");
        let lines = kept(&server, "acme", "hostile");
        assert!(lines.iter().all(|line| line["request_id"] == deed), "{:?}", lines[0]);
        let bytes: usize = lines.iter().map(|line| text(line, "message").len()).sum();
        assert!(bytes <= BYTES_MAX, "{deed}: {bytes}");
        match fills_lines {
            true => assert_eq!(lines.len(), LINES_MAX, "{deed}"),
            false => assert!(bytes > BYTES_MAX / 2, "{deed}: {bytes}"),
        }
        let last = lines.last().unwrap();
        assert_names(text(last, "message"), &["went over its log budget"]);
    }
}

#[test]
fn lines_outlive_a_new_version_but_not_their_plugin() {
    let server = server();
    assert_eq!(done(&server, "hostile", "log-line", "order-1").status, 200);
    server.plugin("acme", "hostile", "digits");
    server.plugin("acme", "hostile", "hostile");
    assert_eq!(done(&server, "hostile", "log-line", "order-2").status, 200);
    let ids: Vec<_> = kept(&server, "acme", "hostile")
        .iter()
        .map(|line| text(line, "request_id").to_owned())
        .collect();
    assert_eq!(ids, ["order-1", "order-2"]);
    server.admin.delete("/admin/v1/tenants/acme/plugins/hostile?cascade=true").ok();
    server.admin.get(&logs_path("acme", "hostile")).refused(404, "not_found", &[]);
    server.plugin("acme", "hostile", "hostile");
    assert!(kept(&server, "acme", "hostile").is_empty());
}

#[test]
fn with_debug_a_client_sees_why_the_plugin_failed() {
    let server = server();
    put_debug(&server, true);
    let answer = done(&server, "debug", "panic", "order-1");
    answer.refused(500, "plugin_trapped", &["pre: plugin trapped"]);
    let error = plugin_error(&answer);
    assert_eq!((text(&error, "plugin"), text(&error, "call")), ("hostile", "preprocess"));
    assert_names(text(&error, "message"), &["plugin trapped", "unreachable"]);
    let [line] = &error["lines"].as_array().unwrap()[..] else { panic!("{error:#}") };
    assert_names(text(line, "message"), &["panicked at", "ends.rs:11:", "as told"]);
    assert_eq!(text(line, "request_id"), "order-1");

    let answer = done(&server, "debug", "internal-error", "order-2");
    let detail = answer.refused(500, "plugin_failed", &[]);
    assert_eq!(detail, "pre: the plugin failed");
    assert_eq!(text(&plugin_error(&answer), "message"), "a secret of the plugin");
    let answer = done(&server, "debug", "post-trap", "order-3");
    assert_eq!(plugin_error(&answer)["call"], "postprocess");

    let input = json!({
        "name": "REQUEST", "shape": [1], "datatype": "BYTES", "data": ["do=internal-error"],
    });
    let body = json!({ "inputs": [input] }).to_string();
    let path = "/v1/acme/v2/models/pipeline:debug/infer";
    let answer = server.data.post(path, body.as_bytes());
    answer.refused_by_protocol(500, &["pre: the plugin failed"]);
    assert_eq!(text(&plugin_error(&answer), "message"), "a secret of the plugin");

    let held = || server.status()["tenants"]["acme"]["bytes_under_way"].clone();
    eventually("nothing is held", || held() == 0);
    // The release log keeps it.
    let server = server.kill().start();
    let pipelines = &server.status()["tenants"]["acme"]["pipelines"];
    assert_eq!(
        (&pipelines["debug"]["debug"], &pipelines["hostile"]["debug"]),
        (&json!(true), &json!(null))
    );
    assert_ne!(plugin_error(&done(&server, "debug", "panic", "order-4")), Value::Null);
}

#[test]
fn without_debug_no_client_sees_it() {
    let server = server();
    put_debug(&server, true);
    put_debug(&server, false);
    for pipeline in ["hostile", "debug"] {
        for deed in ["panic", "internal-error", "no-such-deed"] {
            let answer = done(&server, pipeline, deed, "order-1");
            let document: Value = serde_json::from_slice(&answer.body).unwrap();
            let mut keys: Vec<_> = document.as_object().unwrap().keys().collect();
            keys.sort();
            let documented = ["code", "detail", "error", "request_id", "status", "title", "type"];
            assert_eq!(keys, documented, "{deed}");
            let text = answer.text();
            let hidden = ["as told", "ends.rs", "a secret of the plugin"];
            assert!(hidden.iter().all(|hidden| !text.contains(hidden)), "{text}");
        }
    }
}

#[test]
fn a_client_sees_lines_of_its_own_request_only() {
    let server = server();
    put_debug(&server, true);
    // Clients choose the ids of their requests.
    assert_eq!(done(&server, "debug", "log-line", "order-1").text(), "harmless");
    let answer = done(&server, "debug", "internal-error", "order-1");
    assert_eq!(plugin_error(&answer)["lines"], json!([]));
    assert_eq!(kept(&server, "acme", "hostile").len(), 2);
}

#[test]
fn a_clients_lines_are_bounded() {
    let server = server();
    let mut spec = processor("hostile", json!({ "log_bytes": 1 << 20 }));
    spec["debug"] = true.into();
    server.pipeline("acme", "debug", &spec);
    for (bytes, expected) in [("1", 50..=50), ("1000", 20..=33)] {
        let deed = format!("log-and-panic&bytes={bytes}");
        let answer = done(&server, "debug", &deed, "order-1");
        let error = plugin_error(&answer);
        let lines = error["lines"].as_array().unwrap();
        assert!(expected.contains(&lines.len()), "{} lines of {bytes}", lines.len());
        let (last, others) = lines.split_last().unwrap();
        assert_names(text(last, "message"), &["panicked at", "after a hundred lines"]);
        assert!(others.iter().all(|line| text(line, "message").starts_with('x')), "{error:#}");
    }
}

#[test]
fn a_panic_is_told_although_the_log_budget_is_used_up() {
    let server = server();
    put_debug(&server, true);
    let answer = done(&server, "debug", "log-and-panic&bytes=1000", "order-1");
    let error = plugin_error(&answer);
    let panic_lines = ["panicked at", "logs.rs:", "after a hundred lines"];
    let shown_lines = error["lines"].as_array().unwrap();
    let kept = kept(&server, "acme", "hostile");
    for lines in [&shown_lines[shown_lines.len() - 2..], &kept[kept.len() - 3..kept.len() - 1]] {
        assert_names(text(&lines[0], "message"), &["went over its log budget"]);
        assert_names(text(&lines[1], "message"), &panic_lines);
        assert_eq!(lines[1]["level"], "error");
    }
    assert_names(text(kept.last().unwrap(), "message"), &["plugin trapped"]);
    assert_names(&server.log_with("after a hundred lines"), &panic_lines);
}

#[test]
fn the_command_line_shows_them() {
    let server = server();
    assert_eq!(done(&server, "hostile", "log-line", "order-1").status, 200);
    let run = |arguments: &[&str]| {
        let command = ["plugin", "logs", "hostile", "--token", ADMIN_TOKEN];
        let admin = ["--admin", server.admin.address()];
        server.setup().run(&[&command[..], &admin[..], arguments].concat())
    };
    let shown = run(&["--tenant", "acme"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert_names(&shown, &["warn", "hostile/preprocess order-1 hashed", "texts: 1"]);
    let shown = run(&["--tenant", "acme", "--limit", "1", "--output", "json"]);
    let lines: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(lines[0]["request_id"], "order-1");
    let refused = run(&["--tenant", "globex"]);
    assert_eq!(refused.status.code(), Some(1));
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_names(&error, &["globex/hostile", "no tenant \"globex\""]);
}

/// Lines of all plugins of the tenant `acme`, and where the next ones begin.
#[track_caller]
fn of_tenant(server: &Server, query: &str) -> (Vec<String>, u64) {
    let document = server.admin.get(&format!("/admin/v1/tenants/acme/logs{query}")).ok();
    let lines = document["lines"].as_array().unwrap();
    let ids = lines.iter().map(|line| text(line, "request_id").to_owned()).collect();
    (ids, document["next"].as_u64().unwrap())
}

#[test]
fn a_tenant_follows_the_lines_of_all_its_plugins() {
    let server = server();
    server.plugin("acme", "second", "hostile");
    server.pipeline("acme", "second", &processor("second", json!({})));
    let log = |pipeline, id| assert_eq!(done(&server, pipeline, "log-line", id).status, 200);
    log("hostile", "order-1");
    log("second", "order-2");
    log("hostile", "order-3");
    let (ids, next) = of_tenant(&server, "");
    assert_eq!(ids, ["order-1", "order-2", "order-3"]);
    assert_eq!(of_tenant(&server, "?plugin=second").0, ["order-2"]);
    assert_eq!(of_tenant(&server, "?limit=2").0, ["order-2", "order-3"]);
    let since = format!("?after={next}");
    assert_eq!(of_tenant(&server, &since), (vec![], next));
    log("second", "order-4");
    assert_eq!(of_tenant(&server, &since), (vec!["order-4".to_owned()], next + 1));

    server.open_tenant("other");
    let deploy = json!({ "role": "deploy", "tenants": ["other"] });
    let other = server.admin.with_token(&make(&server, "ci", &deploy));
    other.get("/admin/v1/tenants/acme/logs").refused(403, "forbidden", &[]);
    for (query, named) in [
        ("after=x", "after is \"x\": must be a whole number"),
        ("limit=0", "limit is \"0\": must be 1 to 1024"),
        ("plugin=A", "plugin: \"A\""),
    ] {
        let refused = server.admin.get(&format!("/admin/v1/tenants/acme/logs?{query}"));
        refused.refused(400, "invalid_request", &[named]);
    }
}

#[test]
fn the_command_line_follows_a_tenant() {
    let server = server();
    assert_eq!(done(&server, "hostile", "log-line", "order-1").status, 200);
    let cli = Cli::of(&server);
    let lines = cli.json(&["logs", "acme"]);
    assert_eq!(text(&lines[0], "request_id"), "order-1");
    let mut command = cli.command(&["logs", "acme", "--follow", "--output", "json"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(following.stdout.take().unwrap());
    let mut read = output.lines().map(|line| {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        text(&line, "request_id").to_owned()
    });
    assert_eq!(read.next().unwrap(), "order-1");
    assert_eq!(done(&server, "hostile", "log-line", "order-2").status, 200);
    assert_eq!(read.next().unwrap(), "order-2");
    following.kill().unwrap();
    following.wait().unwrap();
}
