//! What tenants use: receipts of single requests, their sums, and that sums survive.

use std::collections::BTreeMap;

use gristmill_oip::grpc::proto::ModelInferRequest;
use gristmill_oip::grpc::proto::model_infer_request::InferInputTensor;
use prost::Message;
use serde_json::{Value, json};

use crate::support::admin_api::make;
use crate::support::cli::Cli;
use crate::support::client::TestAnswer;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::grpc;
use crate::support::onnx;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;

const WANTED: (&str, &str) = ("gristmill-receipt", "true");

/// The numbers of a receipt.
#[track_caller]
fn receipt(answer: &TestAnswer) -> BTreeMap<String, u64> {
    let text = answer.header("gristmill-receipt");
    let number = |part: &str| {
        let (name, number) = part.split_once('=').unwrap_or_else(|| panic!("{text:?}"));
        (name.to_owned(), number.parse().unwrap_or_else(|_| panic!("{text:?}")))
    };
    text.split(", ").map(number).collect()
}

/// The usage, by pipeline and model.
fn usage(client: &crate::support::client::Client, query: &str) -> BTreeMap<String, Value> {
    let document = client.get(&format!("/admin/v1/usage{query}")).ok();
    let row = |row: &Value| {
        let text = |part: &str| row[part].as_str().unwrap_or_default().to_owned();
        ([text("tenant"), text("pipeline"), text("model")].join("/"), row.clone())
    };
    document["items"].as_array().unwrap().iter().map(row).collect()
}

fn ranker_rows(rows: usize) -> Vec<u8> {
    let input = json!({
        "name": "input", "shape": [rows, 32], "datatype": "FP32", "data": vec![0.5; 32 * rows],
    });
    json!({ "inputs": [input] }).to_string().into_bytes()
}

#[test]
fn sums_are_exactly_those_of_the_receipts() {
    let server = Server::with_acme();
    // A request with more rows runs in parts.
    server.put_json("models/ranker/config", &json!({ "max_batch_size": 8 }));
    let mut expected: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
    let mut add = |whose, answer: &TestAnswer| {
        for (name, number) in receipt(answer) {
            *expected.entry(whose).or_default().entry(name).or_default() += number;
        }
    };
    for digit in 0..10 {
        let path = "/v1/acme/infer/digits";
        let answer = server.data.send("POST", path, &[WANTED], Some(&files::digit(digit)));
        assert_eq!(answer.status, 200);
        assert_eq!(receipt(&answer)["sent-bytes"], answer.body.len() as u64);
        add("acme/digits/digits", &answer);
    }
    let refused = server.data.send("POST", "/v1/acme/infer/digits", &[WANTED], Some(b"nothing"));
    assert_eq!((refused.status, receipt(&refused)["rows"]), (415, 0));
    assert_eq!(receipt(&refused)["sent-bytes"], refused.body.len() as u64);
    add("acme/digits/digits", &refused);
    for rows in 1..4 {
        let path = "/v1/acme/v2/models/ranker/infer";
        let answer = server.data.send("POST", path, &[WANTED], Some(&ranker_rows(rows)));
        assert_eq!(receipt(&answer)["rows"], rows as u64, "{}", answer.text());
        assert!(receipt(&answer)["batch-rows"] >= rows as u64);
        add("acme//ranker", &answer);
    }
    let rows = usage(&server.admin, "");
    assert_eq!(rows.len(), 2, "{rows:?}");
    for (whose, sums) in expected {
        let row = &rows[whose];
        // A batch is not the request's own.
        for (name, sum) in sums.iter().filter(|(name, _)| !name.starts_with("batch-")) {
            assert_eq!(row[name.replace('-', "_")], *sum, "{whose} {name}: {row}");
        }
        assert!(sums["model-us"] > 0 && sums["host-cpu-us"] > 0, "{sums:?}");
    }
    let digits = &rows["acme/digits/digits"];
    assert_eq!((&digits["requests"], &digits["failed"]), (&json!(11), &json!(1)));
    assert!(digits["plugin_cpu_us"].as_u64() > Some(0));
}

#[test]
fn a_call_whose_time_is_over_is_charged() {
    let server = Server::start();
    server.hostile("acme");
    let short = json!({ "cpu_ms": 60_000, "timeout_ms": 500 });
    server.pipeline("acme", "short", &processor("hostile", short));
    let late = server.data.post("/v1/acme/infer/short?do=loop", b"");
    late.refused(504, "deadline_exceeded", &[]);
    let used = usage(&server.admin, "")["acme/short/digits"].clone();
    assert_eq!((&used["requests"], &used["failed"]), (&json!(1), &json!(1)));
    assert!(used["plugin_cpu_us"].as_u64() > Some(1000), "{used}");
}

