//! The Open Inference Protocol under the load of its own clients, wrk and perf_analyzer, with
//! binary tensors.
//!
//! Each file below measures the server beside a reference:
//! - `over_echo`: wrk, beside a bare hyper server that echoes the same body, small and large;
//! - `perf_analyzer`: perf_analyzer over HTTP and gRPC, beside a bare hyper server that replays one
//!   recorded answer. No server can be faster with this client on these cores;
//! - `over_bare`: ResNet-50, whose run takes nearly all of a request's time, beside ONNX Runtime in
//!   a bare loop.
//!
//! Figures per second depend on the load of the machine. The reference is measured in the same
//! seconds, because it is slowed in the same way.

pub(super) mod perf_analyzer;
pub(super) mod scenario;

mod over_bare;
mod over_echo;
mod statistics;

use anyhow::Result;
use serde_json::json;

use self::over_echo::OverEcho;
use self::scenario::{IDENTITY, RANKER, deploy_large};
use super::processes::start_with_echo;
use super::shipped::Shipped;
use super::table::Table;
use super::{made_models, wrk};
use crate::setup;
use crate::shell::step;

/// The target: the ranker, as a ratio to the echo.
const ECHO_RATIO_MIN: f64 = 0.80;

/// The best known server, for comparison: measured elsewhere, on another machine of this kind.
const BEST_KNOWN: &str = "the best known server, inferences a second: ranker, HTTP, perf_analyzer at \
    concurrency 1/16/64: 5.7k/19.6k/15.9k; ranker, HTTP, wrk: 7.8k/26.5k/32.3k; ranker, gRPC, \
    perf_analyzer: 6.0k/14.4k/12.9k; digits, HTTP, perf_analyzer: 7.6k/12.6k/13.3k; measured on another \
    machine of this kind, not in this run";

pub(crate) fn run(shipped: &Shipped) -> Result<()> {
    wrk::install()?;
    let perf_analyzer = setup::install_perf_analyzer()?;
    let resnet50 = made_models::resnet50("fp32")?;

    step("starting Gristmill and the echo");
    let (server, _echo) = start_with_echo(shipped)?;
    let mut table = Table::new("oip", "cargo xtask bench oip");
    for concurrency in [16, 64] {
        OverEcho { scenario: &RANKER, concurrency, ratio_min: Some(ECHO_RATIO_MIN) }
            .measure(&server, &mut table)?;
    }
    deploy_large(&server, &resnet50)?;
    for concurrency in [1, 16] {
        OverEcho { scenario: &IDENTITY, concurrency, ratio_min: None }
            .measure(&server, &mut table)?;
    }
    for run in &perf_analyzer::RUNS {
        run.measure(&server, &perf_analyzer, &mut table)?;
    }
    over_bare::measure(&server, &resnet50, &mut table)?;
    table.row("for comparison", BEST_KNOWN.into(), json!({ "note": BEST_KNOWN }));
    table.finish()
}
