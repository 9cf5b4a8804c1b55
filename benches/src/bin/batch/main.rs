//! The batcher by itself: lanes over real and paced models, no HTTP, no sandbox.
//!
//! Prints one JSON object a line, `{"what":..., figures...}`; `cargo xtask bench batch` runs it, holds the
//! figures against those asked for and records them. Arguments: names of scenarios, or none for all.

mod allocations;
mod harness;
mod models;
mod overload;
mod sound;
mod throughput;

use anyhow::Result;
use serde_json::Value;

use harness::Harness;

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

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let harness = Harness::new()?;
    for (name, scenario) in SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            let mut figures = scenario(&harness)?;
            figures["what"] = name.into();
            println!("{figures}");
        }
    }
    Ok(())
}
