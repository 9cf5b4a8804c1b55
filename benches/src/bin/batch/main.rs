//! The batcher alone: lanes over real and paced models, without HTTP and without the sandbox.
//!
//! Prints rows with targets. `cargo xtask bench batch` runs it. Arguments: names of scenarios, or
//! none for all but `staging`; or `bare <model.onnx> --batch N --threads T --seconds S`, in this
//! order, for the bare session in a loop.

mod allocations;
mod overload;
mod padding;
mod sound;
mod staging;
mod throughput;

use std::time::Duration;

use anyhow::{Result, bail};
use gristmill_benches::harness::Harness;
use gristmill_benches::report::{self, Goal};
use serde_json::Value;

use throughput::Bare;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

type Scenario = fn(&Harness) -> Result<Value>;

/// The maximum or minimum of a figure.
#[derive(Clone, Copy)]
enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

use Bound::{AtLeast, AtMost};

/// The rows: a scenario, one of its figures, what the figure is, and its target.
const ROWS: [(&str, &str, &str, Bound); 12] = [
    (
        "submit_overhead",
        "added_us",
        "submit, ranker, concurrency 1: us added to the bare run",
        AtMost(5.0),
    ),
    ("digits_throughput", "ratio", "digits CNN: rows a second over the bare loop", AtLeast(0.9)),
    ("resnet50_throughput", "ratio", "ResNet-50: rows a second over the bare loop", AtLeast(0.97)),
    (
        "padding",
        "ratio",
        "two layers of an encoder, 8 texts of 5 to 200 tokens: answers with buckets over without",
        AtLeast(1.5),
    ),
    ("mean_batch_16", "ratio", "mean batch of 64 clients, maximum 16, over 16", AtLeast(0.9)),
    ("mean_batch_64", "ratio", "mean batch of 64 clients, maximum 64, over 64", AtLeast(0.9)),
    (
        "fairness",
        "grown_by_batches",
        "p99 beside a flood of 20 x capacity, grown by batches",
        AtMost(1.0),
    ),
    ("goodput", "ratio", "answers in 100 ms at 1.5 x capacity, over capacity", AtLeast(0.95)),
    ("allocations", "allocations", "allocations a request", AtMost(4.0)),
    ("allocations", "grown", "bytes allocated for a large tensor over a small one", AtMost(1.5)),
    ("sound", "lost", "requests lost, 10^7 rows", AtMost(0.0)),
    ("sound", "wrong", "requests with another's rows or fate, 10^7 rows", AtMost(0.0)),
];

const SCENARIOS: [(&str, Scenario); 10] = [
    ("submit_overhead", throughput::submit_overhead),
    ("digits_throughput", throughput::digits),
    ("resnet50_throughput", throughput::resnet50),
    ("padding", padding::run),
    ("mean_batch_16", |harness| throughput::mean_batch(harness, 16)),
    ("mean_batch_64", |harness| throughput::mean_batch(harness, 64)),
    ("fairness", overload::fairness),
    ("goodput", overload::goodput),
    ("allocations", allocations::per_request),
    ("sound", sound::run),
];

/// Scenarios whose figures vary with the state of the machine, with the figure by which the median
/// of their rounds is found. Their rounds are interleaved, so that all of them meet the same state.
const VARYING: [(&str, &str); 3] =
    [("digits_throughput", "ratio"), ("padding", "ratio"), ("fairness", "grown_by_batches")];

/// Odd, so that there is a median.
const ROUNDS: usize = 5;

/// Scenarios that run only if they are named.
const ON_DEMAND: [(&str, Scenario); 1] = [("staging", staging::run)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let harness = Harness::new()?;
    match arguments[..] {
        ["bare", path, "--batch", batch, "--threads", threads, "--seconds", seconds] => {
            let (batch, threads) = (batch.parse()?, threads.parse()?);
            let time = Duration::from_secs(seconds.parse()?);
            println!("{}", throughput::bare(&harness, &Bare { path, batch, threads, time })?);
        }
        ["bare", ..] => {
            bail!("usage: batch bare <model.onnx> --batch N --threads T --seconds S")
        }
        ref wanted => {
            let unasked = if wanted.is_empty() { SCENARIOS.len() } else { 0 };
            let all = SCENARIOS.into_iter().chain(ON_DEMAND).enumerate();
            let asked = all.filter(|(at, (name, _))| *at < unasked || wanted.contains(name));
            let (varying, steady): (Vec<_>, Vec<_>) = asked
                .map(|(_, scenario)| scenario)
                .partition(|(name, _)| figure_of(name).is_some());
            for (name, scenario) in steady {
                print(name, &scenario(&harness)?);
            }
            let mut rounds = vec![Vec::new(); varying.len()];
            for _ in 0..ROUNDS {
                for ((_, scenario), round) in varying.iter().zip(&mut rounds) {
                    round.push(scenario(&harness)?);
                }
            }
            for ((name, _), rounds) in varying.into_iter().zip(rounds) {
                print(name, &median(rounds, figure_of(name).unwrap_or_default()));
            }
        }
    }
    Ok(())
}

/// Print the rows of a scenario.
fn print(name: &str, figures: &Value) {
    let rows: Vec<_> = ROWS.iter().filter(|(scenario, ..)| *scenario == name).collect();
    if rows.is_empty() {
        report::row(name, figures, None);
    }
    for (_, figure, what, bound) in rows {
        let value = figures[*figure].as_f64().unwrap_or(f64::NAN);
        let target = match bound {
            AtLeast(least) => Goal::at_least(value, *least, ""),
            AtMost(most) => Goal::at_most(value, *most, ""),
        };
        report::row(what, figures, Some(target));
    }
}

/// The figure by which the median of a scenario's rounds is found, if it varies.
fn figure_of(name: &str) -> Option<&'static str> {
    VARYING.iter().find(|(varying, _)| *varying == name).map(|(_, figure)| *figure)
}

/// The round with the median of this figure, and the range of all rounds.
fn median(mut rounds: Vec<Value>, figure: &str) -> Value {
    let value = |round: &Value| round[figure].as_f64().unwrap_or_default();
    rounds.sort_by(|one, other| value(one).total_cmp(&value(other)));
    let range = [value(&rounds[0]), value(&rounds[rounds.len() - 1])];
    let mut median = rounds.swap_remove(rounds.len() / 2);
    median["range"] = range.to_vec().into();
    median["rounds"] = ROUNDS.into();
    median
}
