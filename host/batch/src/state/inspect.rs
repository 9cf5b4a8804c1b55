//! Access for tests to a lane's state.
//!
//! Compiled only for tests, so that the fields stay private to `state`.

use std::time::{Duration, Instant};

use super::{Arrival, LockedState};
use crate::error::SubmitError;
use crate::job::Job;
use crate::policy::{Entry, Taken};
use crate::running::{Begun, Instance};
use crate::service_time::ServiceTime;

impl LockedState<'_> {
    pub(crate) fn observe(&mut self, rows: usize, time: Duration) {
        self.state.service.observe(rows, time);
    }

    pub(crate) fn forget_service_time(&mut self) {
        self.state.service = ServiceTime::default();
    }

    pub(crate) fn set_staging_time(&mut self, time: Duration) {
        self.state.staging_time = time;
    }

    pub(crate) fn staged(&self) -> usize {
        self.state.staged
    }

    pub(crate) fn idle_instances(&self) -> usize {
        self.state.idle.len()
    }

    /// The workers that wait and were not woken.
    pub(crate) fn waiting_workers(&self) -> usize {
        self.state.waiting_workers - self.state.woken_workers
    }

    pub(crate) fn queued_rows(&self) -> usize {
        self.state.policy.queued_rows()
    }

    pub(crate) fn push(&mut self, entry: Entry<Job>) {
        self.state.policy.push(entry);
    }

    pub(crate) fn would_take(&self, arrival: &Arrival<'_>) -> Result<(), SubmitError> {
        self.check(arrival)
    }

    /// Take the next batch at `now` and an idle instance for it. The instance is busy until the
    /// time that `end` returns. None if nothing is queued or no instance is idle.
    pub(crate) fn simulate(
        &mut self,
        now: Instant,
        end: impl Fn(usize) -> Instant,
    ) -> Option<Simulated> {
        if self.queued_rows() == 0 {
            return None;
        }
        let instance = self.state.idle.pop()?;
        let mut taken = Taken::default();
        let super::LaneState { policy, service, idle, .. } = &mut *self.state;
        let idle = idle.len() + 1;
        policy.take(now, (service, idle), |_| false, &mut taken);
        let end = end(taken.batch.iter().map(|entry| entry.rows).sum());
        let begun = Begun { until: end, give_up_at: end, led: false, instance: &instance };
        let run = self.state.running.begin(begun);
        Some(Simulated { end, run, instance, requests: taken.batch.len() })
    }

    /// A simulated run is over.
    pub(crate) fn end(&mut self, run: Simulated) {
        assert!(self.state.running.end(run.run));
        self.state.idle.push(run.instance);
    }
}

/// A run in simulated time.
pub(crate) struct Simulated {
    pub(crate) end: Instant,
    pub(crate) requests: usize,
    run: u64,
    instance: Instance,
}
