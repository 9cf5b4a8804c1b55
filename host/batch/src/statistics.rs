//! What a lane did, counted per batch.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use gristmill_core::Name;

/// How many of the latest batches with rows of several tenants are remembered.
const RECENT_MIXED: usize = 8;

/// A lane's counters since it was loaded.
#[derive(Clone, Debug, Default)]
pub struct LaneStatistics {
    /// Requests answered.
    pub success: u64,
    /// Requests whose run failed.
    pub fail: u64,
    /// Requests that expired in the queue.
    pub expired: u64,
    /// Requests refused because the queue was full.
    pub refused: u64,
    /// Batches run.
    pub batches: u64,
    /// Rows run.
    pub rows: u64,
    /// Batches by their number of rows.
    pub batch_sizes: BTreeMap<usize, u64>,
    /// Rows run for each tenant.
    pub tenant_rows: BTreeMap<Name, u64>,
    /// Batches that held rows of more than one tenant.
    pub mixed_batches: u64,
    /// The latest of them.
    pub recent_mixed: VecDeque<MixedBatch>,
    /// Time requests spent queued, summed.
    pub queue: Duration,
    /// Time spent staging, running and splitting batches, summed.
    pub compute: Duration,
    /// Rows queued now.
    pub queued_rows: usize,
}

/// A batch that held rows of several tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedBatch {
    /// Rows of each tenant.
    pub rows: BTreeMap<Name, usize>,
}

/// A batch that was run.
pub(crate) struct Ran<'a> {
    /// Tenant, rows and time queued of each request.
    pub(crate) requests: &'a [(Name, usize, Duration)],
    pub(crate) compute: Duration,
    pub(crate) failed: usize,
}

impl LaneStatistics {
    pub(crate) fn count(&mut self, ran: &Ran<'_>) {
        let rows: usize = ran.requests.iter().map(|(_, rows, _)| rows).sum();
        self.success += (ran.requests.len() - ran.failed) as u64;
        self.fail += ran.failed as u64;
        self.batches += 1;
        self.rows += rows as u64;
        self.compute += ran.compute;
        *self.batch_sizes.entry(rows).or_default() += 1;
        for (tenant, rows, queued) in ran.requests {
            self.queue += *queued;
            match self.tenant_rows.get_mut(tenant) {
                Some(count) => *count += *rows as u64,
                None => drop(self.tenant_rows.insert(tenant.clone(), *rows as u64)),
            }
        }
        if ran.requests.iter().any(|(tenant, ..)| *tenant != ran.requests[0].0) {
            self.count_mixed(ran.requests);
        }
    }

    fn count_mixed(&mut self, requests: &[(Name, usize, Duration)]) {
        self.mixed_batches += 1;
        let mut rows = BTreeMap::new();
        for (tenant, count, _) in requests {
            *rows.entry(tenant.clone()).or_default() += count;
        }
        if self.recent_mixed.len() == RECENT_MIXED {
            self.recent_mixed.pop_front();
        }
        self.recent_mixed.push_back(MixedBatch { rows });
    }
}
