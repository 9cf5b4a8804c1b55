//! Quotas of tenants: requests, rows under way and CPU time of plugins.

use std::thread;

use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::eventually::{eventually, eventually_some};
use crate::support::files;
use crate::support::grpc;
use crate::support::protobuf::Message;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

const KEY: &str = "the-key-of-acme-1";

/// A server whose tenants `acme` and `other` may run the model `identity`. `acme` has a quota.
fn server(quota: Value) -> Server {
    let server = Setup::new().flag("--open-tenant", "other").start();
    server.put("models/identity", &files::fixture("identity-fp32.onnx"));
    server.put_json("tenants/other", &json!({ "open": true, "models": ["identity"] }));
    put_quota(&server, quota);
    server
}

/// Put `acme` with this quota.
fn put_quota(server: &Server, quota: Value) -> u64 {
    let models = ["identity"];
    let tenant = json!({ "api_keys": [KEY], "models": models, "quota": quota });
    server.put_json("tenants/acme", &tenant)
}

/// Run the model for the caller with this key.
fn infer(server: &Server, key: Option<&str>, rows: usize) -> TestAnswer {
    let input = json!({
        "name": "input", "datatype": "FP32", "shape": [rows, 1], "data": vec![1.5; rows],
    });
    let body = json!({ "inputs": [input] }).to_string();
    let client = match key {
        Some(key) => server.data.with_token(key),
        None => server.data.clone(),
    };
    client.post("/v2/models/identity/infer", body.as_bytes())
}

fn infer_grpc(server: &Server, key: Option<&str>) -> grpc::GrpcAnswer {
    let input = Message::new().text(1, "input").text(2, "FP32").int(3, 1).int(3, 1);
    let message = Message::new().text(1, "identity").message(5, input);
    let message = message.bytes(7, &1.5_f32.to_le_bytes()).into_bytes();
    grpc::call(&server.grpc, "ModelInfer", key, &message)
}

/// Send requests until one is refused. Returns how many were answered, and the refusal.
#[track_caller]
fn until_refused(server: &Server) -> (usize, TestAnswer) {
    let mut answered = 0;
    let refused = eventually_some("a request is refused", || {
        let answer = infer(server, Some(KEY), 1);
        answered += usize::from(answer.status == 200);
        (answer.status != 200).then_some(answer)
    });
    (answered, refused)
}

/// The number in a header such as `"requests";r=3;t=1`.
fn parameter(header: &str, name: &str) -> u64 {
    let value = header.split(';').find_map(|part| part.strip_prefix(&format!("{name}=")));
    value.unwrap_or_else(|| panic!("no {name} in {header:?}")).parse().unwrap()
}

#[test]
fn requests_beyond_the_quota_are_refused_on_every_protocol_and_no_neighbour_is() {
    let server = server(json!({ "requests_per_s": 1, "burst": 5 }));
    let first = infer(&server, Some(KEY), 1);
    assert_eq!(first.header("ratelimit-policy"), "\"requests\";q=5;w=5");
    assert_eq!(parameter(first.header("ratelimit"), "r"), 4);
    let (answered, refused) = until_refused(&server);
    assert!(answered >= 4, "the burst is let through: {answered}");
    let protocol: Value = serde_json::from_slice(&refused.body).unwrap();
    let named = ["quota of requests is used up", "1 requests in 1 s, at most 5 at once"];
    assert_names(protocol["error"].as_str().unwrap(), &named);
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"));
    assert_eq!(parameter(refused.header("ratelimit"), "r"), 0);
    assert!((4..=5).contains(&parameter(refused.header("ratelimit"), "t")));
    // The same quota holds for the other protocols.
    let client = server.data.with_token(KEY);
    let refused = eventually_some("/v1 is refused", || {
        Some(client.get("/v1/acme")).filter(|answer| answer.status != 200)
    });
    refused.refused(429, "quota_exceeded", &["the next one can be sent in 1 s"]);
    assert_eq!(refused.header("ratelimit-policy"), "\"requests\";q=5;w=5");
    let refused = eventually_some("gRPC is refused", || {
        Some(infer_grpc(&server, Some(KEY))).filter(|answer| answer.status() != 0)
    });
    assert_eq!((refused.status(), refused.header("retry-after")), (8, "1"), "{refused:?}");
    assert_eq!(parameter(refused.header("ratelimit"), "r"), 0);
    // A neighbour without a quota is told nothing of one.
    for _ in 0..20 {
        let answer = infer(&server, None, 1);
        assert_eq!((answer.status, answer.header("ratelimit")), (200, ""), "{}", answer.text());
        let answer = infer_grpc(&server, None);
        assert_eq!((answer.status(), answer.header("ratelimit")), (0, ""), "{answer:?}");
    }
    eventually("the bucket refills", || infer(&server, Some(KEY), 1).status == 200);
    let tenants = &server.status()["tenants"];
    assert!(tenants["acme"]["quota"]["refused"].as_u64().unwrap() >= 3, "{tenants}");
    assert_eq!(tenants["other"]["quota"], Value::Null);
}

#[test]
fn a_body_of_a_refused_request_is_not_read() {
    let server = server(json!({ "requests_per_s": 1, "burst": 1 }));
    let head = format!("authorization: Bearer {KEY}");
    let long = "content-length: 100000000";
    let head = raw::post("/v2/models/identity/infer", &[long, &head]);
    eventually("one is refused", || infer(&server, Some(KEY), 1).status == 429);
    eventually("it is refused without its body", || {
        let mut raw = Raw::sent(&server.data, &head);
        raw.read_until("\r\n").starts_with("HTTP/1.1 429 ")
    });
}

