//! The metrics: what they count, who may read them, and that the list of them is complete.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::support::admin_api::make;
use crate::support::cli::Cli;
use crate::support::client::TestAnswer;
use crate::support::collector::{Collector, PROTOCOLS};
use crate::support::deploy::processor;
use crate::support::eventually::eventually;
use crate::support::files;
use crate::support::grpc;
use crate::support::server::Server;
use crate::support::setup::Setup;
use crate::support::words::assert_names;

/// A name with its labels as they are written, and the value.
type Values = BTreeMap<String, f64>;

/// The values in a scrape.
#[track_caller]
fn values(answer: &TestAnswer) -> Values {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.text();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line:?}"));
        (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line:?}")))
    };
    let all: Vec<_> = lines.map(value).collect();
    let values: Values = all.iter().cloned().collect();
    assert_eq!(values.len(), all.len(), "a series is written twice");
    values
}

#[track_caller]
fn scrape(server: &Server) -> Values {
    values(&server.admin.get("/metrics"))
}

#[track_caller]
fn of(values: &Values, name: &str) -> f64 {
    *values.get(name).unwrap_or_else(|| panic!("no {name} in {values:#?}"))
}

/// The sum over all series of a metric with these labels among theirs.
fn sum(values: &Values, metric: &str, labels: &[&str]) -> f64 {
    let is_it = |name: &&String| {
        name.split('{').next() == Some(metric) && labels.iter().all(|label| name.contains(label))
    };
    values.keys().filter(is_it).map(|name| values[name]).sum()
}

/// One request of each kind, and some that fail.
fn send_some(server: &Server) {
    server.assert_reads_digits("acme");
    let path = "/v1/acme/infer/digits";
    server.data.post(path, b"no picture").refused(415, "unsupported_media_type", &[]);
    server.data.post("/v1/nobody/infer", b"").refused(401, "unauthenticated", &[]);
    let zeros = json!([{
        "name": "input", "shape": [3, 32], "datatype": "FP32", "data": vec![0.5; 96],
    }]);
    let body = json!({ "inputs": zeros }).to_string();
    server.data.post("/v1/acme/v2/models/ranker/infer", body.as_bytes()).ok();
}

fn loaded() -> Server {
    let server = Server::start();
    server.model("ranker");
    server.put_json("tenants/acme", &json!({ "open": true, "models": ["ranker"] }));
    server.digits_for("acme");
    send_some(&server);
    server
}

#[test]
fn requests_are_counted_by_tenant_pipeline_model_and_outcome() {
    let server = loaded();
    let values = scrape(&server);
    let requests = |pipeline: &str, model: &str, outcome: &str| {
        let labels = format!("tenant=\"acme\",pipeline=\"{pipeline}\",model=\"{model}\"");
        of(&values, &format!("gristmill_requests_total{{{labels},outcome=\"{outcome}\"}}"))
    };
    assert_eq!(requests("digits", "", "answered"), 10.0);
    assert_eq!(requests("digits", "", "unsupported_media_type"), 1.0);
    assert_eq!(requests("", "ranker", "answered"), 1.0);
    let rows = |labels: &[&str]| sum(&values, "gristmill_request_rows_total", labels);
    assert_eq!(rows(&["pipeline=\"digits\""]), 10.0);
    assert_eq!(rows(&["model=\"ranker\""]), 3.0);
    let answers = |labels: &[&str]| sum(&values, "gristmill_responses_total", labels);
    assert_eq!(answers(&["protocol=\"v1\"", "code=\"ok\""]), 10.0);
    assert_eq!(answers(&["protocol=\"v1\"", "code=\"unauthenticated\""]), 1.0);
    assert_eq!(answers(&["protocol=\"v2\"", "code=\"ok\""]), 1.0);
    let received: f64 = (0..10).map(|digit| files::digit(digit).len() as f64).sum();
    let labels = ["pipeline=\"digits\"", "direction=\"receive\""];
    let counted = sum(&values, "gristmill_request_io_bytes_total", &labels);
    assert_eq!(counted, received + "no picture".len() as f64);
}

