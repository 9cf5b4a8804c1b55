//! Handlers: one call that runs several models, beside others and within its limits.

use std::collections::BTreeMap;
use std::thread;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::support::client::TestAnswer;
use crate::support::collector::Collector;
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::server::Server;
use crate::support::setup::Setup;

const WANTED: (&str, &str) = ("gristmill-receipt", "true");

/// A pipeline whose handler has the model `digits` under its own name.
fn handler(plugin: &str, limits: Value) -> Value {
    json!({ "handler": plugin, "models": { "digits": "digits" }, "limits": limits })
}

/// The request of `digits-pages` for these digits.
fn pages(digits: &[usize]) -> Vec<u8> {
    let picture = |digit: &usize| BASE64_STANDARD.encode(files::digit(*digit));
    let images: Vec<_> = digits.iter().map(picture).collect();
    json!({ "images": images }).to_string().into_bytes()
}

/// The open tenant reads pages of digits.
fn reads_pages(server: &Server, tenant: &str) {
    server.open_tenant(tenant);
    server.model("digits");
    server.plugin(tenant, "pages", "digits-pages");
    server.pipeline(tenant, "pages", &handler("pages", json!({})));
}

/// A server whose tenant `acme` has the handler `hostile-handler`, with these limits.
fn hostile(limits: Value) -> Server {
    let server = Server::start();
    server.open_tenant("acme");
    server.model("digits");
    server.plugin("acme", "hostile", "hostile-handler");
    server.pipeline("acme", "hostile", &handler("hostile", limits));
    server
}

fn told(server: &Server, deed: &str) -> TestAnswer {
    let answer = server.data.post("/v1/acme/infer/hostile", deed.as_bytes());
    let next = server.data.post("/v1/acme/infer/hostile", b"");
    assert_eq!((next.status, next.text().as_str()), (200, "1 outputs"), "after {deed}");
    answer
}

/// The numbers of a receipt.
fn receipt(answer: &TestAnswer) -> BTreeMap<String, u64> {
    let numbers = answer.header("gristmill-receipt").split(", ");
    let number = |part: &str| {
        let (name, number) = part.split_once('=')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    numbers.filter_map(number).collect()
}

#[test]
fn a_handler_runs_a_model_for_each_part_of_its_request() {
    let server = Server::start();
    reads_pages(&server, "acme");
    server.put_json("models/digits/config", &json!({ "max_batch_size": 16 }));
    let all: Vec<_> = (0..10).collect();
    let headers = [WANTED];
    let body = pages(&all);
    let answer = server.data.send("POST", "/v1/acme/infer/pages", &headers, Some(&body));
    assert_eq!(answer.ok(), json!({ "digits": all, "text": "0123456789" }));
    let receipt = receipt(&answer);
    assert_eq!(receipt["rows"], 10);
    assert!(receipt["batch-rows"] > 1, "its own runs share batches: {receipt:?}");
    assert!(receipt["plugin-cpu-us"] > 0 && receipt["model-us"] > 0, "{receipt:?}");
    let timing = answer.header("server-timing");
    for stage in ["auth;", "queue;", "infer;", "handle;"] {
        assert!(timing.contains(stage), "{timing}");
    }
    assert!(!timing.contains("pre;") && !timing.contains("post;"), "{timing}");
    let refused = server.data.post("/v1/acme/infer/pages", b"{\"images\":[\"?\"]}");
    refused.refused(400, "invalid_request", &["base64"]);
}

#[test]
fn handlers_of_tenants_that_know_nothing_of_each_other_share_batches() {
    let server = Server::start();
    for tenant in ["acme", "globex"] {
        reads_pages(&server, tenant);
    }
    server.put_json("models/digits/config", &json!({ "max_batch_size": 16 }));
    let body = pages(&[1, 2, 3, 4]);
    eventually("a batch has rows of both", || {
        thread::scope(|scope| {
            let sent = ["acme", "globex"].map(|tenant| {
                let (server, body) = (&server, &body);
                scope.spawn(move || {
                    let path = format!("/v1/{tenant}/infer/pages");
                    let answer = server.data.send("POST", &path, &[WANTED], Some(body));
                    assert_eq!(answer.ok()["text"], "1234");
                    receipt(&answer)["batch-tenants"]
                })
            });
            sent.into_iter().any(|sent| sent.join().unwrap() == 2)
        })
    });
}

#[test]
fn usage_names_each_model_of_a_handler_and_adds_up_to_the_receipts() {
    let server = Server::start();
    reads_pages(&server, "acme");
    server.model("ranker");
    let models = json!({ "digits": "digits", "other": "ranker" });
    server.pipeline("acme", "pages", &json!({ "handler": "pages", "models": models }));
    let mut expected = BTreeMap::<String, u64>::new();
    for _ in 0..3 {
        let body = pages(&[7, 8]);
        let answer = server.data.send("POST", "/v1/acme/infer/pages", &[WANTED], Some(&body));
        assert_eq!(answer.ok()["text"], "78");
        for (name, number) in receipt(&answer) {
            *expected.entry(name).or_default() += number;
        }
    }
    let rows = server.admin.get("/admin/v1/usage").ok()["items"].clone();
    let [row] = &rows.as_array().unwrap()[..] else { panic!("{rows}") };
    assert_eq!((&row["pipeline"], &row["model"]), (&json!("pages"), &json!("digits")));
    assert_eq!((&row["requests"], &row["failed"]), (&json!(3), &json!(0)));
    for (name, key) in [
        ("rows", "rows"),
        ("model-us", "model_us"),
        ("plugin-cpu-us", "plugin_cpu_us"),
        ("host-cpu-us", "host_cpu_us"),
        ("queue-us", "queue_us"),
    ] {
        assert_eq!(row[key], expected[name], "{key}: {row}");
    }
}

#[test]
fn a_trace_shows_the_runs_within_the_call() {
    let collector = Collector::start();
    let setup = Setup::new().flag("--otlp-endpoint", &collector.http());
    let server = setup.flag("--otlp-protocol", "http").flag("--trace-ratio", "1").start();
    reads_pages(&server, "acme");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-01");
    let headers = [("traceparent", parent.as_str())];
    let body = pages(&[5, 6]);
    let answer = server.data.send("POST", "/v1/acme/infer/pages", &headers, Some(&body));
    assert_eq!(answer.ok()["text"], "56");
    let spans = collector.trace_with(trace, "handle");
    let [call] = &spans.iter().filter(|span| span.name == "handle").collect::<Vec<_>>()[..] else {
        panic!("one call");
    };
    let runs: Vec<_> = spans.iter().filter(|span| span.name == "infer").collect();
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert!(call.start <= run.start && run.end <= call.end, "within the call");
    }
}