#[test]
fn a_change_of_the_quota_holds_at_once_and_resets_nothing() {
    let server = server(json!({ "requests_per_s": 1, "burst": 4 }));
    until_refused(&server);
    // Other changes of the tenant give nothing back.
    server.put_json("tenants/acme/keys/second", &json!({ "key": "the-second-key-of-acme" }));
    let second = eventually_some("the key that is new is refused, too", || {
        Some(infer(&server, Some("the-second-key-of-acme"), 1)).filter(|it| it.status == 429)
    });
    assert_eq!(second.header("ratelimit-policy"), "\"requests\";q=4;w=4");
    put_quota(&server, json!({ "requests_per_s": 1, "burst": 1000 }));
    let more = infer(&server, Some(KEY), 1);
    assert_eq!(more.header("ratelimit-policy"), "\"requests\";q=1000;w=1000");
    let left = parameter(more.header("ratelimit"), "r");
    assert!((980..=999).contains(&left), "what was sent before counts: {left}");
    put_quota(&server, json!({}));
    for _ in 0..20 {
        assert_eq!(infer(&server, Some(KEY), 1).header("ratelimit"), "");
    }
    // A quota is kept over a restart.
    put_quota(&server, json!({ "requests_per_s": 1, "burst": 2 }));
    let server = server.kill().start();
    let (answered, _) = until_refused(&server);
    assert!(answered >= 2, "{answered}");
}

#[test]
fn rows_in_flight_are_taken_by_the_queue_and_given_back() {
    let server = server(json!({ "rows_in_flight": 2 }));
    // A batch waits for a third row.
    let config = json!({ "max_queue_delay_us": 60_000_000, "preferred_batch_sizes": [3] });
    server.put_json("models/identity/config", &config);
    thread::scope(|scope| {
        let waiting = scope.spawn(|| infer(&server, Some(KEY), 2));
        let rows = || server.status()["tenants"]["acme"]["quota"]["rows_in_flight"].clone();
        eventually("two rows are under way", || rows() == 2);
        let refused = infer(&server, Some(KEY), 1);
        let named = ["rows in flight to 3; its quota is 2"];
        refused.refused_by_protocol(429, &named);
        assert_eq!(refused.header("retry-after"), "1");
        assert_eq!(infer_grpc(&server, Some(KEY)).status(), 8);
        // The row of a neighbour ends the wait of both.
        assert_eq!(infer(&server, None, 1).status, 200);
        assert_eq!(waiting.join().unwrap().status, 200);
        assert_eq!(rows(), 0);
    });
    let too_many = infer(&server, Some(KEY), 3);
    too_many.refused_by_protocol(429, &["rows in flight to 3; its quota is 2"]);
}

#[test]
fn processor_time_of_plugins_is_charged_however_their_calls_end() {
    let server = Server::start();
    server.hostile("acme");
    server.hostile("other");
    // Each call uses its 250 ms, whether it is told so or its client is gone.
    let quota = json!({ "open": true, "quota": { "plugin_cpu_s_per_minute": 1 } });
    server.put_json("tenants/acme", &quota);
    let mut calls = 0;
    let refused = eventually_some("the quota is used up", || {
        let answer = server.data.post("/v1/acme/infer/hostile?do=loop", b"");
        calls += 1;
        (answer.status != 504).then_some(answer)
    });
    let named = ["quota of plugins' CPU time is used up: 1 s in 60 s"];
    refused.refused(429, "quota_exceeded", &named);
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!((3..=8).contains(&calls), "{calls} calls of 250 ms");
    // All that the tenant asks for waits, and nothing of the other one.
    let refused = server.data.get("/v1/acme");
    refused.refused(429, "quota_exceeded", &["CPU time"]);
    assert_eq!(server.data.post("/v1/other/infer/hostile", b"").text(), "harmless");
    server.open_tenant("acme");
    assert_eq!(server.data.post("/v1/acme/infer/hostile", b"").text(), "harmless");
}

#[test]
fn a_quota_is_read_back_put_back_and_named_with_all_of_its_faults() {
    let quota = json!({ "requests_per_s": 100, "rows_in_flight": 64 });
    let server = server(quota.clone());
    let path = "/admin/v1/tenants/acme";
    let read = server.admin.get(path).ok();
    assert_eq!(read["quota"], quota);
    let release = server.release();
    let put = server.admin.put_json(path, &read);
    assert_eq!(put.status, 200, "{}", put.text());
    assert_eq!(server.admin.get(path).ok(), read);
    let history = server.admin.get(&format!("/admin/v1/releases/{release}")).ok();
    assert_eq!(history["changes"][0]["document"]["quota"], quota, "{history}");
    let wrong = json!({ "api_keys": [KEY], "weight": 0, "quota": {
        "requests_per_s": 0, "rows_in_flight": -1, "plugin_cpu_s_per_minute": 1e9, "cpu": 1,
    }});
    let refused = server.admin.put_json(path, &wrong);
    let named = [
        "weight is 0",
        "quota.requests_per_s is 0: must be 1 to 1000000",
        "quota.rows_in_flight is -1: must be a whole number",
        "quota.plugin_cpu_s_per_minute is 1000000000:",
        "quota: unknown key \"cpu\"",
    ];
    refused.refused(422, "unprocessable", &named);
    server.admin.delete(path).ok();
    let back = server.admin.send(
        "POST",
        "/admin/v1/rollback",
        &[("content-type", "application/json")],
        Some(json!({ "to": release }).to_string().as_bytes()),
    );
    assert_eq!(back.status, 200, "{}", back.text());
    assert_eq!(server.admin.get(path).ok()["quota"], quota);
}
