//! The batcher by itself, against the bare session and against itself at rest.

use anyhow::{Context, Result};

use super::table::Table;
use super::{Shipped, json_lines, resnet50};
use crate::setup;
use crate::shell::{program, step, target};

/// A target: the scenario, the figure, its least or greatest value, and that value in words.
struct Target {
    scenario: &'static str,
    what: &'static str,
    figure: &'static str,
    bound: Bound,
    words: &'static str,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

const TARGETS: [Target; 11] = [
    target_of(
        "submit_overhead",
        "submit, ranker, concurrency 1: us added to the bare run",
        "added_us",
        AtMost(5.0),
        "at most 5 us",
    ),
    target_of(
        "digits_throughput",
        "digits CNN: rows a second over the bare loop",
        "ratio",
        AtLeast(0.90),
        "at least 0.90",
    ),
    target_of(
        "resnet50_throughput",
        "ResNet-50: rows a second over the bare loop",
        "ratio",
        AtLeast(0.97),
        "at least 0.97",
    ),
    target_of(
        "mean_batch_16",
        "mean batch of 64 clients, maximum 16, over 16",
        "ratio",
        AtLeast(0.90),
        "at least 0.90",
    ),
    target_of(
        "mean_batch_64",
        "mean batch of 64 clients, maximum 64, over 64",
        "ratio",
        AtLeast(0.90),
        "at least 0.90",
    ),
    target_of(
        "fairness",
        "p99 beside a flood of 20 x capacity, grown by batches",
        "grown_by_batches",
        AtMost(1.0),
        "at most 1 batch",
    ),
    target_of(
        "goodput",
        "answers in 100 ms at 1.5 x capacity, over capacity",
        "ratio",
        AtLeast(0.95),
        "at least 0.95",
    ),
    target_of("allocations", "allocations a request", "allocations", AtMost(4.0), "at most 4"),
    target_of(
        "allocations",
        "bytes allocated for a large tensor over a small one",
        "grown",
        AtMost(1.5),
        "none proportional to the tensor",
    ),
    target_of("sound", "requests lost, 10^7 rows", "lost", AtMost(0.0), "0"),
    target_of(
        "sound",
        "requests with another's rows or fate, 10^7 rows",
        "wrong",
        AtMost(0.0),
        "0",
    ),
];

const fn target_of(
    scenario: &'static str,
    what: &'static str,
    figure: &'static str,
    bound: Bound,
    words: &'static str,
) -> Target {
    Target { scenario, what, figure, bound, words }
}

pub(crate) fn run(_: &Shipped) -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    resnet50("fp32")?;
    step("measuring the batcher (about two minutes)");
    let mut batch = program(target().join("release/batch"));
    let scenarios = json_lines(batch.env("ORT_DYLIB_PATH", onnxruntime))?;
    let mut table = Table::new("batch", "cargo xtask bench batch");
    for Target { scenario, what, figure, bound, words } in &TARGETS {
        let Some(figures) = scenarios.iter().find(|figures| figures["what"] == *scenario) else {
            continue;
        };
        let value =
            figures[*figure].as_f64().with_context(|| format!("{scenario}: no {figure}"))?;
        let reached = match bound {
            AtLeast(least) => value >= *least,
            AtMost(most) => value <= *most,
        };
        table.row_to_reach(*what, format!("{value:.2}"), figures.clone(), (words, reached));
    }
    table.finish()
}
