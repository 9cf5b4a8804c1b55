//! A lane without models, threads and a clock: the same rules decide which requests share a batch
//! and who runs it, at times that the caller says. For predictions.
//!
//! Left out: copying a batch together ahead of its run, deadlines, priorities, and more than one
//! tenant or shape.

use std::time::{Duration, Instant};

use gristmill_core::Name;

use crate::config::LaneConfig;
use crate::policy::{Due, Entry, Gather, Policy, Taken};
use crate::service_time::ServiceTime;
use crate::state::LED_BATCH_TIME_MAX;
use crate::sync::now;

/// Longer than any rehearsal: no request expires.
const FOREVER: Duration = Duration::from_secs(1 << 32);

/// A lane in which nothing runs. Times are given since its begin.
#[derive(Debug)]
pub struct Rehearsal {
    begin: Instant,
    tenant: Name,
    max_batch_size: usize,
    leads: bool,
    policy: Policy<usize>,
    gather: Gather,
    service: ServiceTime,
    idle: usize,
    instances: usize,
    /// The tasks that let others go first.
    gathering: usize,
}

/// Whether the task that submitted a request runs the next batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// It does.
    Now,
    /// It lets other tasks go first, then says so ([`Rehearsal::gathered`]).
    AfterOthers,
    /// It does not.
    No,
}

impl Rehearsal {
    /// A lane with so many instances, whose requests are this tenant's.
    pub fn new(config: &LaneConfig, instances: usize, tenant: Name) -> Self {
        Self {
            begin: now(),
            tenant,
            max_batch_size: config.max_batch_size,
            leads: config.leads,
            policy: Policy::new(config.clone()),
            gather: Gather::default(),
            service: ServiceTime::default(),
            idle: instances,
            instances,
            gathering: 0,
        }
    }

    /// The instances that run a batch.
    pub fn busy(&self) -> usize {
        self.instances - self.idle
    }

    /// A request of so many rows comes; its number comes out with its batch.
    pub fn submit(&mut self, at: Duration, request: usize, rows: usize) -> Lead {
        let now = self.begin + at;
        self.policy.push(Entry {
            tenant: self.tenant.clone(),
            weight: 1,
            level: 0,
            rows,
            bytes: 0,
            shape_key: 0,
            arrived: now,
            deadline: now + FOREVER,
            timeout: None,
            item: request,
        });
        if !self.may_lead() {
            return Lead::No;
        }
        if !self.gather.should_wait(now) {
            return Lead::Now;
        }
        self.gathering += 1;
        Lead::AfterOthers
    }

    /// A task has let others go first.
    pub fn gathered(&mut self) {
        self.gathering -= 1;
    }

    /// The requests of the next batch for a task that submitted, if it may run one.
    pub fn take_for_leader(&mut self, at: Duration) -> Option<Vec<usize>> {
        if self.may_lead() { self.take(at) } else { None }
    }

    /// The requests of the next batch for a worker, if it may run one.
    pub fn take_for_worker(&mut self, at: Duration) -> Option<Vec<usize>> {
        if self.gathering > 0 { None } else { self.take(at) }
    }

    /// When a batch is due that is not due yet, if no other request comes.
    pub fn due_at(&self, at: Duration) -> Option<Duration> {
        match self.policy.due(self.begin + at) {
            Due::At(due) if self.idle > 0 => Some(due.saturating_duration_since(self.begin)),
            _ => None,
        }
    }

    /// A batch of so many rows has ended. Its instance is free, and may wait for its clients.
    pub fn ended(&mut self, at: Duration, rows: usize, took: Duration) {
        self.service.observe(rows, took);
        let waits = self.idle == 0 && self.policy.should_wait_after(rows, &self.service);
        if waits {
            self.policy.wait_for_clients(self.begin + at, rows, &self.service);
        }
        self.idle += 1;
    }

    fn may_lead(&self) -> bool {
        let rows = self.policy.queued_rows().min(self.max_batch_size);
        self.leads
            && self.idle > 0
            && self.service.of(rows).is_some_and(|time| time < LED_BATCH_TIME_MAX)
    }

    fn take(&mut self, at: Duration) -> Option<Vec<usize>> {
        let now = self.begin + at;
        if self.idle == 0 || self.policy.due(now) != Due::Now {
            return None;
        }
        let mut taken = Taken::default();
        self.policy.take(now, (&self.service, self.idle), |_| false, &mut taken);
        if taken.batch.is_empty() {
            return None;
        }
        self.gather.taken(taken.batch.len());
        self.idle -= 1;
        Some(taken.batch.into_iter().map(|entry| entry.item).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn batches_form_while_instances_are_busy() {
        let config = LaneConfig::new(4, 100);
        let mut lane = Rehearsal::new(&config, 1, "acme".parse().unwrap());
        assert_eq!(lane.submit(Duration::ZERO, 0, 1), Lead::No);
        assert_eq!(lane.take_for_worker(Duration::ZERO), Some(vec![0]));
        for request in 1..7 {
            lane.submit(MS, request, 1);
        }
        assert_eq!((lane.take_for_worker(MS), lane.busy()), (None, 1));
        lane.ended(2 * MS, 1, 2 * MS);
        // Further clients cannot fill the batch more.
        assert_eq!(lane.take_for_worker(2 * MS), Some(vec![1, 2, 3, 4]));
    }

    #[test]
    fn a_short_batch_is_led_after_others_had_a_chance_to_join() {
        let config = LaneConfig::new(4, 100);
        let mut lane = Rehearsal::new(&config, 1, "acme".parse().unwrap());
        lane.submit(Duration::ZERO, 0, 1);
        lane.take_for_worker(Duration::ZERO);
        lane.ended(MS / 100, 1, MS / 100);
        assert_eq!(lane.submit(MS, 1, 1), Lead::AfterOthers);
        assert_eq!(lane.take_for_worker(MS), None);
        lane.submit(MS, 2, 1);
        lane.gathered();
        assert_eq!(lane.take_for_leader(MS), Some(vec![1, 2]));
    }

    #[test]
    fn a_delay_is_told_and_kept() {
        let config = LaneConfig { max_queue_delay: MS, ..LaneConfig::new(4, 100) };
        let mut lane = Rehearsal::new(&config, 1, "acme".parse().unwrap());
        lane.submit(MS, 0, 1);
        assert_eq!((lane.due_at(MS), lane.take_for_worker(MS)), (Some(2 * MS), None));
        assert_eq!(lane.take_for_worker(2 * MS), Some(vec![0]));
    }
}
