//! The gain of staging: copying the next batch together while the instance is busy.
//!
//! The model only waits, like a model on an accelerator, so the processor is free to copy. Three
//! full batches are always queued. This is the best case for staging. To see the gain, compare the
//! figures of a build with it and one without.

use std::time::Duration;

use anyhow::Result;
use gristmill_batch::LaneConfig;
use gristmill_benches::harness::{Harness, closed_loop};
use gristmill_benches::models::Paced;
use serde_json::{Value, json};

const BATCH: usize = 8;
const CLIENTS: usize = 4 * BATCH;
const TIME: Duration = Duration::from_secs(2);

/// Rows a second for each size of a row and each time of a run. `copied_in_run_us` is the time that
/// copying added to a batch's run.
pub fn run(harness: &Harness) -> Result<Value> {
    let mut cases = Vec::new();
    for row_kib in [64, 600, 2400] {
        for run_ms in [2, 10, 40] {
            let model = Paced { fixed: Duration::from_millis(run_ms), per_row: Duration::ZERO };
            let rows_per_s_max = BATCH as f64 / model.fixed.as_secs_f64();
            let lane = harness.lane_over(model, LaneConfig::new(BATCH, 4096))?;
            let row = harness.tensor(&[1, row_kib * 256], 0.5);
            let rows = std::slice::from_ref(&row);
            let rows_per_s = harness.runtime.block_on(closed_loop(&lane, CLIENTS, rows, TIME))?;
            let full = lane.statistics().total.batches.get(&BATCH).copied().unwrap_or_default();
            let copied_in_run_us = full.times.input.as_micros() as u64 / full.count.max(1);
            cases.push(json!({
                "row_kib": row_kib,
                "run_ms": run_ms,
                "rows_per_s": rows_per_s,
                "of_bound": rows_per_s / rows_per_s_max,
                "copied_in_run_us": copied_in_run_us,
            }));
        }
    }
    Ok(json!({ "batch": BATCH, "clients": CLIENTS, "cases": cases }))
}
