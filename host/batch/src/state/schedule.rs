//! Scheduling: which thread and which instance run the next batch, and which waiting worker is
//! woken for it.
//!
//! `policy` decides which requests are in the batch and whether it is due.

use std::time::{Duration, Instant};

use super::{LaneState, LockedState};
use crate::assignment::{AssignedInstance, Assignment, Finished};
use crate::batch::Batch;
use crate::error::SubmitError;
use crate::policy::Due;
use crate::running::{Begun, Instance};
use crate::sync::now;

/// Batches shorter than this are run by the submitting task, if an instance is idle. Handing them
/// to a worker and back would double their cost. The time is far too short to hold up a thread of
/// the runtime.
pub(crate) const LED_BATCH_TIME_MAX: Duration = Duration::from_micros(100);

/// Maximum emptied batches that are kept.
const SPARE_MAX: usize = 8;

/// Which kind of thread runs a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Runner {
    Worker,
    /// A task that submits.
    Leader,
}

impl LockedState<'_> {
    /// Begin the next batch; none if none is due or no instance is idle.
    pub(crate) fn begin(&mut self, runner: Runner) -> Option<Assignment> {
        let now = now();
        if !self.has_free_instance(0) || self.state.policy.due(now) != Due::Now {
            return None;
        }
        let batch = self.take(now)?;
        let instance = self.state.idle.pop()?;
        self.state.gather.taken(batch.requests().len());
        let assignment = self.assign(batch, instance, runner, now);
        // `enqueue` woke only one worker. Wake another one for the rest.
        self.wake_worker(now);
        Some(assignment)
    }

    /// Whether a submitting task may run the queued requests itself.
    pub(crate) fn may_lead(&self) -> bool {
        let rows = self.state.policy.queued_rows().min(self.lane.max_batch_size());
        self.lane.leads
            && self.has_free_instance(0)
            && self.state.service.of(rows).is_some_and(|time| time < LED_BATCH_TIME_MAX)
    }

    /// Whether a task that may lead lets others join first.
    pub(crate) fn should_gather(&mut self, now: Instant) -> bool {
        self.state.gather.should_wait(now)
    }

    /// Learn from a run, once.
    pub(crate) fn learn(&mut self, finished: &mut Finished) {
        let Some(ran) = finished.ran.take() else { return };
        if ran.failed == 0 {
            let LaneState { policy, service, .. } = &mut *self.state;
            service.observe(finished.rows, ran.times.total());
            if let Some(key) = finished.shape_key {
                policy.learn(key, finished.rows, ran.times.total());
            }
        }
        if let Some(time) = ran.staging_time {
            self.learn_staging(time);
        }
        // A staged batch goes on at once.
        let LaneState { policy, service, idle, staged, .. } = &mut *self.state;
        finished.should_wait =
            *staged == 0 && idle.is_empty() && policy.should_wait_after(finished.rows, service);
    }

    /// Learn from a batch that was answered, and put its instance back.
    pub(super) fn complete(&mut self, mut finished: Finished) {
        self.learn(&mut finished);
        if finished.should_wait {
            let LaneState { policy, service, .. } = &mut *self.state;
            policy.wait_for_clients(now(), finished.rows, service);
        }
        self.put_back(finished.assigned);
        self.recycle(finished.batch);
    }

    /// Put the instance of a batch back, and leave answering the batch to another worker.
    pub(crate) fn hand_over(&mut self, finished: Finished) {
        self.put_back(finished.assigned);
        self.state.unanswered.push(finished.batch);
        self.wake_any_worker();
    }

    /// The next batch that another worker left to be answered.
    pub(crate) fn next_unanswered(&mut self) -> Option<Batch> {
        self.state.unanswered.pop()
    }

    /// Keep an emptied batch, to save allocations.
    pub(crate) fn recycle(&mut self, batch: Batch) {
        if self.state.spare.len() < SPARE_MAX {
            self.state.spare.push(batch);
        }
    }

    /// Wake a worker, if one waits, for a batch that can be run or staged.
    pub(crate) fn wake_worker(&mut self, now: Instant) {
        if self.has_waiting_worker() && self.has_work(now) {
            self.wake_any_worker();
        }
    }

    /// Wake all workers: the lane is closed and drained.
    pub(crate) fn wake_all_workers(&mut self) {
        self.lane.work.notify_all();
    }

    /// Whether a worker waits and was not woken yet.
    pub(crate) fn has_waiting_worker(&self) -> bool {
        self.state.waiting_workers > self.state.woken_workers
    }

    /// Let a worker wait until there may be work for it.
    pub(crate) fn wait_for_work(mut self) -> Self {
        let now = now();
        let next = self.work_at(0, now);
        if next.is_some_and(|at| at <= now) {
            // Work has come since the worker last looked.
            return self;
        }
        self.state.waiting_workers += 1;
        let Self { lane, mut state } = self;
        let mut state = match next {
            Some(at) => {
                state.timed = Some(state.timed.map_or(at, |timed| timed.min(at)));
                let mut state = lane.work.wait_timeout(state, at.saturating_duration_since(now));
                state.timed = None;
                state
            }
            None => lane.work.wait(state),
        };
        state.waiting_workers -= 1;
        state.woken_workers = state.woken_workers.saturating_sub(1);
        Self { lane, state }
    }

    /// Whether more instances are idle than staged batches and `reserved` workers will take.
    pub(super) fn has_free_instance(&self, reserved: usize) -> bool {
        self.state.idle.len() > self.state.staged + reserved
    }

    /// List the run of a batch, which begins now.
    pub(super) fn assign(
        &mut self,
        batch: Batch,
        instance: Instance,
        runner: Runner,
        now: Instant,
    ) -> Assignment {
        let led = runner == Runner::Leader;
        let until = now + self.state.service.of(batch.rows()).unwrap_or_default();
        let give_up_at = batch.last_deadline().unwrap_or(now) + self.state.policy.run_grace();
        if std::mem::take(&mut self.state.unwatched) {
            self.lane.begun.notify_one();
        }
        let begun = Begun { until, give_up_at, led, instance: &instance };
        let run = self.state.running.begin(begun);
        Assignment { batch, assigned: AssignedInstance { instance, run, led } }
    }

    /// Take the next batch off the queue, and answer the requests that are too late.
    pub(super) fn take(&mut self, now: Instant) -> Option<Batch> {
        let LaneState { policy, service, spare, idle, staged, .. } = &mut *self.state;
        if self.lane.sharing.has_ended() {
            policy.run_alone();
        }
        let mut batch = spare.pop().unwrap_or_default();
        let idle = idle.len().saturating_sub(*staged);
        policy.take(now, (service, idle), |job| job.reply.is_gone(), &mut batch.taken);
        if !batch.taken.expired.is_empty() {
            self.lane.tally.recent().expired += batch.taken.expired.len() as u64;
        }
        for entry in batch.taken.expired.drain(..) {
            entry.item.reply.answer(Err(SubmitError::Expired));
        }
        if batch.taken.batch.is_empty() {
            self.state.spare.push(batch);
            return None;
        }
        Some(batch)
    }

    fn put_back(&mut self, assigned: AssignedInstance) {
        let AssignedInstance { instance, run, led } = assigned;
        if self.state.running.end(run) {
            self.state.idle.push(instance);
            self.wake_staged();
        } else {
            self.return_lost(instance, led);
        }
    }

    /// Wake a worker, if one waits.
    fn wake_any_worker(&mut self) {
        if self.has_waiting_worker() {
            self.state.woken_workers += 1;
            self.lane.work.notify_one();
        }
    }

    /// Whether another worker is needed: there is work now, or there will be at a known time.
    fn has_work(&self, now: Instant) -> bool {
        // Each worker that was woken takes an instance, too.
        let at = self.work_at(self.state.woken_workers, now);
        at.is_some_and(|at| at <= now || self.state.timed.is_none_or(|timed| at < timed))
    }

    /// The earliest time at which a worker could run or stage a batch, if there is one. `reserved`
    /// instances belong to other workers.
    fn work_at(&self, reserved: usize, now: Instant) -> Option<Instant> {
        let free = self.has_free_instance(reserved);
        match self.state.policy.due(now) {
            Due::Now if free => Some(now),
            Due::At(at) if free => Some(at),
            _ => self.stage_at(now),
        }
    }
}
