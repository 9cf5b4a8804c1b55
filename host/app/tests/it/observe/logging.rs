//! The log: it delays nothing, its lines name their requests, and they cannot be forged.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::load::under_load;
use crate::support::onnx;
use crate::support::server::Server;
use crate::support::setup::Setup;

const HOSTILE: &str = "/v1/acme/infer/hostile";

#[track_caller]
fn assert_harmless(answer: &TestAnswer) {
    assert_eq!((answer.status, answer.text().as_str()), (200, "harmless"));
}

/// A server that has logged much more than a pipe and its own queue hold.
fn flooded() -> Server {
    let server = Setup::new().unread_log().start();
    server.hostile("acme");
    for _ in 0..60 {
        assert_harmless(&server.data.post("/v1/acme/infer/patient?do=flood-log", b""));
        assert_eq!(server.data.get("/livez").status, 200);
    }
    server
}

#[test]
fn a_log_that_nobody_reads_stops_nothing() {
    let server = flooded();
    server.digits("other");
    server.assert_reads("other", 7);
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn lines_that_were_dropped_are_counted_in_the_log() {
    let server = flooded();
    server.signal_terminate();
    let (log, status) = server.wait_reading_the_log();
    assert_eq!(status.code(), Some(0));
    let line = log.lines().find(|line| line.contains("log lines were dropped"));
    let line = line.unwrap_or_else(|| panic!("{} bytes of log do not tell", log.len()));
    let dropped: usize = line.split("lines=").nth(1).unwrap().trim().parse().unwrap();
    assert!(dropped > 1000, "{line}");
    assert!(log.contains("shutting down"), "the host's own lines have their place");
}

#[test]
fn clients_cannot_push_out_what_the_server_says_of_itself() {
    let server = Setup::new().unread_log().start();
    server.hostile("acme");
    let fail = |_| server.data.post(&format!("{HOSTILE}?do=trap"), b"").status;
    let dropped = || server.status()["log"]["dropped_lines"].as_u64().unwrap();
    let late: Vec<_> = (0..20).map(|number| format!("tenants/late-{number}")).collect();
    assert_eq!(dropped(), 0);
    under_load(4, fail, |answers| {
        let mut answers = answers.iter();
        assert!(answers.by_ref().take(50_000).any(|_| dropped() > 0), "the log takes all lines");
        for path in &late {
            server.put_json(path, &json!({ "open": true }));
            assert_eq!(answers.next(), Some(500));
        }
    });
    server.signal_terminate();
    let (log, status) = server.wait_reading_the_log();
    assert_eq!(status.code(), Some(0));
    for line in late.iter().map(|path| format!("path=/admin/v1/{path}")) {
        assert!(log.contains(&line), "{line} is missing");
    }
    assert!(log.contains("shutting down"));
}

#[test]
fn in_json_every_line_is_an_object_with_its_request() {
    let server = Setup::new().flag("--log-format", "json").start();
    server.hostile("acme");
    let request_id = [("x-request-id", "order-66")];
    let path = format!("{HOSTILE}?do=log-line");
    assert_harmless(&server.data.send("POST", &path, &request_id, Some(b"")));
    let path = "/v1/acme/v2/models/pipeline:hostile/infer";
    let input =
        json!({ "name": "REQUEST", "shape": [1], "datatype": "BYTES", "data": ["do=log-line"] });
    let request_id = [("x-request-id", "order-67")];
    let body = json!({ "inputs": [input] }).to_string();
    server.data.send("POST", path, &request_id, Some(body.as_bytes())).ok();

    server.log_with("order-67");
    server.signal_terminate();
    let (rest, _, setup) = server.wait();
    assert_eq!(rest, "", "one line on standard output");
    let log = std::fs::read_to_string(setup.log_path()).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let lines: Vec<_> = lines.filter(|line| line["target"] == "plugin").collect();
    assert_eq!(lines.len(), 2, "{log}");
    for (line, id) in lines.iter().zip(["order-66", "order-67"]) {
        for (name, value) in [
            ("level", json!("WARN")),
            ("message", json!("hashed\n\"it\"")),
            ("request_id", json!(id)),
            ("tenant", json!("acme")),
            ("pipeline", json!("hostile")),
            ("plugin", json!("hostile")),
            ("fields", json!({ "texts": "1", "tenant": "a \"forged\" one" })),
        ] {
            assert_eq!(line[name], value, "{name} of {line}");
        }
    }
}

#[test]
fn in_text_a_line_names_its_request_too() {
    let server = Setup::new().flag("--log", "warn").start();
    server.hostile("acme");
    let request_id = [("x-request-id", "order-66")];
    let path = format!("{HOSTILE}?do=log-line");
    assert_harmless(&server.data.send("POST", &path, &request_id, Some(b"")));
    let log = server.log_with("order-66");
    let line = log.lines().find(|line| line.contains("order-66")).unwrap();
    let text = r#" WARN plugin: "hashed\n\"it\"" plugin=hostile fields={"texts":"1","tenant":"a \"forged\" one"} request_id=order-66 tenant=acme pipeline=hostile"#;
    assert!(line.ends_with(text), "{line}");
    let path = format!("{HOSTILE}?do=internal-error");
    server.data.send("POST", &path, &request_id, Some(b"")).refused(500, "plugin_failed", &[]);
    let text = "plugin failed plugin=hostile stage=pre text=\"a secret of the plugin\" request_id=order-66";
    server.log_with(text);
}

#[test]
fn a_model_that_fails_is_logged_with_its_request() {
    let server = Setup::new().flag("--open-tenant", "acme").start();
    server.put("models/wide", &onnx::columns_from_input());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["wide"] }));
    let widen = |columns: i64| {
        let body = json!({ "inputs": [
            { "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0] },
            { "name": "columns", "datatype": "INT64", "shape": [1, 1], "data": [columns] },
        ] });
        let request_id = [("x-request-id", "order-68")];
        let body = body.to_string();
        server.data.send("POST", "/v2/models/wide/infer", &request_id, Some(body.as_bytes()))
    };
    assert_eq!(widen(2).ok()["outputs"][0]["data"], json!([1.0]));
    assert_eq!(widen(1 << 40).status, 500);
    let log = server.log_with("order-68");
    let line = log.lines().find(|line| line.contains("order-68")).unwrap();
    let text = ["WARN", "request failed", "tenant=acme", "model=wide", "model failed"];
    assert!(text.iter().all(|text| line.contains(text)), "{line}");
}

#[test]
fn a_clients_request_id_forges_nothing() {
    let server = Server::start();
    server.hostile("acme");
    for forged in ["a} ERROR gristmill: forged{b=c", "a\" forged=\"b", "forged \\n"] {
        let path = format!("{HOSTILE}?do=internal-error");
        let answer = server.data.send("POST", &path, &[("x-request-id", forged)], Some(b""));
        answer.refused(500, "plugin_failed", &[]);
        let id = answer.header("x-request-id");
        assert!(id.len() == 20 && !id.contains("forged"), "{id}");
        let log = server.log_with(id);
        assert!(!log.contains("forged"), "{log}");
    }
}
