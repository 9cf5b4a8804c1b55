//! Copying a batch together while all instances are busy, so that it runs as soon as one is free.
//!
//! Only for a full batch, so that no request that could still join is left out, and only as late as
//! copying it allows.

use std::time::{Duration, Instant};

use super::LockedState;
use super::schedule::Runner;
use crate::assignment::Assignment;
use crate::batch::Batch;
use crate::sync::now;

/// Batches that take this long to be copied together are staged while the one before runs.
const STAGING_TIME_MIN: Duration = Duration::from_micros(100);

impl LockedState<'_> {
    /// Whether a worker is to stage the next batch now.
    pub(crate) fn may_stage(&self) -> bool {
        let now = now();
        self.stage_at(now).is_some_and(|at| at <= now)
    }

    /// Take the next batch off the queue to be staged.
    pub(crate) fn take_to_stage(&mut self) -> Option<Batch> {
        let batch = self.take(now())?;
        self.state.staged += 1;
        Some(batch)
    }

    /// Wait for an instance and begin a batch that was staged. None, and the batch is answered, if
    /// the lane refuses requests meanwhile.
    pub(crate) fn begin_staged(mut self, mut batch: Batch) -> (Self, Option<Assignment>) {
        loop {
            if let Some(why) = self.refusal() {
                batch.refuse(&why);
                self.state.staged -= 1;
                self.recycle(batch);
                return (self, None);
            }
            if let Some(instance) = self.state.idle.pop() {
                self.state.staged -= 1;
                let assignment = self.assign(batch, instance, Runner::Worker, now());
                return (self, Some(assignment));
            }
            let Self { lane, state } = self;
            self = Self { lane, state: lane.freed.wait(state) };
        }
    }

    /// Whether another worker has a batch for the next free instance, staged or almost.
    pub(crate) fn has_staged(&self) -> bool {
        self.state.staged > 0
    }

    /// An instance was put back: wake a worker that has a staged batch for it.
    pub(super) fn wake_staged(&mut self) {
        if self.has_staged() {
            self.lane.freed.notify_one();
        }
    }

    /// Learn from a batch that took so long to be copied together.
    pub(super) fn learn_staging(&mut self, time: Duration) {
        self.state.staging_time = (self.state.staging_time * 7 + time) / 8;
    }

    /// When to take the next batch although no instance is idle, if at all: it is full, and copying
    /// it together takes long enough. Not before it has to be, so that late requests can still
    /// join.
    pub(super) fn stage_at(&self, now: Instant) -> Option<Instant> {
        let (state, time) = (&self.state, self.state.staging_time);
        let worth_it = state.staged < self.lane.instances
            && state.idle.is_empty()
            && time >= STAGING_TIME_MIN
            && state.policy.queued_rows() >= self.lane.max_batch_size
            && state.policy.has_full_batch(now);
        let end = state.running.first_end().filter(|_| worth_it)?;
        end.checked_sub(time * 2)
    }
}
