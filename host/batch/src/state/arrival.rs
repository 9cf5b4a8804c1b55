//! Putting requests into the queue, and removing those whose submitters are gone.
//!
//! A request that cannot be answered before its deadline is refused here and not queued.

use std::time::{Duration, Instant};

use gristmill_core::{Name, NamedTensor, Receipt};
use smallvec::SmallVec;

use super::LockedState;
use crate::error::SubmitError;
use crate::job::Job;
use crate::policy::{Entry, Size};
use crate::split::RequestPart;
use crate::ticket::{PendingReply, ticket};

/// The least time between two searches of a full queue for dead entries.
const SWEEP_INTERVAL: Duration = Duration::from_millis(10);

/// The queue is searched for dead entries when at least one in this many of its requests was
/// dropped.
const DROPPED_SHARE: usize = 8;

/// A request that arrives at the queue.
pub(crate) struct Arrival<'a> {
    pub(crate) tenant: &'a Name,
    pub(crate) weight: u32,
    pub(crate) level: usize,
    /// How long it may be queued.
    pub(crate) timeout: Option<Duration>,
    /// That of all parts, with the shape of the first one.
    pub(crate) size: Size,
    pub(crate) at: Instant,
    pub(crate) deadline: Instant,
    /// Its receipt, if it has one.
    pub(crate) receipt: Option<&'a Receipt>,
}

impl LockedState<'_> {
    /// Queue all parts of a request, or none.
    ///
    /// # Errors
    /// Fails if the lane refuses requests, the queue is full, or the request could not be answered
    /// in time.
    pub(crate) fn enqueue(
        &mut self,
        arrival: &Arrival<'_>,
        parts: SmallVec<[RequestPart; 1]>,
    ) -> Result<SmallVec<[PendingReply; 1]>, SubmitError> {
        if self.state.refused.is_some() {
            // Lost runs of another lane may have ended.
            self.serve_again();
        }
        if let Some(why) = &self.state.refused {
            return Err(SubmitError::OutOfService(why.clone()));
        }
        self.check_room(arrival)?;
        let follow = arrival.receipt.map(Receipt::follow).unwrap_or_default();
        let mut waiting = SmallVec::with_capacity(parts.len());
        for RequestPart { inputs, optional, rows, shape_key } in parts {
            let (reply, wait) = ticket();
            self.state.policy.push(Entry {
                tenant: arrival.tenant.clone(),
                weight: arrival.weight,
                level: arrival.level,
                rows,
                bytes: NamedTensor::bytes_of(&inputs) + NamedTensor::bytes_of(&optional),
                shape_key,
                arrived: arrival.at,
                deadline: arrival.deadline,
                timeout: arrival.timeout.map(|timeout| arrival.at + timeout),
                item: Job { inputs, optional, reply, follow },
            });
            waiting.push(wait);
        }
        Ok(waiting)
    }

    /// A submitter dropped its request, or got an error for a part of it. Remove dead entries if
    /// there are enough of them. If the submitting task was going to lead, wake a worker.
    pub(crate) fn forget_dropped(&mut self, now: Instant) {
        self.state.dropped += 1;
        if self.state.dropped * DROPPED_SHARE >= self.state.policy.queued_requests() {
            self.sweep(now);
        }
        self.wake_worker(now);
    }

    /// Check whether the request may wait and can be answered in time. If not, count it as refused.
    fn check_room(&mut self, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        let mut checked = self.check(arrival);
        let may_sweep = self.state.swept_at.is_none_or(|at| arrival.at - at >= SWEEP_INTERVAL);
        if checked.is_err() && may_sweep {
            self.sweep(arrival.at);
            checked = self.check(arrival);
        }
        match &checked {
            Err(SubmitError::TooBusy { .. }) => self.lane.tally.recent().refused_early += 1,
            Err(_) => self.lane.tally.recent().refused += 1,
            Ok(()) => {}
        }
        checked
    }

    pub(super) fn check(&self, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        self.state.policy.has_room(arrival.tenant, arrival.level, &arrival.size)?;
        match self.expected(arrival) {
            Some(expected) if arrival.at + expected > arrival.deadline => {
                let left = arrival.deadline.saturating_duration_since(arrival.at);
                Err(SubmitError::TooBusy { expected, left })
            }
            _ => Ok(()),
        }
    }

    /// The expected time of the answer to a request that arrives now. None if nothing was learned
    /// yet, or if an instance would take it at once: then there is always room.
    fn expected(&self, arrival: &Arrival<'_>) -> Option<Duration> {
        let Arrival { tenant, weight, level, size: Size { rows, .. }, at, .. } = *arrival;
        let max = self.lane.max_batch_size();
        let until_idle = match self.state.running.first_end() {
            Some(end) if self.state.idle.is_empty() => end.saturating_duration_since(at),
            _ => Duration::ZERO,
        };
        let ahead = self.state.policy.rows_ahead(tenant, weight, level);
        let ahead = ahead + self.state.staged * max;
        if ahead == 0 && !self.state.idle.is_empty() {
            return None;
        }
        let batches = (ahead + rows).div_ceil(max).saturating_sub(1);
        let share = batches as f64 / self.lane.instances as f64;
        let full = self.state.service.of(max)?.mul_f64(share);
        let last = self.state.service.of((ahead + rows - 1) % max + 1)?;
        Some(until_idle + full + last)
    }

    /// Remove dead entries from the queue. Takes time for each queued request.
    fn sweep(&mut self, now: Instant) {
        (self.state.swept_at, self.state.dropped) = (Some(now), 0);
        let expired = self.state.policy.sweep(now, |job| job.reply.is_gone());
        self.lane.tally.recent().expired += expired.len() as u64;
        for entry in expired {
            entry.item.reply.answer(Err(SubmitError::Expired));
        }
    }
}
