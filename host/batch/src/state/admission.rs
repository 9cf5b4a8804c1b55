//! Requests on their way into the queue, and out of it if their submitters are gone.
//!
//! A request that could not be answered before its deadline is refused here and not queued.

use std::time::{Duration, Instant};

use gristmill_core::{Name, NamedTensor};
use smallvec::SmallVec;

use super::LockedState;
use crate::batch::Job;
use crate::error::SubmitError;
use crate::policy::{Entry, Size};
use crate::split::{Part, Parts};
use crate::ticket::{Waiting, ticket};

/// A full queue is searched for dead entries at most this often.
const SWEEP_INTERVAL: Duration = Duration::from_millis(10);

/// Up to one in so many of the queued requests may be dropped, and still count, before the queue is
/// searched.
const DROPPED_SHARE: usize = 8;

/// A request that arrives at the queue.
pub(crate) struct Arrival<'a> {
    pub(crate) tenant: &'a Name,
    pub(crate) weight: u32,
    pub(crate) level: usize,
    /// How long it may be queued.
    pub(crate) timeout: Option<Duration>,
    /// Of all its parts.
    pub(crate) size: Size,
    pub(crate) at: Instant,
    pub(crate) deadline: Instant,
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
        parts: Parts,
    ) -> Result<SmallVec<[Waiting; 1]>, SubmitError> {
        if let Some(why) = &self.state.refused {
            return Err(SubmitError::OutOfService(why.clone()));
        }
        self.admit(arrival)?;
        let mut waiting = SmallVec::with_capacity(parts.len());
        for Part { inputs, rows } in parts {
            let (reply, wait) = ticket();
            self.state.policy.push(Entry {
                tenant: arrival.tenant.clone(),
                weight: arrival.weight,
                level: arrival.level,
                rows,
                bytes: NamedTensor::bytes_of(&inputs),
                shape_key: arrival.size.shape_key,
                arrived: arrival.at,
                deadline: arrival.deadline,
                timeout: arrival.timeout.map(|timeout| arrival.at + timeout),
                item: Job { inputs, reply },
            });
            waiting.push(wait);
        }
        Ok(waiting)
    }

    /// A submitter dropped its request, or got an error for a part of it: take dead entries out
    /// once there are enough of them, and wake a worker where the submitting task was to lead.
    pub(crate) fn forget_dropped(&mut self, now: Instant) {
        self.state.dropped += 1;
        if self.state.dropped * DROPPED_SHARE >= self.state.policy.queued_requests() {
            self.sweep(now);
        }
        self.wake_worker(now);
    }

    /// Check whether the request may wait and can be answered in time; count it if not.
    fn admit(&mut self, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        let mut admitted = self.check(arrival);
        let may_sweep = self.state.swept_at.is_none_or(|at| arrival.at - at >= SWEEP_INTERVAL);
        if admitted.is_err() && may_sweep {
            self.sweep(arrival.at);
            admitted = self.check(arrival);
        }
        match &admitted {
            Err(SubmitError::TooBusy { .. }) => self.lane.tally.recent().refused_early += 1,
            Err(_) => self.lane.tally.recent().refused += 1,
            Ok(()) => {}
        }
        admitted
    }

    pub(super) fn check(&self, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        self.state.policy.admits(arrival.tenant, arrival.level, &arrival.size)?;
        match self.expected(arrival) {
            Some(expected) if arrival.at + expected > arrival.deadline => {
                Err(SubmitError::TooBusy { expected })
            }
            _ => Ok(()),
        }
    }

    /// When a request that arrives now is expected to be answered. None if nothing was learned yet,
    /// or if it would be served at once: then it is always worth trying.
    fn expected(&self, arrival: &Arrival<'_>) -> Option<Duration> {
        let Arrival { tenant, weight, level, size: Size { rows, .. }, at, .. } = *arrival;
        let max = self.lane.max_batch_size;
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

    /// Take dead entries out of the queue. Costs time for each queued request.
    fn sweep(&mut self, now: Instant) {
        (self.state.swept_at, self.state.dropped) = (Some(now), 0);
        let expired = self.state.policy.sweep(now, |job| job.reply.is_gone());
        self.lane.tally.recent().expired += expired.len() as u64;
        for entry in expired {
            entry.item.reply.answer(Err(SubmitError::Expired));
        }
    }
}