#[test]
fn a_candidate_tries_another_model_under_the_same_name_and_samples_guard_it() {
    let server = Server::start();
    reads_pages(&server, "acme");
    server.put("models/other", &files::model("digits"));
    let sample = json!({
        "name": "a-page",
        "request": { "json": serde_json::from_slice::<Value>(&pages(&[3, 1])).unwrap() },
        "expect": { "json": { "digits": [3, 1], "text": "31" } },
    });
    let candidate = json!({ "models": { "digits": "other" }, "traffic_percent": 100 });
    let mut pipeline = handler("pages", json!({}));
    pipeline["samples"] = json!([sample]);
    pipeline["candidate"] = candidate;
    server.pipeline("acme", "pages", &pipeline);
    let answer = server.data.post("/v1/acme/infer/pages", &pages(&[9, 0]));
    assert_eq!(answer.ok()["text"], "90");
    pipeline["samples"][0]["expect"]["json"]["text"] = json!("13");
    let path = "/admin/v1/tenants/acme/pipelines/pages";
    let refused = server.admin.put_json(path, &pipeline);
    refused.refused(422, "sample_failed", &["a-page"]);
}

#[test]
fn models_that_are_not_named_do_not_exist() {
    let server = hostile(json!({}));
    server.put("models/secret", &files::model("digits"));
    told(&server, "not-granted").refused(500, "plugin_failed", &["the plugin failed"]);
    server.log_with("has no model \\\"secret\\\" under \\\"models\\\", but \\\"digits\\\"");
    let caught = told(&server, "not-granted-caught");
    let text = caught.text();
    assert_eq!(caught.status, 200, "{text}");
    assert!(text.contains("\"hostile\" has no model \"secret\" under \"models\""), "{text}");
}

#[test]
fn names_of_models_are_bounded_before_they_are_shown() {
    let server = hostile(json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 }));
    told(&server, "long-name").refused(500, "plugin_failed", &["the plugin failed"]);
    server.log_with("a name of 16777216 bytes: names have at most 64");
    assert_eq!(told(&server, "long-names").text(), "250");
}

#[test]
fn handlers_of_many_tenants_that_wait_do_not_wait_for_one_another() {
    let server = Setup::new().flag("--concurrent-plugin-calls", "4").start();
    let tenants = ["one", "two", "three", "four"];
    for tenant in tenants {
        reads_pages(&server, tenant);
    }
    let config = json!({ "max_batch_size": 512, "max_queue_delay_us": 300_000 });
    server.put_json("models/digits/config", &config);
    for _ in 0..3 {
        thread::scope(|scope| {
            let requests = tenants.iter().flat_map(|tenant| [tenant; 2]).map(|tenant| {
                let (server, path) = (&server, format!("/v1/{tenant}/infer/pages"));
                scope.spawn(move || server.data.post(&path, &pages(&[6])))
            });
            for request in requests.collect::<Vec<_>>() {
                assert_eq!(request.join().unwrap().ok()["text"], "6");
            }
        });
    }
}

#[test]
fn wrong_inputs_are_the_plugins_fault_and_named() {
    let server = hostile(json!({}));
    let code = "plugin_invalid_output";
    told(&server, "wrong-input").refused(500, code, &["inptu"]);
    told(&server, "wrong-shape").refused(500, code, &["input", "784"]);
    let forged = told(&server, "forged");
    forged.refused(500, "plugin_failed", &["the plugin failed"]);
    server.log_with("as told");
}