/// A run goes on after the deadline, and after its client has left, until it is told to end.
#[test]
fn a_run_that_ends_after_its_request_is_charged() {
    let turns = 1_i64 << 62;
    let server = Setup::new().flag("--open-tenant", "acme").flag("--infer-timeout-s", "2").start();
    server.put("models/loop", &onnx::turns_from_input());
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["loop"] }));
    let body = json!({ "inputs": [
        { "name": "x", "datatype": "FP32", "shape": [1, 1], "data": [1.0] },
        { "name": "turns", "datatype": "INT64", "shape": [1, 1], "data": [turns] },
    ] });
    let body = body.to_string();
    let used = || {
        let used = usage(&server.admin, "").remove("acme//loop").unwrap_or_default();
        ["requests", "rows", "model_us"].map(|name| used[name].as_u64().unwrap_or(0))
    };
    let path = "/v2/models/loop/infer";
    assert_eq!(server.data.post(path, body.as_bytes()).status, 504);
    eventually("the late run is charged", || used()[..2] == [1, 1]);
    let first = used()[2];
    // It ran for seconds, maybe beside a busy machine.
    assert!(first > 100_000, "{first}");

    // Until the instance is free, the server may expect that it cannot answer in time.
    let running = || server.status()["models"]["loop"]["statistics"]["running"].clone();
    eventually("the instance is free", || running() == 0);
    let length = format!("content-length: {}", body.len());
    let mut client = Raw::sent(&server.data, &raw::post(path, &[&length]));
    client.send(body.as_bytes());
    eventually("it runs", || running() == 1);
    drop(client);
    eventually("the abandoned run is charged", || used()[..2] == [2, 2]);
    assert!(used()[2] > first, "{:?}", used());
    let metrics = server.admin.get("/metrics").text();
    assert!(metrics.contains("model=\"loop\",outcome=\"abandoned\"} 1\n"), "{metrics}");
}

#[test]
fn requests_over_grpc_are_charged_in_streams_too() {
    const KEY: &str = "the-key-of-acme-1";
    let server = Server::start();
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "api_keys": [KEY], "models": ["ranker"] }));
    let input = InferInputTensor {
        name: "input".into(),
        datatype: "FP32".into(),
        shape: vec![2, 32],
        ..InferInputTensor::default()
    };
    let message = ModelInferRequest {
        model_name: "ranker".into(),
        inputs: vec![input],
        raw_input_contents: vec![vec![0; 2 * 32 * 4].into()],
        ..ModelInferRequest::default()
    };
    let mut before = 0;
    for (method, requests) in [("ModelStreamInfer", 1), ("ModelInfer", 2)] {
        let answer = grpc::call(&server.grpc, method, Some(KEY), &message.encode_to_vec());
        assert_eq!(answer.status(), 0, "{answer:?}");
        let used = usage(&server.admin, "")["acme//ranker"].clone();
        assert_eq!((&used["requests"], &used["rows"]), (&json!(requests), &json!(2 * requests)));
        let host = used["host_cpu_us"].as_u64().unwrap();
        assert!(host > before && used["model_us"].as_u64() > Some(0), "{method}: {used}");
        before = host;
    }
}

#[test]
fn only_those_who_ask_and_are_admitted_get_a_receipt() {
    let server = Server::with_acme();
    server.keyed_tenant("closed", "the-key-of-closed-1");
    let path = "/v1/acme/infer/digits";
    let send = |path: &str, headers: &[(&str, &str)]| {
        let answer = server.data.send("POST", path, headers, Some(&files::digit(1)));
        answer.header("gristmill-receipt").to_owned()
    };
    assert_eq!(send(path, &[]), "");
    assert_eq!(send(path, &[("gristmill-receipt", "false")]), "");
    assert_eq!(send("/v1/closed/infer", &[WANTED]), "");
    assert!(
        send(path, &[WANTED]).starts_with("rows=1, batch-rows=1, batch-tenants=1, plugin-cpu-us=")
    );
}

