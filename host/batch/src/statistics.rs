//! The figures of a lane, as plain numbers. Refuses to know batches and locks.
//!
//! Figures of two periods can be added; `tally` does that.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, SystemTime};

use gristmill_core::Name;

use crate::submission::Answered;
use crate::times::Times;

/// The number of recent batches with rows of several tenants that are remembered.
const RECENT_MIXED: usize = 8;

/// A lane's counters since it was loaded.
#[derive(Clone, Debug, Default)]
pub struct LaneStatistics {
    /// The counters of all requests.
    pub total: Counters,
    /// The counters of each tenant's requests.
    pub tenants: BTreeMap<Name, Counters>,
    /// Requests that expired in the queue.
    pub expired: u64,
    /// Requests refused because a queue was full.
    pub refused: u64,
    /// Requests refused because they could not have been answered in time.
    pub refused_early: u64,
    /// The number of times that a failed batch was cut in half.
    pub bisections: u64,
    /// Runs that were told to end, because they went on too long after the last deadline of their
    /// requests.
    pub given_up: u64,
    /// How many of these did not end, so that their instances were given up.
    pub lost: u64,
    /// Elements of the inputs that may be padded.
    pub elements: Elements,
    /// Batches that held rows of more than one tenant.
    pub mixed_batches: u64,
    /// The most recent of them.
    pub recent_mixed: VecDeque<MixedBatch>,
    /// Rows queued now.
    pub queued_rows: usize,
    /// How long the oldest request in the queue has been there.
    pub queue_age: Duration,
    /// Batches that run now.
    pub running: usize,
    /// Instances that wait for a batch now.
    pub idle: usize,
    /// The learned service time of a batch of n rows, a + b n: a and b, in seconds.
    pub service_time: Option<(f64, f64)>,
}

/// Requests and batches, and how long they took.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// Requests answered.
    pub success: u64,
    /// From arrival at the host to the answer, summed over the requests answered.
    pub success_time: Duration,
    /// Requests that got no answer: refused, expired, failed, or dropped by the client.
    pub fail: u64,
    /// From arrival at the host to their end, summed over these requests.
    pub fail_time: Duration,
    /// When a batch last ran.
    pub last_run: Option<SystemTime>,
    /// Rows run.
    pub rows: u64,
    /// Batches by their number of rows; for a tenant, by the number of its own rows.
    pub batches: BTreeMap<usize, BatchStatistics>,
    /// Time requests were queued, summed over the requests answered.
    pub queue: Duration,
    /// Time in batches that ran, summed over the requests answered.
    pub compute: Times,
}

/// Batches of one size.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchStatistics {
    /// Batches run.
    pub count: u64,
    /// The times, summed over the batches.
    pub times: Times,
}

/// Elements of the inputs that may be padded, in batches that ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elements {
    /// Elements of requests.
    pub real: u64,
    /// Elements that filled rows up to the length of others.
    pub padding: u64,
}

/// A batch that held rows of several tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MixedBatch {
    /// Rows of each tenant.
    pub rows: BTreeMap<Name, usize>,
}

impl Elements {
    pub(crate) fn add(&mut self, more: Self) {
        self.real += more.real;
        self.padding += more.padding;
    }
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

    fn count_request(&mut self, request: &CountedRequest<'_>) {
        match request.answered {
            Some(answered) => {
                self.success += 1;
                self.success_time += request.time;
                self.queue += answered.queued;
                self.compute.add(&answered.times);
            }
            None => {
                self.fail += 1;
                self.fail_time += request.time;
            }
        }
    }

    /// Add the figures of a later time.
    fn add(&mut self, later: Self) {
        self.success += later.success;
        self.success_time += later.success_time;
        self.fail += later.fail;
        self.fail_time += later.fail_time;
        self.last_run = later.last_run.or(self.last_run);
        self.rows += later.rows;
        for (rows, batches) in later.batches {
            let of_size = self.batches.entry(rows).or_default();
            of_size.count += batches.count;
            of_size.times.add(&batches.times);
        }
        self.queue += later.queue;
        self.compute.add(&later.compute);
    }
}

/// A batch that ran, to be counted.
pub(crate) struct CountedBatch<'a> {
    /// Rows of each of its tenants.
    pub(crate) tenant_rows: &'a [(&'a Name, usize)],
    pub(crate) times: &'a Times,
    /// How often it was cut in half.
    pub(crate) bisections: u64,
    pub(crate) elements: Elements,
    /// When it ended, by the time of day.
    pub(crate) at: SystemTime,
}

/// A request that ended, to be counted.
pub(crate) struct CountedRequest<'a> {
    pub(crate) tenant: &'a Name,
    /// None if the request got no answer.
    pub(crate) answered: Option<&'a Answered>,
    /// The time since it arrived at the host.
    pub(crate) time: Duration,
}

impl LaneStatistics {
    pub(crate) fn count_batch(&mut self, batch: &CountedBatch<'_>) {
        let CountedBatch { tenant_rows, times, bisections, elements, at } = *batch;
        let rows = tenant_rows.iter().map(|(_, rows)| rows).sum();
        self.bisections += bisections;
        self.elements.add(elements);
        self.total.count_batch(rows, times, at);
        for (tenant, rows) in tenant_rows {
            self.count_of(tenant, |counters| counters.count_batch(*rows, times, at));
        }
        if tenant_rows.len() > 1 {
            self.count_mixed(tenant_rows);
        }
    }

    pub(crate) fn count_request(&mut self, request: &CountedRequest<'_>) {
        self.total.count_request(request);
        self.count_of(request.tenant, |counters| counters.count_request(request));
    }

    /// Add the figures of a later time.
    pub(crate) fn add(&mut self, later: Self) {
        self.total.add(later.total);
        for (tenant, counters) in later.tenants {
            self.count_of(&tenant, |sum| sum.add(counters));
        }
        for (sum, more) in [
            (&mut self.expired, later.expired),
            (&mut self.refused, later.refused),
            (&mut self.refused_early, later.refused_early),
            (&mut self.bisections, later.bisections),
            (&mut self.given_up, later.given_up),
            (&mut self.lost, later.lost),
            (&mut self.mixed_batches, later.mixed_batches),
        ] {
            *sum += more;
        }
        self.elements.add(later.elements);
        self.recent_mixed.extend(later.recent_mixed);
        let too_many = self.recent_mixed.len().saturating_sub(RECENT_MIXED);
        self.recent_mixed.drain(..too_many);
    }

    /// Looked up before it is made: all threads would write to the count of the name's owners.
    fn count_of(&mut self, tenant: &Name, count: impl FnOnce(&mut Counters)) {
        match self.tenants.get_mut(tenant) {
            Some(counters) => count(counters),
            None => count(self.tenants.entry(tenant.clone()).or_default()),
        }
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
