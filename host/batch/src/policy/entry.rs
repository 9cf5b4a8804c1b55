//! A queued request as the policy sees it, and the decision about it.
//!
//! The request itself is opaque: the policy only passes it on.

use std::time::{Duration, Instant};

use gristmill_core::Name;

use crate::config::{LaneConfig, TimeoutAction};

/// A queued request, with all that the policy needs to know about it.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) tenant: Name,
    /// The tenant's share of contended batches, relative to the weights of others.
    pub(crate) weight: u32,
    /// Its priority: 0 is served first.
    pub(crate) level: usize,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// Requests with equal keys fit one batch.
    pub(crate) shape_key: u64,
    pub(crate) arrived: Instant,
    /// When its submitter stops waiting.
    pub(crate) deadline: Instant,
    /// When its queue timeout passes.
    pub(crate) timeout: Option<Instant>,
    pub(crate) item: T,
}

/// The rows of all `entries` together.
pub(crate) fn rows_of<T>(entries: &[Entry<T>]) -> usize {
    entries.iter().map(|entry| entry.rows).sum()
}

impl<T> Entry<T> {
    /// Decide at `now` whether to run, wait or reject, given the estimated batch time `takes`.
    pub(super) fn verdict(
        &self,
        config: &LaneConfig,
        now: Instant,
        takes: Duration,
        gone: &impl Fn(&T) -> bool,
    ) -> Verdict {
        let overstayed = self.timeout.is_some_and(|timeout| timeout <= now);
        // There may be fewer levels now than when it was queued, and ageing may have moved it up.
        let level = self.level.min(config.levels.len() - 1);
        match config.levels[level].timeout_action {
            _ if gone(&self.item) => Verdict::Gone,
            _ if self.deadline <= now + takes => Verdict::Expired,
            TimeoutAction::Reject if overstayed => Verdict::Expired,
            TimeoutAction::Delay if overstayed => Verdict::Delay,
            _ => Verdict::Serve,
        }
    }
}

/// The load that a request adds to the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    pub(crate) shape_key: u64,
}

/// A queued entry, its tenant's index, and since when it is in its tier.
#[derive(Debug)]
pub(super) struct QueuedEntry<T> {
    pub(super) tenant: usize,
    pub(super) since: Instant,
    pub(super) entry: Entry<T>,
}

/// The decision on a queued entry.
pub(super) enum Verdict {
    Serve,
    Gone,
    Expired,
    Delay,
}

/// The entries taken off the queue: a batch, empty if none is due, and the late entries.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) batch: Vec<Entry<T>>,
    pub(crate) expired: Vec<Entry<T>>,
}

impl<T> Default for Taken<T> {
    fn default() -> Self {
        Self { batch: Vec::new(), expired: Vec::new() }
    }
}
