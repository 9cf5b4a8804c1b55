//! More load than the lane can serve: the latency of a small tenant, and how many answers come in
//! time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use gristmill_batch::{Lane, LaneConfig, Submission};
use gristmill_benches::harness::{Harness, closed_loop, percentile_ms, submission, tenant};
use gristmill_benches::models::Paced;
use gristmill_core::{Deadline, Name, Tensor};
use serde_json::{Value, json};

const MODEL: Paced = Paced { fixed: Duration::from_millis(5), per_row: Duration::from_micros(1) };
const MAX_BATCH: usize = 32;

/// Requests of one tenant at a steady rate, independent of their answers.
struct Flow {
    lane: Arc<Lane>,
    tenant: Name,
    row: Tensor,
    per_s: f64,
    deadline: Duration,
    time: Duration,
}

impl Flow {
    /// The latencies of the answered requests, and the number of requests sent.
    async fn run(self) -> (Vec<Duration>, u64) {
        let input = self.lane.info().inputs[0].name.clone();
        let began = Instant::now();
        let (sent, answered) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let mut tasks = tokio::task::JoinSet::new();
        let mut latencies = Vec::new();
        while began.elapsed() < self.time {
            let due = (began.elapsed().as_secs_f64() * self.per_s) as u64;
            while sent.load(Ordering::Relaxed) < due {
                sent.fetch_add(1, Ordering::Relaxed);
                let arrived = Instant::now();
                let deadline = Deadline::at(arrived + self.deadline);
                let request =
                    Submission { deadline, ..submission(&self.tenant, &input, &self.row) };
                let (lane, answered) = (self.lane.clone(), answered.clone());
                tasks.spawn(async move {
                    let outcome = lane.submit(request, None).await;
                    answered.fetch_add(1, Ordering::Relaxed);
                    outcome.is_ok().then(|| arrived.elapsed())
                });
            }
            while let Some(Ok(latency)) = tasks.try_join_next() {
                latencies.extend(latency);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        while let Some(outcome) = tasks.join_next().await {
            latencies.extend(outcome.ok().flatten());
        }
        (latencies, sent.into_inner())
    }
}

fn capacity() -> f64 {
    MAX_BATCH as f64 / MODEL.batch(MAX_BATCH as u32).as_secs_f64()
}

/// The p99 of a tenant that sends one percent of the capacity: alone, and while another tenant
/// sends twenty times the capacity. The growth is given in times of a full batch, from staging to
/// the last answer.
pub fn fairness(harness: &Harness) -> Result<Value> {
    const TIME: Duration = Duration::from_secs(12);
    let mut config = LaneConfig::new(MAX_BATCH, 2048);
    config.tenant_queue.rows = 1024;
    let lane = harness.lane_over(MODEL, config)?;
    let flow = |name: &str, times: f64| Flow {
        lane: lane.clone(),
        tenant: tenant(name),
        row: harness.tensor(&[1, 32], 0.5),
        per_s: capacity() * times,
        deadline: Duration::from_secs(2),
        time: TIME,
    };
    let (alone, _) = harness.runtime.block_on(flow("small", 0.01).run());
    let flood = harness.runtime.spawn(flow("flood", 20.0).run());
    let (beside, sent) =
        harness.runtime.block_on(harness.runtime.spawn(flow("small", 0.01).run()))?;
    let (flooded, flood_sent) = harness.runtime.block_on(flood)?;
    let p99 = |times: &[Duration]| percentile_ms(times, 99.0).context("no answers");
    let (alone_p99, beside_p99) = (p99(&alone)?, p99(&beside)?);
    let statistics = lane.statistics();
    let full = statistics.total.batches.get(&MAX_BATCH).copied().unwrap_or_default();
    let batch = full.times.total().as_secs_f64() * 1e3 / full.count as f64;
    Ok(json!({
        "alone_p99_ms": alone_p99,
        "beside_p99_ms": beside_p99,
        "batch_ms": batch,
        "grown_by_batches": (beside_p99 - alone_p99) / batch,
        "small_sent": sent,
        "small_answered": beside.len(),
        "flood_sent_over_capacity": flood_sent as f64 / TIME.as_secs_f64() / capacity(),
        "flood_answered": flooded.len(),
    }))
}

/// Answers in time while one and a half times the capacity is sent, as a ratio to the answers of
/// clients that wait for each answer before they send again.
pub fn goodput(harness: &Harness) -> Result<Value> {
    const TIME: Duration = Duration::from_secs(6);
    const DEADLINE: Duration = Duration::from_millis(100);
    let lane = harness.lane_over(MODEL, LaneConfig::new(MAX_BATCH, 1 << 20))?;
    let row = harness.tensor(&[1, 32], 0.5);
    let at_capacity = harness.runtime.block_on(closed_loop(
        &lane,
        MAX_BATCH * 2,
        std::slice::from_ref(&row),
        TIME,
    ))?;
    let flow = Flow {
        lane: lane.clone(),
        tenant: tenant("a"),
        row,
        per_s: at_capacity * 1.5,
        deadline: DEADLINE,
        time: TIME,
    };
    let (latencies, sent) = harness.runtime.block_on(harness.runtime.spawn(flow.run()))?;
    let in_time = latencies.iter().filter(|latency| **latency <= DEADLINE).count();
    let overloaded = in_time as f64 / TIME.as_secs_f64();
    let statistics = lane.statistics();
    Ok(json!({
        "at_capacity_per_s": at_capacity,
        "overloaded_per_s": overloaded,
        "ratio": overloaded / at_capacity,
        "sent": sent,
        "late": latencies.len() - in_time,
        "refused_early": statistics.refused_early,
        "expired": statistics.expired,
    }))
}