#[test]
fn usage_outlives_the_server() {
    let server = Server::with_acme();
    server.assert_reads_digits("acme");
    let before = usage(&server.admin, "");
    server.signal_terminate();
    let (_, status, setup) = server.wait();
    assert!(status.success());
    let server = setup.start();
    assert_eq!(usage(&server.admin, ""), before);
    server.assert_reads_digits("acme");
    let after = usage(&server.admin, "");
    assert_eq!(after["acme/digits/digits"]["requests"], 20);
    // The pipeline is gone, and what it used is known.
    let gone = server.admin.delete("/admin/v1/tenants/acme?cascade=true");
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(usage(&server.admin, "")["acme/digits/digits"], after["acme/digits/digits"]);
}

#[test]
fn a_deploy_token_sees_the_usage_of_its_tenants() {
    let server = Server::with_acme();
    server.digits("other");
    server.assert_reads("acme", 1);
    server.assert_reads("other", 2);
    let deploy = json!({ "role": "deploy", "tenants": ["acme"] });
    let deploy = server.admin.with_token(&make(&server, "ci", &deploy));
    let names = |rows: BTreeMap<String, Value>| rows.into_keys().collect::<Vec<_>>();
    assert_eq!(names(usage(&deploy, "")), ["acme/digits/digits"]);
    assert_eq!(names(usage(&server.admin, "?tenant=other")), ["other/digits/digits"]);
    assert_eq!(names(usage(&deploy, "?tenant=other")), [""; 0]);
    assert_eq!(names(usage(&server.admin, "?from=2026-01-01T00&to=2026-01-01T05")), [""; 0]);

    let page = server.admin.get("/admin/v1/usage?limit=1&by=hour").ok();
    assert_eq!(page["items"][0]["tenant"], "acme");
    assert!(page["items"][0]["hour"].as_str().is_some_and(|hour| hour.len() == 13), "{page}");
    let next = page["next"].as_str().unwrap();
    let page = server.admin.get(&format!("/admin/v1/usage?limit=1&by=hour&after={next}")).ok();
    assert_eq!((&page["items"][0]["tenant"], &page["next"]), (&json!("other"), &Value::Null));
}

#[test]
fn a_later_tenant_of_the_same_name_sees_nothing_of_the_earlier_one() {
    let server = Server::with_acme();
    server.assert_reads("acme", 1);
    let deploy = json!({ "role": "deploy", "tenants": ["acme"] });
    let deploy = server.admin.with_token(&make(&server, "ci", &deploy));
    assert_eq!(usage(&deploy, "").len(), 1);
    assert_eq!(server.admin.delete("/admin/v1/tenants/acme?cascade=true").status, 200);
    server.open_tenant("acme");
    let later = json!({ "role": "deploy", "tenants": ["acme"] });
    let later = server.admin.with_token(&make(&server, "later", &later));
    assert_eq!(usage(&later, "").len(), 0);
    assert_eq!(usage(&server.admin, "").len(), 1);
}

#[test]
fn a_query_that_cannot_be_understood_is_refused() {
    let server = Server::start();
    for (query, named) in [
        ("from=yesterday", &["from", "\"yesterday\"", "2026-11-25T14"][..]),
        ("to=2026-11-25", &["to", "\"2026-11-25\""]),
        ("from=2026-02-01T00&to=2026-01-01T00", &["from is 2026-02-01T00", "2026-01-01T00"]),
        ("from=2024-01-01T00&to=2026-01-01T00", &["from is 2024-01-01T00", "8784 hours"]),
        ("by=day", &["by is \"day\"", "total or hour"]),
        ("tenant=A", &["tenant", "\"A\""]),
        ("limit=0", &["limit is \"0\"", "10000"]),
        ("hour=1", &["\"hour\"", "from, to, by, tenant, limit, after"]),
    ] {
        let answer = server.admin.get(&format!("/admin/v1/usage?{query}"));
        answer.refused(400, "invalid_request", named);
    }
}

#[test]
fn the_command_line_shows_usage() {
    let server = Server::with_acme();
    server.assert_reads_digits("acme");
    let cli = Cli::of(&server);
    let text = cli.ok(&["usage"]);
    let lines: Vec<Vec<&str>> =
        text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..2], ["HOUR", "TENANT"], "{text}");
    assert_eq!(lines[1][..5], ["acme", "digits", "digits", "10", "0"], "{text}");
    let rows = cli.json(&["usage", "--hours", "--tenant", "acme"]);
    assert_eq!((&rows[0]["requests"], &rows[0]["rows"]), (&json!(10), &json!(10)), "{rows}");
    let refused = cli.refused(&["usage", "--from", "now"]);
    assert!(refused.contains("\"now\" is not an hour"), "{refused}");
}
