//! What a lane did, counted per batch.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use gristmill_core::Name;

use crate::batch::{Batch, Ran, Times};

/// How many of the latest batches with rows of several tenants are remembered.
const RECENT_MIXED: usize = 8;

/// A lane's counters since it was loaded.
#[derive(Clone, Debug, Default)]
pub struct LaneStatistics {
    /// Requests answered.
    pub success: u64,
    /// From arrival at the host to the answer, summed over the requests answered.
    pub success_time: Duration,
    /// Requests whose run failed.
    pub fail: u64,
    /// From arrival at the host to the failure, summed over the requests whose run failed.
    pub fail_time: Duration,
    /// When a batch last ran.
    pub last_run: Option<SystemTime>,
    /// Requests that expired in the queue.
    pub expired: u64,
    /// Requests refused because a queue was full.
    pub refused: u64,
    /// Requests refused because they could not have been answered in time.
    pub refused_early: u64,
    /// How often a batch that failed was cut in half.
    pub bisections: u64,
    /// Rows run.
    pub rows: u64,
    /// Batches by their number of rows.
    pub batches: BTreeMap<usize, BatchStatistics>,
    /// Rows run for each tenant.
    pub tenant_rows: BTreeMap<Name, u64>,
    /// Batches that held rows of more than one tenant.
    pub mixed_batches: u64,
    /// The latest of them.
    pub recent_mixed: VecDeque<MixedBatch>,
    /// Time requests were queued, summed over the requests answered.
    pub queue: Duration,
    /// Time in a batch that ran, summed over the requests answered.
    pub compute: Times,
    /// Rows queued now.
    pub queued_rows: usize,
    /// The learned service time of a batch of n rows, a + b n: a and b, in seconds.
    pub service_time: Option<(f64, f64)>,
}

/// Batches of one size.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchStatistics {
    pub count: u64,
    /// Summed over batches.
    pub times: Times,
}

/// A batch that held rows of several tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedBatch {
    /// Rows of each tenant.
    pub rows: BTreeMap<Name, usize>,
}

impl LaneStatistics {
    /// Batches run.
    pub fn batch_count(&self) -> u64 {
        self.batches.values().map(|batches| batches.count).sum()
    }

    pub(crate) fn count(&mut self, batch: &Batch, ran: &Ran) {
        let rows = batch.rows();
        let requests = batch.requests();
        let now = Instant::now();
        self.last_run = Some(SystemTime::now());
        self.success += (requests.len() - ran.failed) as u64;
        self.fail += ran.failed as u64;
        self.bisections += ran.bisections;
        self.rows += rows as u64;
        self.compute.add(&ran.times, (requests.len() - ran.failed) as u32);
        let of_size = self.batches.entry(rows).or_default();
        of_size.count += 1;
        of_size.times.add(&ran.times, 1);
        for (entry, queued, succeeded) in batch.ran() {
            let total = now - entry.item.arrived;
            if succeeded {
                self.queue += queued;
                self.success_time += total;
            } else {
                self.fail_time += total;
            }
            match self.tenant_rows.get_mut(&entry.tenant) {
                Some(count) => *count += entry.rows as u64,
                None => drop(self.tenant_rows.insert(entry.tenant.clone(), entry.rows as u64)),
            }
        }
        if requests.iter().any(|entry| entry.tenant != requests[0].tenant) {
            self.count_mixed(batch);
        }
    }

    fn count_mixed(&mut self, batch: &Batch) {
        self.mixed_batches += 1;
        let mut rows = BTreeMap::new();
        for entry in batch.requests() {
            *rows.entry(entry.tenant.clone()).or_default() += entry.rows;
        }
        if self.recent_mixed.len() == RECENT_MIXED {
            self.recent_mixed.pop_front();
        }
        self.recent_mixed.push_back(MixedBatch { rows });
    }
}

impl Times {
    fn add(&mut self, other: &Self, times: u32) {
        self.input += other.input * times;
        self.infer += other.infer * times;
        self.output += other.output * times;
    }
}
