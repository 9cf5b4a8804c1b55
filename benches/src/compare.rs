//! A lane over a real model, compared with the bare session in a loop on one thread.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gristmill_backend::{LoadOptions, LoadedModel};
use gristmill_batch::{Counters, LaneConfig, Times};
use gristmill_core::{Model, Tensor};
use gristmill_load::median;
use serde_json::{Value, json};

use crate::harness::{Harness, closed_loop, tensor_in};

/// The number of rounds. Each measures both sides, one after the other.
pub const ROUNDS: usize = 3;

/// The subject of a comparison, and its parameters.
pub struct Comparison<'a> {
    /// The model's file.
    pub path: &'a str,
    pub options: LoadOptions,
    /// The requests, which the clients take in turns.
    pub rows: &'a [Tensor],
    /// The lane's largest batch.
    pub batch: usize,
    pub clients: usize,
    /// The time that each side runs in each round.
    pub time: Duration,
    /// The time that both run before the first round.
    pub warm_up: Duration,
}

impl Comparison<'_> {
    /// Measure rows a second in rounds: through the lane, then by the bare session with the lane's
    /// mean batch.
    pub fn run(&self, harness: &Harness) -> Result<Value> {
        let mut bare = harness.load_with(self.path, &self.options)?;
        let model = harness.load_with(self.path, &self.options)?;
        let allowed_batch_sizes = self.options.allowed_batch_sizes.clone();
        let config = LaneConfig { allowed_batch_sizes, ..LaneConfig::new(self.batch, 4096) };
        let lane = harness.lane(model, config)?;
        let (mut lane_rows, mut bare_rows, mut mean_batch) = (Vec::new(), Vec::new(), 0.0);
        let mut times = Value::Null;
        if !self.warm_up.is_zero() {
            let flow = closed_loop(&lane, self.clients, self.rows, self.warm_up);
            harness.runtime.block_on(flow)?;
            let input = batch_for(&bare, &self.rows[0], self.batch);
            bare_loop(&mut bare, &input, self.warm_up)?;
        }
        for _ in 0..ROUNDS {
            let before = lane.statistics();
            let flow = closed_loop(&lane, self.clients, self.rows, self.time);
            lane_rows.push(harness.runtime.block_on(flow)?);
            let after = lane.statistics();
            let batches = after.total.batch_count() - before.total.batch_count();
            times = mean_times(&before.total, &after.total);
            mean_batch = (after.total.rows - before.total.rows) as f64 / batches as f64;
            let input = batch_for(&bare, &self.rows[0], mean_batch.round() as usize);
            bare_rows.push(bare_loop(&mut bare, &input, self.time)?);
        }
        let ratio = median_ratio(&lane_rows, &bare_rows);
        Ok(json!({
            "lane_rows_per_s": lane_rows,
            "bare_rows_per_s": bare_rows,
            "mean_batch": mean_batch,
            "mean_times_ms": times,
            "ratio": ratio,
        }))
    }
}

/// The mean times of the batches between two counts: copying together what was not copied ahead,
/// the run, and taking apart.
fn mean_times(before: &Counters, after: &Counters) -> Value {
    let batches = (after.batch_count() - before.batch_count()).max(1) as f64;
    let sum = |counters: &Counters, time: fn(&Times) -> Duration| {
        counters.batches.values().map(|size| time(&size.times).as_secs_f64()).sum::<f64>()
    };
    let mean =
        |time: fn(&Times) -> Duration| (sum(after, time) - sum(before, time)) * 1e3 / batches;
    json!({
        "input": mean(|times| times.input),
        "run": mean(|times| times.run),
        "output": mean(|times| times.output),
    })
}

/// A batch of `rows` in the shape of `row` for the bare session, in the memory that its device
/// reads best.
pub fn batch_for(bare: &LoadedModel, row: &Tensor, rows: usize) -> Tensor {
    let mut shape = row.shape().to_vec();
    shape[0] = rows;
    tensor_in(&bare.staging, row.dtype(), &shape, 0.5)
}

/// The median of the rounds' ratios. Both sides of a round run one after the other, so a slow phase
/// of the machine slows both.
pub fn median_ratio(measured: &[f64], bare: &[f64]) -> f64 {
    let ratios = measured.iter().zip(bare).map(|(measured, bare)| measured / bare);
    median(&ratios.collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Rows a second of the bare session in a loop.
pub fn bare_loop(model: &mut LoadedModel, input: &Tensor, time: Duration) -> Result<f64> {
    let session: &mut dyn Model = model.instances.first_mut().context("no instance")?.as_mut();
    let began = Instant::now();
    let mut runs = 0;
    while began.elapsed() < time {
        session.run(std::slice::from_ref(input))?;
        runs += 1;
    }
    Ok((runs * input.rows()) as f64 / began.elapsed().as_secs_f64())
}
