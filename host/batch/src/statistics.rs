//! What a lane did, counted per batch.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use gristmill_core::Name;
use smallvec::SmallVec;

use crate::batch::{Batch, Ran, Times};

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
    /// Batches that held rows of more than one tenant.
    pub mixed_batches: u64,
    /// The latest of them.
    pub recent_mixed: VecDeque<MixedBatch>,
    /// Rows queued now.
    pub queued_rows: usize,
    /// The learned service time of a batch of n rows, a + b n: a and b, in seconds.
    pub service_time: Option<(f64, f64)>,
}

/// What was run, and how long it took.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Requests answered; one that is split counts once for each part.
    pub success: u64,
    /// From arrival at the host to the answer, summed over the requests answered.
    pub success_time: Duration,
    /// Requests whose run failed.
    pub fail: u64,
    /// From arrival at the host to the failure, summed over the requests whose run failed.
    pub fail_time: Duration,
    /// When a batch last ran.
    pub last_run: Option<SystemTime>,
    /// Rows run.
    pub rows: u64,
    /// Batches by their number of rows; of a tenant, by the number of its own.
    pub batches: BTreeMap<usize, BatchStatistics>,
    /// Time requests were queued, summed over the requests answered.
    pub queue: Duration,
    /// Time in a batch that ran, summed over the requests answered.
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

    fn count_request(&mut self, request: &Request<'_>) {
        if !request.succeeded {
            self.fail += 1;
            self.fail_time += request.total;
            return;
        }
        self.success += 1;
        self.success_time += request.total;
        self.queue += request.queued;
        self.compute.add(request.times);
    }
}

/// A request that ran.
struct Request<'a> {
    succeeded: bool,
    total: Duration,
    queued: Duration,
    times: &'a Times,
}

impl LaneStatistics {
    pub(crate) fn count(&mut self, batch: &Batch, ran: &Ran) {
        let (now, at) = (Instant::now(), SystemTime::now());
        let times = &ran.times;
        self.bisections += ran.bisections;
        self.total.count_batch(batch.rows(), times, at);
        let mut own_rows = SmallVec::<[(&Name, usize); 4]>::new();
        for (entry, queued, succeeded) in batch.ran() {
            let total = now - entry.item.arrived;
            let request = Request { succeeded, total, queued, times };
            self.total.count_request(&request);
            self.of(&entry.tenant).count_request(&request);
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

impl Times {
    fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.infer += other.infer;
        self.output += other.output;
    }
}
