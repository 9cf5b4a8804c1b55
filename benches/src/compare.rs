//! A lane over a real model, against the bare session in a loop on one thread.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gristmill_backend::{LoadOptions, LoadedModel};
use gristmill_batch::LaneConfig;
use gristmill_core::{Model, Tensor};
use serde_json::{Value, json};

use crate::harness::{Harness, closed_loop, tensor_in};

const ROUNDS: usize = 3;

/// What is compared, and how.
pub struct Comparison<'a> {
    /// The model's file.
    pub path: &'a str,
    pub options: LoadOptions,
    /// Requests, given out to the clients by turns.
    pub rows: &'a [Tensor],
    /// The lane's largest batch.
    pub batch: usize,
    pub clients: usize,
    /// What each side runs in each round.
    pub time: Duration,
    /// What both run before the first.
    pub warm_up: Duration,
}

impl Comparison<'_> {
    /// Rows a second through the lane, and from the bare session at the mean batch that came of it; in
    /// rounds by turns.
    pub fn run(&self, harness: &Harness) -> Result<Value> {
        let mut bare = harness.load_with(self.path, &self.options)?;
        let model = harness.load_with(self.path, &self.options)?;
        let lane = harness.lane(model, LaneConfig::new(self.batch, 4096))?;
        let (mut lane_rows, mut bare_rows, mut mean_batch) = (Vec::new(), Vec::new(), 0.0);
        if !self.warm_up.is_zero() {
            let flow = closed_loop(&lane, self.clients, self.rows, self.warm_up);
            harness.runtime.block_on(flow)?;
            let input = self.batch_of(&bare, self.batch);
            bare_loop(&mut bare, &input, self.warm_up)?;
        }
        for _ in 0..ROUNDS {
            let before = lane.statistics();
            let flow = closed_loop(&lane, self.clients, self.rows, self.time);
            lane_rows.push(harness.runtime.block_on(flow)?);
            let after = lane.statistics();
            let batches = after.total.batch_count() - before.total.batch_count();
            mean_batch = (after.total.rows - before.total.rows) as f64 / batches as f64;
            let input = self.batch_of(&bare, mean_batch.round() as usize);
            bare_rows.push(bare_loop(&mut bare, &input, self.time)?);
        }
        let mut ratios: Vec<_> =
            lane_rows.iter().zip(&bare_rows).map(|(lane, bare)| lane / bare).collect();
        ratios.sort_by(f64::total_cmp);
        Ok(json!({
            "lane_rows_per_s": lane_rows,
            "bare_rows_per_s": bare_rows,
            "mean_batch": mean_batch,
            "ratio": ratios[ROUNDS / 2],
        }))
    }

    /// A batch for the bare session, where its device reads it best.
    fn batch_of(&self, bare: &LoadedModel, rows: usize) -> Tensor {
        let mut shape = self.rows[0].shape().to_vec();
        shape[0] = rows;
        tensor_in(&bare.staging, self.rows[0].dtype(), &shape, 0.5)
    }
}

/// Rows a second of one run after the other.
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
