//! What a lane did, counted per batch.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use gristmill_core::Name;
use smallvec::SmallVec;

use crate::batch::{Batch, Ran, Times};
use crate::lane::Shared;
use crate::ticket::Served;

/// How many of the latest batches with rows of several tenants are remembered.
const RECENT_MIXED: usize = 8;

/// A lane's counters since it was loaded.
#[derive(Clone, Debug, Default)]
pub struct LaneStatistics {
    /// Of all requests.
    pub total: Counters,
    /// Of each tenant's.
    pub tenants: BTreeMap<Name, Counters>,
    /// Requests that expired in the queue.
    pub expired: u64,
    /// Requests refused because a queue was full.
    pub refused: u64,
    /// Requests refused because they could not have been answered in time.
    pub refused_early: u64,
    /// How often a batch that failed was cut in half.
    pub bisections: u64,
    /// Runs that were told to end, because they went on after the last deadline of their requests.
    pub given_up: u64,
    /// Of these, how many went on: their instances were given up.
    pub lost: u64,
    /// Batches that held rows of more than one tenant.
    pub mixed_batches: u64,
    /// The latest of them.
    pub recent_mixed: VecDeque<MixedBatch>,
    /// Rows queued now.
    pub queued_rows: usize,
    /// Batches that run now.
    pub running: usize,
    /// The learned service time of a batch of n rows, a + b n: a and b, in seconds.
    pub service_time: Option<(f64, f64)>,
}

/// What was run, and how long it took.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Requests answered.
    pub success: u64,
    /// From arrival at the host to the answer, summed over the requests answered.
    pub success_time: Duration,
    /// Requests that got no answer: refused, expired, failed, or given up by who made them.
    pub fail: u64,
    /// From arrival at the host to that, summed over these requests.
    pub fail_time: Duration,
    /// When a batch last ran.
    pub last_run: Option<SystemTime>,
    /// Rows run.
    pub rows: u64,
    /// Batches by their number of rows; of a tenant, by the number of its own.
    pub batches: BTreeMap<usize, BatchStatistics>,
    /// Time requests were queued, summed over the requests answered.
    pub queue: Duration,
    /// Time in batches that ran, summed over the requests answered.
    pub compute: Times,
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

impl Counters {
    /// Batches run.
    pub fn batch_count(&self) -> u64 {
        self.batches.values().map(|batches| batches.count).sum()
    }

    fn count_batch(&mut self, rows: usize, times: &Times, at: SystemTime) {
        self.last_run = Some(at);
        self.rows += rows as u64;
        let of_size = self.batches.entry(rows).or_default();
        of_size.count += 1;
        of_size.times.add(times);
    }

    fn count_success(&mut self, served: &Served, total: Duration) {
        self.success += 1;
        self.success_time += total;
        self.queue += served.queued;
        self.compute.add(&served.times);
    }

    fn count_failure(&mut self, total: Duration) {
        self.fail += 1;
        self.fail_time += total;
    }
}

impl LaneStatistics {
    pub(crate) fn count(&mut self, batch: &Batch, ran: &Ran) {
        let (times, at) = (&ran.times, SystemTime::now());
        self.bisections += ran.bisections;
        self.total.count_batch(batch.rows(), times, at);
        let mut own_rows = SmallVec::<[(&Name, usize); 4]>::new();
        for entry in batch.requests() {
            match own_rows.iter_mut().find(|(tenant, _)| *tenant == &entry.tenant) {
                Some((_, rows)) => *rows += entry.rows,
                None => own_rows.push((&entry.tenant, entry.rows)),
            }
        }
        for (tenant, rows) in &own_rows {
            self.of(tenant).count_batch(*rows, times, at);
        }
        if own_rows.len() > 1 {
            self.count_mixed(&own_rows);
        }
    }

    fn of(&mut self, tenant: &Name) -> &mut Counters {
        self.tenants.entry(tenant.clone()).or_default()
    }

    fn count_mixed(&mut self, own_rows: &[(&Name, usize)]) {
        self.mixed_batches += 1;
        if self.recent_mixed.len() == RECENT_MIXED {
            self.recent_mixed.pop_front();
        }
        let rows = own_rows.iter().map(|(tenant, rows)| ((*tenant).clone(), *rows)).collect();
        self.recent_mixed.push_back(MixedBatch { rows });
    }
}

/// A request at the lane: however it ends, it is counted once, and by whoever waits for it, so that whoever
/// sees its answer sees it counted, too.
pub(crate) struct Pending<'a> {
    shared: &'a Shared,
    tenant: &'a Name,
    arrived: Instant,
}

impl<'a> Pending<'a> {
    pub(crate) fn new(shared: &'a Shared, tenant: &'a Name, arrived: Instant) -> Self {
        Self { shared, tenant, arrived }
    }

    pub(crate) fn succeeded(self, served: &Served) {
        self.count(|counters, total| counters.count_success(served, total));
        std::mem::forget(self);
    }

    fn count(&self, count: impl Fn(&mut Counters, Duration)) {
        let total = self.arrived.elapsed();
        let mut statistics = self.shared.statistics();
        count(&mut statistics.total, total);
        count(statistics.of(self.tenant), total);
    }
}

/// Refused, failed or given up.
impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.count(Counters::count_failure);
    }
}
