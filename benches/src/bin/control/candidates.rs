//! A pipeline with a candidate that answers a tenth of the requests, and with one that runs each of
//! them as a shadow: the latency of the pipeline's own answers, at 100 requests a second.

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gristmill_benches::files::read;
use gristmill_benches::load::{Load, Question};
use gristmill_benches::report::{self, Goal};
use gristmill_benches::server::Server;
use gristmill_load::median;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Each way is measured once in a round, so that all have their share of a noisy machine.
const ROUNDS: usize = 5;
const LOAD: Duration = Duration::from_secs(12);

/// The targets: the p99 of the pipeline's own answers beside a candidate and beside a shadow, as a
/// ratio to that without.
const CANDIDATE_RATIO_MAX: f64 = 1.05;
const SHADOW_RATIO_MAX: f64 = 1.2;

/// The ways: the name, and what the candidate of the pipeline has, if there is one.
const WAYS: [(&str, Option<&str>); 3] =
    [("without", None), ("candidate", Some("traffic_percent")), ("shadow", Some("shadow_percent"))];

pub(crate) fn measure(runtime: &Runtime, gristmill: &Path, components: &Path) -> Result<()> {
    let server = Server::start(gristmill, &[], Stdio::null())?;
    let plugin = read(&components.join("digits.wasm"))?;
    runtime.block_on(async {
        let model = read(Path::new("models/digits/digits.onnx"))?;
        server.admin.put("models/digits", model).await?;
        server.admin.put_json("tenants/t", &json!({ "open": true })).await?;
        for name in ["digits", "new"] {
            server.admin.put(&format!("tenants/t/plugins/{name}"), plugin.clone()).await?;
        }
        anyhow::Ok(())
    })?;
    let question = Question {
        address: server.data_plane.clone(),
        path: "/v1/t/infer/digits".into(),
        body: read(Path::new("models/digits/samples/seven.png"))?.into(),
        check: Arc::new(|answer| {
            ensure!(answer.body.starts_with(b"{\"label\":7"), "another answer");
            Ok(answer.header("gristmill-variant") != "candidate")
        }),
    };
    let (mut p50_ms, mut p99_ms) = (vec![Vec::new(); 3], vec![Vec::new(); 3]);
    let (mut answered, mut failed) = ([0; 3], 0);
    let mut shadow = Value::Null;
    for _ in 0..ROUNDS {
        for (at, (_, share)) in WAYS.iter().enumerate() {
            let mut pipeline = json!({ "pre": "digits", "model": "digits", "post": "digits" });
            if let Some(share) = share {
                let percent = if *share == "shadow_percent" { 100 } else { 10 };
                pipeline["candidate"] = json!({ "pre": "new", "post": "new", (*share): percent });
            }
            runtime.block_on(server.admin.put_json("tenants/t/pipelines/digits", &pipeline))?;
            let load = Load::start(question.clone())?;
            thread::sleep(LOAD);
            let report = load.finish()?;
            p50_ms[at].extend(report.percentile_ms(50.0));
            p99_ms[at].extend(report.percentile_ms(99.0));
            answered[at] += report.latencies.len();
            failed += report.failures.values().sum::<usize>();
            if *share == Some("shadow_percent") {
                let path = "tenants/t/pipelines/digits/candidate";
                shadow = runtime.block_on(server.admin.get(path))?["shadow"].take();
            }
        }
    }
    let names = WAYS.map(|(name, _)| name);
    let mut figures = json!({
        "ways": names,
        "p50_ms": p50_ms,
        "p99_ms": p99_ms,
        "answered_by_the_pipeline": answered,
        "failed": failed,
        "shadow_of_the_last_round": shadow,
    });
    for (way, what, ratio_max) in [
        (1, "a candidate with 10 % of the traffic", CANDIDATE_RATIO_MAX),
        (2, "a shadow of each request", SHADOW_RATIO_MAX),
    ] {
        let p99 = |way: usize| median(&p99_ms[way]).context("no answers");
        let ratio = p99(way)? / p99(0)?;
        figures["ratio"] = json!(ratio);
        report::row(what, &figures, Some(Goal::at_most(ratio, ratio_max, "x without")));
    }
    Ok(())
}