#[test]
fn runs_without_end_reach_a_limit() {
    let limits = json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 });
    let mut server = hostile(limits);
    let code = "plugin_out_of_memory";
    told(&server, "infer-forever").refused(500, code, &["4096 runs of models in one request"]);
    let many = ["256 runs of models side by side (1000 wanted)"];
    told(&server, "infer-many").refused(500, code, &many);
    told(&server, "keep-tensors").refused(500, code, &["4096 runs"]);
    told(&server, "keep-graphs").refused(500, code, &["handles"]);
    server.assert_alive();
}

#[test]
fn a_tenant_that_floods_a_model_leaves_others_their_turn() {
    let server = hostile(json!({ "cpu_ms": 60_000, "timeout_ms": 100_000 }));
    server.digits("beta");
    thread::scope(|scope| {
        let flood = || server.data.post("/v1/acme/infer/hostile", b"infer-waves");
        let floods = [scope.spawn(flood), scope.spawn(flood)];
        server.assert_reads_digits("beta");
        for flood in floods {
            let answer = flood.join().unwrap();
            answer.refused(500, "plugin_out_of_memory", &["4096 runs of models in one request"]);
        }
    });
}

#[test]
fn a_handler_that_ends_badly_after_a_run_fails_alone() {
    let server = hostile(json!({}));
    told(&server, "trap").refused(500, "plugin_trapped", &["handle: plugin trapped"]);
    told(&server, "spin").refused(504, "plugin_timeout", &["handle", "250 ms of CPU time"]);
    let answer = told(&server, "same");
    assert_eq!((answer.status, answer.text().as_str()), (200, "4"));
    let usage = server.admin.get("/admin/v1/usage").ok();
    // Three further requests, one after each deed, have one row each.
    assert_eq!(usage["items"][0]["rows"], 1 + 1 + 4 + 3, "{usage}");
}

#[test]
fn a_deadline_ends_a_handler_and_its_runs_are_charged() {
    let mut server = hostile(json!({ "cpu_ms": 60_000, "timeout_ms": 60 }));
    let answer = server.data.post("/v1/acme/infer/hostile", b"infer-forever");
    // The 4096 runs may end before on a fast machine.
    if answer.status == 504 {
        answer.refused(504, "deadline_exceeded", &[]);
    }
    eventually("the runs are charged", || {
        let usage = server.admin.get("/admin/v1/usage").ok();
        usage["items"][0]["rows"].as_u64() > Some(0)
    });
    server.assert_alive();
}

#[test]
fn handlers_that_wait_for_a_model_leave_the_tenants_other_calls_alone() {
    let server = Server::start();
    reads_pages(&server, "acme");
    server.digits_for("acme");
    // Each batch waits for more rows, so that many handlers wait at the same time.
    let config = json!({ "max_batch_size": 512, "max_queue_delay_us": 500_000 });
    server.put("models/slow", &files::model("digits"));
    server.put_json("models/slow/config", &config);
    let models = json!({ "digits": "slow" });
    server.pipeline("acme", "slow", &json!({ "handler": "pages", "models": models }));
    let cores = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let waiting: Vec<_> = (0..16 * cores)
            .map(|_| {
                let server = &server;
                scope.spawn(move || server.data.post("/v1/acme/infer/slow", &pages(&[4])))
            })
            .collect();
        server.assert_reads_digits("acme");
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap().ok()["text"], "4");
        }
    });
}

#[test]
fn documents_of_both_kinds_are_told_apart() {
    let server = Server::start();
    reads_pages(&server, "acme");
    let put = |spec: &Value| server.admin.put_json("/admin/v1/tenants/acme/pipelines/new", spec);
    let refused = |spec: Value, named: &[&str]| {
        put(&spec).refused(422, "unprocessable", named);
    };
    refused(json!({ "handler": "pages" }), &["models"]);
    refused(json!({ "handler": "pages", "models": {} }), &["models"]);
    refused(json!({ "handler": "none", "models": { "a": "digits" } }), &["\"none\""]);
    refused(json!({ "handler": "pages", "models": { "a": "none" } }), &["models.a", "\"none\""]);
    refused(json!({ "handler": "pages", "models": { "A b": "digits" } }), &["A b"]);
    let mut both = processor("pages", json!({}));
    both["handler"] = json!("pages");
    refused(both, &["handler"]);
    refused(processor("pages", json!({})), &["handler"]);
    let spec = handler("pages", json!({}));
    assert_eq!(put(&spec).status, 200);
    let read = server.admin.get("/admin/v1/tenants/acme/pipelines/new").ok();
    assert_eq!((&read["handler"], &read["models"]["digits"]), (&json!("pages"), &json!("digits")));
    assert!(read.get("pre").is_none() && read.get("model").is_none(), "{read}");
}
