//! Traces, as a collector receives them.

use std::thread;

use gristmill_client::{BinaryTensor, HEADER_LENGTH, InferBody, infer_body};
use serde_json::json;

use crate::support::collector::{Collector, PROTOCOLS, Span};
use crate::support::deploy::processor;
use crate::support::files;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

fn traceparent(trace: &str, flags: &str) -> String {
    format!("00-{trace}-{PARENT}-{flags}")
}

/// A server that samples this share of requests, and sends its traces to `endpoint`.
fn server(endpoint: &str, protocol: &str, ratio: &str) -> Server {
    let setup = Setup::new().flag("--otlp-endpoint", endpoint);
    let setup = setup.flag("--otlp-protocol", protocol).flag("--trace-ratio", ratio);
    let server = setup.start();
    server.digits("acme");
    server
}

#[track_caller]
fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let span = spans.iter().find(|span| span.name == name);
    span.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

/// One request with this trace, and the answer's span.
#[track_caller]
fn ask(server: &Server, path: &str, traceparent: &str, body: &[u8], status: u16) -> String {
    let headers = [("traceparent", traceparent), ("x-request-id", "order-1")];
    let answer = server.data.send("POST", path, &headers, Some(body));
    assert_eq!(answer.status, status, "{}", answer.text());
    answer.header("traceresponse").to_owned()
}

#[test]
fn spans_arrive_over_each_protocol() {
    for (protocol, endpoint) in PROTOCOLS {
        // Shown if it fails.
        println!("over {protocol}");
        let collector = Collector::start();
        spans_are_received(&endpoint(&collector), protocol, &collector);
    }
}

fn spans_are_received(endpoint: &str, protocol: &str, collector: &Collector) {
    let server = server(endpoint, protocol, "0");
    let parent = traceparent(TRACE, "01");
    let response = ask(&server, "/v1/acme/infer/digits", &parent, &files::digit(7), 200);
    let name = "POST /v1/{tenant}/infer/{pipeline}";
    let spans = collector.trace_with(TRACE, name);
    let root = named(&spans, name);
    assert_eq!((&*root.parent, &*root.kind), (PARENT, "SPAN_KIND_SERVER"));
    assert_eq!(response, format!("00-{TRACE}-{}-01", root.id));
    for (key, value) in [
        ("gristmill.tenant", "acme"),
        ("gristmill.pipeline", "digits"),
        ("gristmill.model", "digits"),
        ("gristmill.request.id", "order-1"),
        ("http.request.method", "POST"),
        ("http.response.status_code", "200"),
        ("url.path", "/v1/acme/infer/digits"),
    ] {
        assert_eq!(root.attributes.get(key).map(String::as_str), Some(value), "{root:#?}");
    }
    let stages = ["auth", "read", "pre", "queue", "staging", "infer", "post"];
    for stage in stages {
        let span = named(&spans, stage);
        assert_eq!(span.parent, root.id, "{stage}");
        assert!(span.start >= root.start && span.end <= root.end + 1_000_000, "{spans:#?}");
    }
    assert_eq!(spans.len(), 1 + stages.len(), "{spans:#?}");
    assert!(collector.text().contains("service.name: Str(gristmill)"));

    let infer = named(&spans, "infer");
    let [(batch_trace, batch)] = &infer.links[..] else { panic!("{infer:#?}") };
    let batches = collector.trace_with(batch_trace, "batch");
    assert_eq!((&batches[0].id, batches.len()), (batch, 1));
    assert_eq!(batches[0].links, [(TRACE.to_owned(), infer.id.clone())]);
    assert_eq!(batches[0].attributes["gristmill.batch.rows"], "1");
}

#[test]
fn the_client_decides_and_failed_requests_are_kept() {
    let collector = Collector::start();
    let server = server(&collector.grpc(), "grpc", "1");
    let name = "POST /v1/{tenant}/infer/{pipeline}";
    let unsampled = "1".repeat(32);
    let response = ask(
        &server,
        "/v1/acme/infer/digits",
        &traceparent(&unsampled, "00"),
        &files::digit(7),
        200,
    );
    assert!(response.ends_with("-00"), "{response}");
    let failed = "2".repeat(32);
    ask(&server, "/v1/acme/infer/digits", &traceparent(&failed, "00"), b"nothing", 415);
    let spans = collector.trace_with(&failed, name);
    let root = named(&spans, name);
    assert_eq!(root.attributes["error.type"], "unsupported_media_type");
    assert_eq!(root.status, "STATUS_CODE_UNSET", "the client's errors are not the server's");
    // Without a context of its own a request begins a trace, which is sampled here.
    let answer = server.data.post("/v1/acme/infer/digits", &files::digit(7));
    let trace = answer.header("traceresponse").split('-').nth(1).unwrap().to_owned();
    collector.trace_with(&trace, name);
    assert!(!collector.spans().iter().any(|span| span.trace_id == unsampled));
    // Not even if its client says that it is sampled.
    let wrong = "3".repeat(32);
    ask(&server, "/v1/none/infer", &traceparent(&wrong, "01"), b"", 401);
    ask(&server, "/v1/acme/infer/digits", &traceparent(TRACE, "01"), &files::digit(7), 200);
    collector.trace_with(TRACE, name);
    assert!(!collector.spans().iter().any(|span| span.trace_id == wrong), "nobody was admitted");
}