#[test]
fn stages_batches_and_plugins_have_figures() {
    let server = loaded();
    let values = scrape(&server);
    for (stage, count) in [
        ("auth", 11.0),
        ("read", 11.0),
        ("pre", 11.0),
        ("queue", 10.0),
        ("staging", 10.0),
        ("infer", 10.0),
        ("post", 10.0),
    ] {
        let labels = ["pipeline=\"digits\"", &format!("stage=\"{stage}\"")];
        let counted = sum(&values, "gristmill_request_stage_duration_seconds_count", &labels);
        assert_eq!(counted, count, "{stage}");
    }
    // Times are of several clocks, and a busy machine sets them apart: none is compared.
    for family in ["request_duration", "request_stage_duration"] {
        let family = format!("gristmill_{family}_seconds_sum");
        assert!(sum(&values, &family, &["pipeline=\"digits\""]) > 0.0, "{family}");
    }
    let buckets = sum(
        &values,
        "gristmill_request_duration_seconds_bucket",
        &["pipeline=\"digits\"", "le=\"+Inf\""],
    );
    assert_eq!(buckets, 11.0);
    assert!(sum(&values, "gristmill_plugin_cpu_time_seconds_total", &["stage=\"pre\""]) > 0.0);
    assert!(sum(&values, "gristmill_plugin_memory_peak_bytes", &["stage=\"pre\""]) > 65_536.0);
    let digits = ["model=\"digits\""];
    assert_eq!(sum(&values, "gristmill_batch_rows_sum", &digits), 10.0);
    let batches = sum(&values, "gristmill_batch_rows_count", &digits);
    assert_eq!(sum(&values, "gristmill_batch_fill_ratio_count", &digits), batches);
    let of_pipeline = ["pipeline=\"digits\""];
    assert!(sum(&values, "gristmill_request_model_time_seconds_total", &of_pipeline) > 0.0);
    assert!(sum(&values, "gristmill_model_time_seconds_total", &digits) > 0.0);
    assert_eq!(
        sum(&values, "gristmill_model_size_bytes", &digits),
        files::model("digits").len() as f64
    );
    assert_eq!(of(&values, "gristmill_release"), server.release() as f64);
    assert_eq!(sum(&values, "gristmill_plugin_compile_duration_seconds_count", &[]), 1.0);
    assert!(of(&values, "gristmill_releases_total") >= 4.0);
    for (what, count) in [("tenants", 1.0), ("pipelines", 1.0), ("plugins", 1.0), ("models", 2.0)] {
        assert_eq!(of(&values, &format!("gristmill_objects{{what=\"{what}\"}}")), count);
    }
    assert!(of(&values, "process_memory_usage_bytes") > 1e6);
    assert!(of(&values, "process_cpu_time_seconds_total{mode=\"user\"}") > 0.0);
    assert!(of(&values, "gristmill_connections{plane=\"admin\"}") >= 1.0);
}

/// The metrics that need more than one server with one model: another provider, a store that is
/// shared, a job under way, a model whose rows are filled.
const NOT_HERE: [&str; 4] = [
    "gristmill_replica_lag_seconds",
    "gristmill_store_trouble",
    "gristmill_jobs",
    "gristmill_batch_elements_total",
];

#[test]
fn the_documented_list_is_what_a_server_answers() {
    let server = loaded();
    let listed: BTreeSet<String> = Cli::new()
        .ok(&["reference", "metrics"])
        .lines()
        .skip(2)
        .map(|row| row.split('`').nth(1).unwrap().to_owned())
        .collect();
    assert!(listed.len() > 40, "{listed:?}");
    let text = server.admin.get("/metrics").text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let answered: BTreeSet<String> =
        types.map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    // A machine may have no GPU.
    let here = listed.difference(&answered).filter(|name| !name.starts_with("hw_"));
    let missing: Vec<_> = here.collect();
    assert_eq!(missing, NOT_HERE.iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>());
    assert_eq!(answered.difference(&listed).count(), 0, "{answered:?}");
}

