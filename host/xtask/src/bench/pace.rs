//! One tenant's plugin calls: requests beyond its capacity, another tenant beside its short calls,
//! and its throughput when it is alone. The program `pace` of `benches/` measures them; this file
//! compares the figures with the targets.

use std::ffi::OsStr;

use anyhow::{Context, Result};
use serde_json::Value;

use super::options::Options;
use super::shipped::Shipped;
use super::table::{Table, Verdict};
use crate::setup;
use crate::shell::{json_lines, program, step};

/// The targets: answers beyond the capacity as a ratio to the capacity; the neighbour's p99 as a
/// ratio to its p99 without others; the throughput as a ratio to that of an earlier build.
const GOODPUT_RATIO_MIN: f64 = 0.9;
const P99_RATIO_MAX: f64 = 2.0;
const THROUGHPUT_RATIO_MIN: f64 = 0.97;

pub(crate) fn run(shipped: &Shipped, options: &Options) -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    step("measuring plugin calls of a busy tenant (about ten minutes)");
    let mut pace = program(shipped.binary("pace"));
    let before = options.before.as_ref().map_or(OsStr::new("-"), |before| before.as_os_str());
    pace.arg(&shipped.gristmill).arg(&shipped.components).arg(before);
    let mut command = "cargo xtask bench pace".to_owned();
    if options.before.is_some() {
        command.push_str(" --before BINARY");
    }
    let mut table = Table::new("pace", &command);
    for figures in json_lines(pace.args(&options.only).env("ORT_DYLIB_PATH", onnxruntime))? {
        let what = figures["what"].as_str().context("a case without a name")?.to_owned();
        let number = |name: &str| figures[name].as_f64().unwrap_or(f64::NAN);
        let ratio = number("ratio");
        let (measured, verdict) = match what.split([',', ' ']).next() {
            Some("overload") => (
                format!(
                    "{:.1} of {:.1} a second: {ratio:.2}; p99 {:.0} ms; {}",
                    number("good_per_s"),
                    number("capacity_per_s"),
                    number("p99_ms"),
                    figures["others"]
                ),
                Some(Verdict::new("at least 0.9", ratio >= GOODPUT_RATIO_MIN)),
            ),
            Some("beside") => (
                format!(
                    "p50 {:.2}, p99 {:.2} ms: {ratio:.2} x alone; others {:.0} a second",
                    number("p50_ms"),
                    number("p99_ms"),
                    number("others_per_s")
                ),
                Some(Verdict::new(
                    "p99 at most 2 x alone, none failed",
                    ratio <= P99_RATIO_MAX && figures["failed"] == 0,
                )),
            ),
            _ => {
                let processors = number("processors");
                let verdict = ratio
                    .is_finite()
                    .then(|| Verdict::new("at least 0.97 x before", ratio >= THROUGHPUT_RATIO_MIN));
                (format!("{processors:.2} processors; {ratio:.3} x before"), verdict)
            }
        };
        add(&mut table, what, measured, figures, verdict);
    }
    table.finish()
}

fn add(
    table: &mut Table,
    what: String,
    measured: String,
    figures: Value,
    verdict: Option<Verdict>,
) {
    match verdict {
        Some(verdict) => table.row_to_reach(what, measured, figures, verdict),
        None => table.row(what, measured, figures),
    }
}
