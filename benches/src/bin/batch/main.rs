//! The batcher alone: lanes over real and paced models, without HTTP and without the sandbox.
//!
//! Prints one JSON object a line, `{"what":..., figures...}`. `cargo xtask bench batch` runs it,
//! compares the figures with the targets and records them. Arguments: names of scenarios, or none
//! for all but `staging`; or `bare <model.onnx> --batch N --threads T --seconds S`, in this order,
//! for the bare session in a loop.

mod allocations;
mod overload;
mod sound;
mod staging;
mod throughput;

use std::time::Duration;

use anyhow::{Result, bail};
use gristmill_benches::harness::Harness;
use serde_json::Value;

use throughput::Bare;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

type Scenario = fn(&Harness) -> Result<Value>;

const SCENARIOS: [(&str, Scenario); 9] = [
    ("submit_overhead", throughput::submit_overhead),
    ("digits_throughput", throughput::digits),
    ("resnet50_throughput", throughput::resnet50),
    ("mean_batch_16", |harness| throughput::mean_batch(harness, 16)),
    ("mean_batch_64", |harness| throughput::mean_batch(harness, 64)),
    ("fairness", overload::fairness),
    ("goodput", overload::goodput),
    ("allocations", allocations::per_request),
    ("sound", sound::run),
];

/// Scenarios whose figures vary with the state of the machine, with the figure by which the median
/// of their rounds is found. Their rounds are interleaved, so that all of them meet the same state.
const VARYING: [(&str, &str); 2] =
    [("digits_throughput", "ratio"), ("fairness", "grown_by_batches")];

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
                print(name, scenario(&harness)?);
            }
            let mut rounds = vec![Vec::new(); varying.len()];
            for _ in 0..ROUNDS {
                for ((_, scenario), round) in varying.iter().zip(&mut rounds) {
                    round.push(scenario(&harness)?);
                }
            }
            for ((name, _), rounds) in varying.into_iter().zip(rounds) {
                print(name, median(rounds, figure_of(name).unwrap_or_default()));
            }
        }
    }
    Ok(())
}

fn print(name: &str, mut figures: Value) {
    figures["what"] = name.into();
    println!("{figures}");
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