#[test]
fn inferences_over_grpc_are_counted() {
    let server = Server::start();
    server.keyed_tenant("acme", "the-key-of-acme-1");
    let refused = grpc::call(&server.grpc, "ModelInfer", None, b"");
    assert_eq!(refused.status(), 16);
    let missing = grpc::call(&server.grpc, "ModelInfer", Some("the-key-of-acme-1"), b"");
    assert_eq!(missing.status(), 5);
    let values = scrape(&server);
    let answers = |code: &str| {
        let labels = format!("protocol=\"grpc\",code=\"{code}\"");
        of(&values, &format!("gristmill_responses_total{{{labels}}}"))
    };
    assert_eq!(answers("unauthenticated"), 1.0);
    assert_eq!(answers("not_found"), 1.0);
}

#[test]
fn metrics_are_for_operators_or_have_a_plane_of_their_own() {
    let server = Setup::new().flag("--metrics-listen", "127.0.0.1:0").start();
    server.open_tenant("acme");
    server.admin.without_token().get("/metrics").refused(401, "unauthenticated", &[]);
    let token = |name: &str, document| server.admin.with_token(&make(&server, name, &document));
    let deploy = token("ci", json!({ "role": "deploy", "tenants": ["acme"] }));
    deploy.get("/metrics").refused(403, "forbidden", &[]);
    let read = token("eyes", json!({ "role": "read" }));
    values(&read.get("/metrics"));
    values(&read.get("/admin/v1/metrics"));

    let plane = server.metrics.as_ref().unwrap();
    values(&plane.get("/metrics"));
    plane.get("/admin/v1/status").refused(404, "not_found", &["/metrics"]);
    plane.get("/").refused(404, "not_found", &["/metrics"]);
    plane.post("/metrics", b"").refused(405, "method_not_allowed", &[]);
}

#[test]
fn pipelines_beyond_the_most_stand_together() {
    let server = Setup::new().flag("--metrics-pipelines-max", "1").start();
    server.digits("acme");
    server.pipeline("acme", "second", &processor("digits", json!({})));
    server.pipeline("acme", "third", &processor("digits", json!({})));
    server.assert_reads("acme", 3);
    for pipeline in ["second", "third"] {
        server.data.post(&format!("/v1/acme/infer/{pipeline}"), &files::digit(4)).ok();
    }
    let values = scrape(&server);
    let answered = |labels: &str| {
        let name = format!("gristmill_requests_total{{{labels},outcome=\"answered\"}}");
        of(&values, &name)
    };
    assert_eq!(answered("tenant=\"acme\",pipeline=\"digits\",model=\"\""), 1.0);
    assert_eq!(answered("tenant=\"_other\",pipeline=\"_other\",model=\"_other\""), 2.0);
    assert_eq!(of(&values, "gristmill_metrics_pipelines{state=\"own\"}"), 1.0);
    assert_eq!(of(&values, "gristmill_metrics_pipelines{state=\"other\"}"), 2.0);
}

#[test]
fn metrics_are_pushed_over_each_protocol() {
    for (protocol, endpoint) in PROTOCOLS {
        let collector = Collector::start();
        let setup = Setup::new().flag("--otlp-endpoint", &endpoint(&collector));
        let setup = setup.flag("--otlp-protocol", protocol).flag("--trace-ratio", "0");
        let server = setup.flag("--push-metrics-s", "1").start();
        server.digits("acme");
        server.assert_reads("acme", 7);
        eventually(&format!("the request is pushed over {protocol}"), || {
            let text = collector.text();
            ["gristmill.requests", "gristmill.request.stage.duration", "gristmill.tenant", "acme"]
                .iter()
                .all(|part| text.contains(part))
        });
        assert!(collector.text().contains("service.name: Str(gristmill)"), "{protocol}");
    }
}

#[test]
fn pushing_needs_a_collector_and_one_that_is_away_is_logged_once() {
    let error = Setup::new().flag("--push-metrics-s", "1").start_refused();
    assert_names(&error, &["otlp_endpoint", "push_metrics_s"]);
    let setup = Setup::new().flag("--otlp-endpoint", "http://127.0.0.1:9");
    let server = setup.flag("--push-metrics-s", "1").start();
    let log = server.log_with("metrics cannot be pushed");
    assert_eq!(log.matches("metrics cannot be pushed").count(), 1, "{log}");
}