#[test]
fn what_plugins_log_are_events_and_failures_are_errors() {
    let collector = Collector::start();
    let server = Setup::new().flag("--otlp-endpoint", &collector.grpc()).start();
    server.hostile("acme");
    let name = "POST /v1/{tenant}/infer/{pipeline}";
    let path = "/v1/acme/infer/hostile?do=log-line";
    ask(&server, path, &traceparent(TRACE, "01"), b"", 200);
    let spans = collector.trace_with(TRACE, name);
    assert_eq!(named(&spans, "pre").events.len(), 1, "{spans:#?}");
    assert!(named(&spans, "pre").events[0].contains("hashed"), "{spans:#?}");
    // The query may hold secrets.
    assert_eq!(named(&spans, name).attributes["url.path"], "/v1/acme/infer/hostile");
    let trapped = "4".repeat(32);
    ask(&server, "/v1/acme/infer/hostile?do=panic", &traceparent(&trapped, "00"), b"", 500);
    let spans = collector.trace_with(&trapped, name);
    assert_eq!(named(&spans, name).status, "STATUS_CODE_ERROR");
    assert_eq!(named(&spans, name).attributes["error.type"], "plugin_trapped");
    let log = server.log_with(&trapped);
    assert!(log.contains(&format!("trace_id={trapped}")), "{log}");
}

#[test]
fn a_batch_is_linked_with_all_its_requests() {
    let collector = Collector::start();
    let server = server(&collector.grpc(), "grpc", "1");
    // A batch waits for all of them.
    let config = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [4] });
    server.put_json("models/digits/config", &config);
    server.pipeline("acme", "other", &processor("digits", json!({})));
    let ids: Vec<String> = (1..=4).map(|id| id.to_string().repeat(32)).collect();
    thread::scope(|scope| {
        for (index, id) in ids.iter().enumerate() {
            let pipeline = if index % 2 == 0 { "digits" } else { "other" };
            let (server, path) = (&server, format!("/v1/acme/infer/{pipeline}"));
            scope.spawn(move || {
                ask(server, &path, &traceparent(id, "01"), &files::digit(1), 200);
            });
        }
    });
    let name = "POST /v1/{tenant}/infer/{pipeline}";
    let infers: Vec<Span> =
        ids.iter().map(|id| named(&collector.trace_with(id, name), "infer").clone()).collect();
    let (trace, id) = &infers[0].links[0];
    let batch = named(&collector.trace_with(trace, "batch"), "batch").clone();
    assert_eq!(&batch.id, id, "{batch:#?}");
    let mut linked: Vec<_> = batch.links.iter().map(|(trace, _)| trace.clone()).collect();
    linked.sort();
    let model = server.status()["models"]["digits"].clone();
    assert_eq!(linked, ids, "{model}\n{infers:#?}");
    assert_eq!(batch.attributes["gristmill.batch.requests"], "4");
}

#[test]
fn a_client_that_leaves_within_its_answer_has_a_span() {
    let collector = Collector::start();
    let setup = Setup::new().flag("--otlp-endpoint", &collector.grpc());
    let server = setup.flag("--trace-ratio", "0").flag("--open-tenant", "acme").start();
    server.put("models/identity", &files::fixture("identity-fp32.onnx"));
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["identity"] }));
    // More than the buffers of a connection hold.
    let data = vec![0; 24 << 20];
    let shape = [1, data.len() / 4];
    let input = BinaryTensor { name: "input", datatype: "FP32", shape: &shape, data: &data };
    let output = json!({ "parameters": { "binary_data_output": true } });
    let InferBody { header_length, bytes } = infer_body(&[input], output);
    let headers = [
        format!("content-length: {}", bytes.len()),
        format!("{HEADER_LENGTH}: {header_length}"),
        format!("traceparent: {}", traceparent(TRACE, "01")),
    ];
    let headers = headers.each_ref().map(String::as_str);
    let mut client = Raw::open_narrow(&server.data);
    client.send(raw::post("/v2/models/identity/infer", &headers).as_bytes());
    client.send(&bytes);
    client.read_until("HTTP/1.1 200 OK");
    drop(client);
    let name = "POST /v2/models/{model}/infer";
    let spans = collector.trace_with(TRACE, name);
    let root = named(&spans, name);
    for (key, value) in [("error.type", "abandoned"), ("http.response.status_code", "200")] {
        assert_eq!(root.attributes.get(key).map(String::as_str), Some(value), "{root:#?}");
    }
}

#[test]
fn a_collector_that_is_away_delays_nobody() {
    let server = server("http://127.0.0.1:9", "grpc", "1");
    server.assert_reads_digits("acme");
    server.signal_terminate();
    let (_, status, _) = server.wait();
    assert!(status.success());
}

#[test]
fn settings_of_traces_are_checked() {
    for (flag, value, named) in [
        ("--otlp-endpoint", "collector:4317", "must be a URL that begins with http:// or https://"),
        ("--otlp-protocol", "json", "must be grpc or http"),
        ("--trace-ratio", "2", "0 to 1"),
        ("--trace-ratio", "half", "must be a number"),
    ] {
        let error = Setup::new().flag(flag, value).start_refused();
        assert!(error.contains(named), "{flag} {value}: {error}");
    }
}
