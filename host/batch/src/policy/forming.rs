//! A batch while tiers of the queue add requests to it. Pure.

use std::time::Instant;

use super::entry::{Entry, QueuedEntry, Taken, Verdict};
use super::limits::Usage;

/// A batch that is being formed.
pub(super) struct Forming<'a, T> {
    /// Its shape; none until its first request.
    pub(super) shape: Option<u64>,
    /// The rows that it still has room for.
    pub(super) room: usize,
    /// The shapes that may begin it. None means all.
    pub(super) ready: &'a Option<Vec<u64>>,
    /// Maximum rows of a batch of a shape.
    pub(super) room_of: &'a dyn Fn(u64) -> usize,
    pub(super) usage: &'a mut Usage,
    /// Decides about an entry, given the rows queued in all.
    pub(super) verdict: &'a dyn Fn(&Entry<T>, usize) -> Verdict,
    pub(super) taken: &'a mut Taken<T>,
    /// Tenants whose next request did not fit. Their requests in lower tiers must not overtake it.
    pub(super) blocked: Vec<usize>,
    /// Entries whose timeout has passed and that go to the next tier.
    pub(super) delayed: Vec<QueuedEntry<T>>,
}

impl<T> Forming<'_, T> {
    /// The entries whose timeout has passed at `now`, and that go to the next tier then.
    pub(super) fn take_delayed(&mut self, now: Instant) -> Vec<QueuedEntry<T>> {
        let mut delayed = std::mem::take(&mut self.delayed);
        for queued in &mut delayed {
            (queued.entry.timeout, queued.since) = (None, now);
        }
        delayed
    }
}
