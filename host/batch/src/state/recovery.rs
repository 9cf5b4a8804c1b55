//! Runs that do not end: telling them to, giving them up, and living without their instances.
//!
//! The changes that `watch` makes, and the return of an instance whose run was given up.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gristmill_core::Model;

use super::LockedState;
use crate::running::{Instance, Lost};
use crate::sync::{now, spawn};
use crate::upkeep::{LOST_RUNS_MAX, Refusal};

impl LockedState<'_> {
    /// Let the watching thread wait: until a run begins if nothing runs, else for `time`.
    pub(crate) fn wait_to_watch(mut self, time: Duration) -> Self {
        // In a closed lane the rest of the queue may be dropped and never run, so the thread must
        // not wait for it.
        let is_idle = self.state.running.is_empty() && !self.state.closed;
        self.state.unwatched = is_idle;
        let Self { lane, state } = self;
        let mut state =
            if is_idle { lane.begun.wait(state) } else { lane.begun.wait_timeout(state, time) };
        state.unwatched = false;
        Self { lane, state }
    }

    /// Whether no batch runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.running.is_empty()
    }

    /// Tell the runs that are due at `now` to end. Returns their number.
    pub(crate) fn tell_overdue(&mut self, now: Instant) -> usize {
        let overdue = self.state.running.tell_overdue(now);
        if overdue > 0 {
            self.lane.tally.recent().given_up += overdue as u64;
        }
        overdue
    }

    /// Give up a run that was told to end before `told_before` and goes on.
    pub(crate) fn lose(&mut self, told_before: Instant) -> Option<Lost> {
        let lost = self.state.running.lose(told_before)?;
        self.lane.tally.recent().lost += 1;
        self.state.unreplaced += 1;
        Some(lost)
    }

    /// Refuse all requests because of lost runs, until one of these ends.
    pub(crate) fn refuse_for_lost(&mut self, why: Refusal) {
        self.refuse(why);
    }

    /// The instance of a lost run cannot be replaced. Refuse all requests if the lane has none
    /// left, nor a run that may give one back, until the lost run ends.
    pub(crate) fn not_replaced(&mut self, why: Refusal) {
        if self.state.idle.is_empty() && self.state.running.is_empty() {
            self.refuse(why);
        }
    }

    /// Add an instance in place of a lost one. Returns it if the lost one is back already. Dropping
    /// it takes long, so that must happen outside the lane's lock.
    #[must_use]
    pub(crate) fn add_instance(&mut self, model: Box<dyn Model>) -> Option<Box<dyn Model>> {
        let Some(unreplaced) = self.state.unreplaced.checked_sub(1) else { return Some(model) };
        self.state.unreplaced = unreplaced;
        self.state.idle.push(Instance::new(model));
        self.serve_again();
        self.lane.freed.notify_one();
        self.wake_worker(now());
        None
    }

    /// Whether this worker must end, because a lost worker came back and there is one too many.
    pub(crate) fn leave_surplus(&mut self) -> bool {
        if self.state.surplus_workers == 0 {
            return false;
        }
        self.state.surplus_workers -= 1;
        self.wake_worker(now());
        true
    }

    /// Take back the instance of a lost run that has ended.
    pub(super) fn return_lost(&mut self, instance: Instance, led: bool) {
        self.lane.upkeep.lost_runs.fetch_sub(1, Ordering::Relaxed);
        self.state.surplus_workers += usize::from(!led);
        tracing::warn!(model = &*self.lane.name, "a run that was lost has ended after all");
        if self.state.unreplaced > 0 {
            self.state.unreplaced -= 1;
            instance.stop.lift();
            self.state.idle.push(instance);
            self.serve_again();
            self.lane.freed.notify_all();
            return;
        }
        // Another instance replaced it. Dropping it takes long, so that happens outside the lane's
        // lock.
        let _ = spawn(format!("drop-{}", self.lane.name), instance, |_| ());
    }

    /// Refuse no more requests if there is an instance and few enough runs of the file are lost.
    pub(super) fn serve_again(&mut self) {
        let lost = self.lane.upkeep.lost_runs.load(Ordering::Relaxed);
        let has_instance = !self.state.idle.is_empty() || !self.state.running.is_empty();
        if lost <= LOST_RUNS_MAX && has_instance {
            self.state.refused = None;
        }
    }

    /// Refuse all requests from now on, and answer those that are queued or staged.
    fn refuse(&mut self, why: Refusal) {
        let why = self.state.refused.get_or_insert(why).clone();
        while let Some(mut batch) = self.take(now()) {
            batch.refuse(&why);
            self.recycle(batch);
        }
        self.lane.freed.notify_all();
    }
}
