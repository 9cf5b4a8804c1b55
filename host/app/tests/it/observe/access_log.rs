//! The access log, and lines about slow requests.

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::grpc;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const TRACEPARENT: (&str, &str) =
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");

/// The lines of the log with this text, which are JSON objects.
fn lines(server: &Server, text: &str) -> Vec<Value> {
    let log = server.log_with(text);
    log.lines()
        .filter(|line| line.contains(text))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn send(server: &Server, path: &str, id: &str, body: &[u8]) -> TestAnswer {
    let headers =
        [("x-request-id", id), ("authorization", "Bearer the-key-of-acme-1"), TRACEPARENT];
    server.data.send("POST", path, &headers, Some(body))
}

fn started(setup: Setup) -> Server {
    let server = setup.flag("--log-format", "json").start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    server.digits_for("acme");
    server
}

#[test]
fn each_request_has_a_line_without_secrets() {
    let server = started(Setup::new().flag("--access-log", "true"));
    let answer =
        send(&server, "/v1/acme/infer/digits?password=hunter2", "order-1", &files::digit(7));
    assert_eq!(answer.status, 200);
    send(&server, "/v1/acme/infer/none", "order-2", b"x").refused(404, "pipeline_not_found", &[]);
    // Lines are written by a thread of their own.
    let lines = eventually_some("both lines are written", || {
        let lines = lines(&server, "\"target\":\"access\"");
        (lines.len() >= 2).then_some(lines)
    });
    let of = |id: &str| {
        let line = lines.iter().find(|line| line["request_id"] == id);
        line.unwrap_or_else(|| panic!("no {id} in {lines:#?}")).clone()
    };
    let served = of("order-1");
    for (part, expected) in [
        ("method", "POST"),
        ("path", "/v1/acme/infer/digits"),
        ("client", "127.0.0.1"),
        ("code", "ok"),
        ("tenant", "acme"),
        ("pipeline", "digits"),
        ("model", "digits"),
        ("level", "INFO"),
    ] {
        assert_eq!(served[part], expected, "{part} in {served}");
    }
    assert_eq!((&served["status"], &served["rows"]), (&200.into(), &1.into()));
    assert_eq!(served["received_bytes"], files::digit(7).len());
    assert_eq!(served["sent_bytes"], answer.body.len());
    assert!(served["duration_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{served}");
    let refused = of("order-2");
    assert_eq!(
        (&refused["code"], &refused["tenant"]),
        (&"pipeline_not_found".into(), &"acme".into())
    );
    let log = server.log();
    assert!(!log.contains("hunter2") && !log.contains("the-key-of-acme-1"), "{log}");
}

#[test]
fn a_call_of_grpc_whose_caller_is_refused_has_a_line() {
    let server = started(Setup::new().flag("--access-log", "true"));
    assert_eq!(grpc::call(&server.grpc, "ModelInfer", None, b"").status(), 16);
    let line = eventually_some("the line is written", || {
        lines(&server, "\"target\":\"access\"").into_iter().find(|line| line["code"] != "ok")
    });
    let expected = ("unauthenticated", "ModelInfer", "127.0.0.1", Value::Null);
    let parts = ["code", "method", "client", "tenant"].map(|part| line[part].clone());
    let (code, method, client, tenant) = expected;
    assert_eq!(parts, [code.into(), method.into(), client.into(), tenant], "{line}");
}

#[test]
fn no_request_has_a_line_unless_it_is_asked_for() {
    let server = started(Setup::new());
    assert_eq!(send(&server, "/v1/acme/infer/digits", "order-1", &files::digit(7)).status, 200);
    server.admin.get("/admin/v1/releases?no-such=parameter");
    let log = server.log_with("no-such");
    assert!(!log.contains("order-1"), "{log}");
}

#[test]
fn a_slow_request_is_logged_with_its_stages() {
    let server = started(Setup::new().flag("--slow-request-ms", "1"));
    // The first request of a plugin and of a model is slow by itself.
    let id = (0..100).map(|number| format!("order-{number}")).find(|id| {
        assert_eq!(send(&server, "/v1/acme/infer/digits", id, &files::digit(7)).status, 200);
        server.log().contains("slow request")
    });
    assert!(id.is_some());
    let lines = lines(&server, "slow request");
    let line = &lines[0];
    assert_eq!((&line["tenant"], &line["pipeline"]), (&"acme".into(), &"digits".into()));
    assert_eq!((&line["level"], &line["batch_rows"]), (&"WARN".into(), &1.into()));
    let ms = |part: &str| line[part].as_f64().unwrap_or_else(|| panic!("no {part} in {line}"));
    let stages = ["auth_ms", "read_ms", "pre_ms", "queue_ms", "infer_ms", "post_ms"].map(ms);
    assert!(stages.iter().sum::<f64>() <= ms("duration_ms") + 0.01, "{line}");
    assert!(ms("duration_ms") >= 1.0, "{line}");
}

#[test]
fn a_client_that_leaves_has_a_line() {
    let setup = Setup::new().flag("--access-log", "true").flag("--log-format", "json");
    let server = setup.start();
    server.hostile("acme");
    let long = json!({ "cpu_ms": 60_000, "timeout_ms": 60_000 });
    server.pipeline("acme", "long", &processor("hostile", long));
    let under_way = || server.admin.get("/admin/v1/requests").ok()["total"].clone();
    let headers = ["x-request-id: order-1", "content-length: 2"];
    let request = raw::post("/v1/acme/infer/long?do=loop", &headers) + "{}";
    let client = Raw::sent(&server.data, &request);
    eventually("it runs", || under_way() == 1);
    drop(client);
    let line = eventually_some("the line is written", || {
        let lines = lines(&server, "\"target\":\"access\"");
        lines.into_iter().find(|line| line["request_id"] == "order-1")
    });
    for (part, expected) in [
        ("method", json!("POST")),
        ("path", json!("/v1/acme/infer/long")),
        ("client", json!("127.0.0.1")),
        ("tenant", json!("acme")),
        ("code", json!("abandoned")),
        ("received_bytes", json!(2)),
        ("status", Value::Null),
    ] {
        assert_eq!(line[part], expected, "{part} in {line}");
    }
    eventually("it has ended", || under_way() == 0);
}
