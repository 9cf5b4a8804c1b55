//! The lane over real models, compared with the bare session on one thread.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use gristmill_backend::{LoadOptions, ProviderKind};
use gristmill_batch::LaneConfig;
use gristmill_benches::compare::{Comparison, bare_loop};
use gristmill_benches::harness::{
    Harness, closed_loop, on, percentile_ms, shape_of, submission, tenant,
};
use gristmill_benches::models::Paced;
use serde_json::{Value, json};

const RANKER: &str = "models/ranker/ranker.onnx";
const DIGITS: &str = "models/digits/digits.onnx";
const RESNET50: &str = "target/models/resnet50.onnx";

/// The time of a request of ten rows, one at a time: through the lane and by the bare session, in
/// turns.
pub fn submit_overhead(harness: &Harness) -> Result<Value> {
    const TURNS: usize = 20_000;
    let mut bare = harness.load(RANKER)?;
    let lane = harness.lane(harness.load(RANKER)?, LaneConfig::new(256, 4096))?;
    let input = harness.tensor(&[10, 32], 0.5);
    let (name, tenant) = (lane.info().inputs[0].name.clone(), tenant("a"));
    let session = &mut bare.instances[0];
    let measure = async {
        let (mut alone, mut queued) = (Vec::with_capacity(TURNS), Vec::with_capacity(TURNS));
        for _ in 0..TURNS {
            let started = Instant::now();
            session.run(std::slice::from_ref(&input))?;
            alone.push(started.elapsed());
            let request = submission(&tenant, &name, &input);
            let started = Instant::now();
            lane.submit(request, None).await?;
            queued.push(started.elapsed());
        }
        anyhow::Ok((alone, queued))
    };
    let (alone, queued) = harness.runtime.block_on(measure)?;
    let us = |times: &[Duration]| percentile_ms(times, 50.0).unwrap_or_default() * 1e3;
    let (bare_us, lane_us) = (us(&alone), us(&queued));
    Ok(json!({ "bare_p50_us": bare_us, "lane_p50_us": lane_us, "added_us": lane_us - bare_us }))
}

pub fn digits(harness: &Harness) -> Result<Value> {
    let time = Duration::from_secs(2);
    OverBare { path: DIGITS, shape: &[1, 1, 28, 28], batch: 64, time }.compare(harness)
}

pub fn resnet50(harness: &Harness) -> Result<Value> {
    let time = Duration::from_secs(8);
    OverBare { path: RESNET50, shape: &[1, 3, 224, 224], batch: 8, time }.compare(harness)
}

/// A lane with twice as many clients as a batch has rows, compared with the bare session.
struct OverBare<'a> {
    path: &'a str,
    /// The shape of one request.
    shape: &'a [usize],
    /// The rows of a batch.
    batch: usize,
    /// How long each of both is measured.
    time: Duration,
}

impl OverBare<'_> {
    fn compare(&self, harness: &Harness) -> Result<Value> {
        let Self { path, batch, time, .. } = *self;
        let rows = [harness.tensor(self.shape, 0.5)];
        let (options, clients) = (on(ProviderKind::Cpu), batch * 2);
        let warm_up = Duration::ZERO;
        Comparison { path, options, rows: &rows, batch, clients, time, warm_up }.run(harness)
    }
}

/// A model to run without a lane.
pub struct Bare<'a> {
    pub path: &'a str,
    /// The rows of a run.
    pub batch: usize,
    /// ONNX Runtime's threads.
    pub threads: usize,
    /// The time to measure.
    pub time: Duration,
}

/// Rows a second of the bare session in a loop, after a warm-up. The model must have one input, of
/// which only the number of rows varies.
pub fn bare(harness: &Harness, bare: &Bare) -> Result<Value> {
    let Bare { path, batch, threads, time } = *bare;
    let options = LoadOptions { threads, ..on(ProviderKind::Cpu) };
    let mut model = harness.load_with(path, &options)?;
    let [input] = &model.info.inputs[..] else {
        bail!("{path} has {} inputs: it must have one", model.info.inputs.len());
    };
    let input = harness.tensor(&shape_of(input, batch)?, 0.5);
    bare_loop(&mut model, &input, time / 8)?;
    let rows_per_s = bare_loop(&mut model, &input, time)?;
    Ok(json!({ "batch": batch, "threads": threads, "rows_per_s": rows_per_s }))
}

/// The mean batch of 64 clients over a model that takes about a millisecond.
pub fn mean_batch(harness: &Harness, max_batch_size: usize) -> Result<Value> {
    const CLIENTS: usize = 64;
    let model = Paced { fixed: Duration::from_millis(1), per_row: Duration::from_micros(10) };
    let lane = harness.lane_over(model, LaneConfig::new(max_batch_size, 4096))?;
    let row = harness.tensor(&[1, 32], 0.5);
    let per_s = harness.runtime.block_on(closed_loop(
        &lane,
        CLIENTS,
        std::slice::from_ref(&row),
        Duration::from_secs(3),
    ))?;
    let statistics = lane.statistics();
    let mean_batch = statistics.total.rows as f64 / statistics.total.batch_count() as f64;
    let ratio = mean_batch / CLIENTS.min(max_batch_size) as f64;
    Ok(json!({ "mean_batch": mean_batch, "rows_per_s": per_s, "ratio": ratio }))
}
