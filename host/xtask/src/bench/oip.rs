//! The Open Inference Protocol under the load of its own clients, wrk and perf_analyzer, with
//! binary tensors.
//!
//! Each measures the server beside a reference:
//! - wrk, beside a bare hyper server that echoes the same body, small and large;
//! - perf_analyzer over HTTP and gRPC (`perf_analyzer`), beside a bare hyper server that replays
//!   one recorded answer. No server can be faster with this client on these cores;
//! - wrk on ResNet-50 (`over_bare`), whose run takes nearly all of a request's time, beside ONNX
//!   Runtime in a bare loop.
//!
//! Figures per second depend on the load of the machine. The reference is measured in the same
//! seconds, because it is slowed in the same way.

mod over_bare;
mod perf_analyzer;

use anyhow::Result;
use serde_json::json;

use super::clients::Round;
use super::harness::{Bench, ECHO_URL, deploy_large};
use super::loads::{IDENTITY, V2_RANKER};
use super::models;
use super::rounds::{compare, in_turns};
use crate::shell::step;
use crate::table::Bound::AtLeast;

const ROUNDS: usize = 3;
const ROUND_SECONDS: u32 = 4;

/// The target: the ranker, as a ratio to the echo.
const ECHO_RATIO_MIN: f64 = 0.80;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<()> {
    let resnet50 = models::resnet50()?;
    let (server, _echo) = (bench.start()?, bench.start_echo()?);
    deploy_large(&server.admin, &resnet50)?;
    for (load, concurrency) in [(V2_RANKER, 16), (V2_RANKER, 64), (IDENTITY, 1), (IDENTITY, 16)] {
        let what = format!("{}, HTTP, wrk, concurrency {concurrency}", load.model());
        step(&what);
        let (url, script) = (format!("{}{}", server.url, load.wrk_path()), load.wrk_script()?);
        let round = Round { concurrency, seconds: ROUND_SECONDS };
        let by_wrk = |url: &str| round.by_wrk(url, &script);
        let [rounds, echoes] = in_turns(ROUNDS, [&|| by_wrk(&url), &|| by_wrk(ECHO_URL)])?;
        let compared = compare(&rounds, &echoes);
        let figures = json!({
            "ratio_to_echo": compared.ratio,
            "per_s": compared.per_s,
            "echo_per_s": compared.reference_per_s,
        });
        let row = bench.table.row(what, figures);
        if load.path == V2_RANKER.path {
            row.with_bound(compared.ratio, AtLeast(ECHO_RATIO_MIN), "x echo");
        }
    }
    perf_analyzer::measure(bench, &server)?;
    over_bare::measure(bench, &server, &resnet50)
}
