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
            for (at, (name, scenario)) in SCENARIOS.into_iter().chain(ON_DEMAND).enumerate() {
                if at < unasked || wanted.contains(&name) {
                    let mut figures = scenario(&harness)?;
                    figures["what"] = name.into();
                    println!("{figures}");
                }
            }
        }
    }
    Ok(())
}
