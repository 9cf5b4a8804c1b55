//! Ten million rows with cancels, deadlines, failures and swaps: checks that nothing is lost,
//! doubled or mixed up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use arc_swap::ArcSwap;
use gristmill_batch::{Lane, LaneConfig, LaneParts, Submission, SubmitError};
use gristmill_benches::harness::{Harness, submission, tenant};
use gristmill_benches::models::{Doubling, POISON, info};
use gristmill_core::{Deadline, Dtype, Model, Tensor};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

const ROWS: u64 = 10_000_000;
const CLIENTS: u64 = 64;
const ROWS_MAX: usize = 40;
const BATCH_MAX: usize = 32;
const SWAPS: u64 = 200;

#[derive(Default)]
struct Tally {
    rows: AtomicU64,
    requests: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    expired: AtomicU64,
    refused: AtomicU64,
    cancelled: AtomicU64,
    /// Requests with neither an answer nor an error within a minute.
    lost: AtomicU64,
    /// Requests that got the rows or the error of another one.
    wrong: AtomicU64,
}

pub fn run(harness: &Harness) -> Result<Value> {
    let lanes = Arc::new(ArcSwap::from(lane(harness)?));
    let tally = Arc::new(Tally::default());
    harness.runtime.block_on(async {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                let (lanes, tally) = (lanes.clone(), tally.clone());
                tokio::spawn(client(lanes, harness.pool.clone(), tally, seed))
            })
            .collect();
        for swap in 1..=SWAPS {
            while tally.rows.load(Ordering::Relaxed) < ROWS * swap / (SWAPS + 1) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            lanes.store(lane(harness)?);
        }
        for client in clients {
            client.await?;
        }
        anyhow::Ok(())
    })?;
    let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let fates = [&tally.answered, &tally.failed, &tally.expired, &tally.refused, &tally.cancelled];
    let accounted: u64 = fates.into_iter().map(of).sum::<u64>() + of(&tally.lost);
    Ok(json!({
        "rows": of(&tally.rows),
        "requests": of(&tally.requests),
        "answered": of(&tally.answered),
        "failed_by_poison": of(&tally.failed),
        "expired": of(&tally.expired),
        "refused": of(&tally.refused),
        "cancelled": of(&tally.cancelled),
        "swaps": SWAPS,
        "lost": of(&tally.lost),
        "wrong": of(&tally.wrong) + of(&tally.requests).abs_diff(accounted),
    }))
}

fn lane(harness: &Harness) -> Result<Arc<Lane>> {
    let model = || Box::new(Doubling { pool: harness.pool.clone() }) as Box<dyn Model>;
    let config = LaneConfig::new(BATCH_MAX, CLIENTS as usize * ROWS_MAX);
    let instances = vec![model(), model()];
    Ok(Arc::new(Lane::new(LaneParts {
        name: "bench",
        info: info(),
        instances,
        config,
        pool: harness.pool.clone(),
    })?))
}

/// Sends one request after the other. Each row is a number that no other request has.
async fn client(
    lanes: Arc<ArcSwap<Lane>>,
    pool: gristmill_core::BufferPool,
    tally: Arc<Tally>,
    seed: u64,
) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (input, owner) = (Arc::from("x"), tenant(["a", "b", "c"][seed as usize % 3]));
    let mut next = 0_u64;
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    while tally.rows.load(Ordering::Relaxed) < ROWS {
        let rows = random.random_range(1..=ROWS_MAX);
        let poisoned = random.random_ratio(1, 200);
        // FP32 represents whole numbers up to 2^24 and their doubles exactly. Each of the 64
        // clients has 2^17 of them (64 x 2^17 = 2^23).
        let mut values: Vec<f32> =
            (0..rows as u64).map(|row| (seed * 131_072 + (next + row) % 131_072) as f32).collect();
        next += rows as u64;
        if poisoned {
            values[rows / 2] = POISON;
        }
        tally.rows.fetch_add(rows as u64, Ordering::Relaxed);
        count(&tally.requests);
        let buffer = pool.copy_from(bytemuck::cast_slice(&values));
        let Ok(tensor) = Tensor::new(Dtype::Float32, [rows, 1].as_slice().into(), buffer) else {
            count(&tally.wrong);
            continue;
        };
        let patience = match random.random_range(0..20) {
            0 => Duration::from_micros(random.random_range(1..300)),
            _ => Duration::from_secs(60),
        };
        let request = Submission {
            deadline: Deadline::at(Instant::now() + patience),
            ..submission(&owner, &input, &tensor)
        };
        let lane = lanes.load_full();
        if random.random_ratio(1, 20) {
            // Give up after a few polls. The request may be queued or running then.
            let polls = random.random_range(0..4);
            let mut answer = Box::pin(lane.submit(request, None));
            for _ in 0..polls {
                let polled = futures_util::poll!(&mut answer);
                if polled.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            drop(answer);
            count(&tally.cancelled);
            continue;
        }
        match tokio::time::timeout(Duration::from_secs(60), lane.submit(request, None)).await {
            Err(_) => drop(count(&tally.lost)),
            Ok(Ok(answer)) => {
                let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
                let is_own = answer.outputs[0].as_f32() == Some(&doubled[..]);
                if !is_own || poisoned {
                    count(&tally.wrong);
                }
                count(&tally.answered);
            }
            Ok(Err(SubmitError::Failed { .. })) => {
                if !poisoned {
                    count(&tally.wrong);
                }
                count(&tally.failed);
            }
            Ok(Err(SubmitError::Expired | SubmitError::TooBusy { .. })) => {
                count(&tally.expired);
            }
            Ok(Err(_)) => drop(count(&tally.refused)),
        }
    }
}
