//! The batcher alone, compared with the bare session and with itself without load.

use anyhow::{Context, Result};

use super::made_models;
use super::table::{Table, Verdict};
use crate::setup;
use crate::shell::{json_lines, program, step, target};

/// A row of the table, and its target.
struct Target {
    /// The scenario of the benchmark's program.
    scenario: &'static str,
    what: &'static str,
    /// The figure of the scenario that is compared with the bound.
    figure: &'static str,
    bound: Bound,
    /// The bound in words.
    words: &'static str,
}

enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

const TARGETS: [Target; 11] = [
    Target {
        scenario: "submit_overhead",
        what: "submit, ranker, concurrency 1: us added to the bare run",
        figure: "added_us",
        bound: AtMost(5.0),
        words: "at most 5 us",
    },
    Target {
        scenario: "digits_throughput",
        what: "digits CNN: rows a second over the bare loop",
        figure: "ratio",
        bound: AtLeast(0.90),
        words: "at least 0.90",
    },
    Target {
        scenario: "resnet50_throughput",
        what: "ResNet-50: rows a second over the bare loop",
        figure: "ratio",
        bound: AtLeast(0.97),
        words: "at least 0.97",
    },
    Target {
        scenario: "mean_batch_16",
        what: "mean batch of 64 clients, maximum 16, over 16",
        figure: "ratio",
        bound: AtLeast(0.90),
        words: "at least 0.90",
    },
    Target {
        scenario: "mean_batch_64",
        what: "mean batch of 64 clients, maximum 64, over 64",
        figure: "ratio",
        bound: AtLeast(0.90),
        words: "at least 0.90",
    },
    Target {
        scenario: "fairness",
        what: "p99 beside a flood of 20 x capacity, grown by batches",
        figure: "grown_by_batches",
        bound: AtMost(1.0),
        words: "at most 1 batch",
    },
    Target {
        scenario: "goodput",
        what: "answers in 100 ms at 1.5 x capacity, over capacity",
        figure: "ratio",
        bound: AtLeast(0.95),
        words: "at least 0.95",
    },
    Target {
        scenario: "allocations",
        what: "allocations a request",
        figure: "allocations",
        bound: AtMost(4.0),
        words: "at most 4",
    },
    Target {
        scenario: "allocations",
        what: "bytes allocated for a large tensor over a small one",
        figure: "grown",
        bound: AtMost(1.5),
        words: "none proportional to the tensor",
    },
    Target {
        scenario: "sound",
        what: "requests lost, 10^7 rows",
        figure: "lost",
        bound: AtMost(0.0),
        words: "0",
    },
    Target {
        scenario: "sound",
        what: "requests with another's rows or fate, 10^7 rows",
        figure: "wrong",
        bound: AtMost(0.0),
        words: "0",
    },
];

pub(crate) fn run() -> Result<()> {
    let onnxruntime = setup::install_onnxruntime()?;
    made_models::resnet50("fp32")?;
    step("measuring the batcher (about five minutes)");
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
        let verdict = Verdict::new(*words, reached);
        let range = figures["range"].as_array().map(|range| {
            let [least, most] = [0, 1].map(|at| range[at].as_f64().unwrap_or_default());
            format!(" ({least:.2} to {most:.2} in {} rounds)", figures["rounds"])
        });
        let text = format!("{value:.2}{}", range.unwrap_or_default());
        table.row_to_reach(*what, text, figures.clone(), verdict);
    }
    table.finish()
}
