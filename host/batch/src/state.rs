//! The state that the tasks and threads of a lane share: the queue, the instances, and the waiters.
//!
//! [`LaneShared::lock`] gives a [`LockedState`]; each change of the state is one of its methods,
//! which also wakes the threads that can go on after the change. `arrival` puts requests into the
//! queue, `schedule` gives batches to instances, `staging` prepares batches ahead, `recovery` deals
//! with runs that do not end.
//!
//! The wake-up protocol, which `lane::tests::orders` runs in many orders:
//! - a worker without work waits for `work`. Each change that makes a batch runnable wakes one
//!   worker, unless enough workers were woken already (`wake_worker`); a worker that takes a batch
//!   wakes the next one if there is more;
//! - a worker with a staged batch waits for `freed`, which each instance that is put back signals;
//! - the watching thread waits for `begun` while nothing runs.
//!
//! Invariants: an instance is in `idle`, in an assignment or lost; the thread that takes one puts
//! it back. `woken_workers` is at most `waiting_workers`.

mod arrival;
#[cfg(test)]
mod inspect;
mod recovery;
mod schedule;
mod staging;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{BufferPool, Model, Name};

use crate::assignment::Finished;
use crate::batch::Batch;
use crate::config::LaneConfig;
use crate::job::Job;
use crate::policy::{Gather, Policy, ShapeKeys};
use crate::running::{Instance, RunningBatches};
use crate::service_time::ServiceTime;
use crate::sharing::Sharing;
use crate::stager::Stager;
use crate::statistics::LaneStatistics;
use crate::sync::{Condvar, Guard, Mutex, now};
use crate::tally::Tally;
use crate::upkeep::{Refusal, Upkeep};

pub(crate) use arrival::Arrival;
#[cfg(test)]
pub(crate) use inspect::Simulated;
pub(crate) use schedule::{LED_BATCH_TIME_MAX, Runner};

/// The state that the tasks and threads of a lane share.
pub(crate) struct LaneShared {
    pub(crate) name: Arc<str>,
    pub(crate) stager: Stager,
    pub(crate) sharing: Sharing,
    pub(crate) instances: usize,
    pub(crate) upkeep: Upkeep,
    /// A separate lock, so that counting never waits for the queue. It is locked alone, or after
    /// `state`.
    pub(crate) tally: Tally,
    /// The time after which a run that was told to end is lost.
    pub(crate) lost_after: Duration,
    max_batch_size: usize,
    pub(crate) shape_keys: ShapeKeys,
    /// Whether submitting tasks may run short batches themselves.
    leads: bool,
    state: Mutex<LaneState>,
    /// Signalled when there may be work for a waiting worker.
    work: Condvar,
    /// Signalled when an instance is free for a staged batch.
    freed: Condvar,
    /// Signalled when a run begins while the watching thread waits for one, and when the lane is
    /// closed.
    begun: Condvar,
}

struct LaneState {
    policy: Policy<Job>,
    service: ServiceTime,
    gather: Gather,
    /// Idle instances.
    idle: Vec<Instance>,
    running: RunningBatches,
    /// Whether the watching thread waits for a run to begin.
    unwatched: bool,
    /// The number of workers that are not needed any more, because lost ones came back.
    surplus_workers: usize,
    /// Why requests are refused, if they are.
    refused: Option<Refusal>,
    /// The number of lost runs whose instances no other replaced. They are taken back when the runs
    /// end.
    unreplaced: usize,
    /// The number of batches that are being staged or wait staged for an instance.
    staged: usize,
    /// How long it takes to copy a batch together: an average in which recent batches weigh more.
    staging_time: Duration,
    /// Batches that have run and wait for any free worker to answer them.
    unanswered: Vec<Batch>,
    /// The earliest time at which a waiting worker wakes up by itself.
    timed: Option<Instant>,
    swept_at: Option<Instant>,
    /// The number of requests dropped since dead entries were last removed from the queue.
    dropped: usize,
    closed: bool,
    waiting_workers: usize,
    /// The number of waiting workers that were woken and have not started yet.
    woken_workers: usize,
    /// Emptied batches, kept to save allocations.
    spare: Vec<Batch>,
}

/// The state of a lane while a thread holds its lock.
pub(crate) struct LockedState<'a> {
    lane: &'a LaneShared,
    state: Guard<'a, LaneState>,
}

/// The parts of a lane's shared state.
pub(crate) struct SharedParts<'a> {
    pub(crate) name: &'a str,
    pub(crate) instances: Vec<Box<dyn Model>>,
    pub(crate) config: &'a LaneConfig,
    pub(crate) pool: BufferPool,
    pub(crate) upkeep: Upkeep,
}

impl LaneShared {
    pub(crate) fn new(parts: SharedParts<'_>) -> Self {
        let SharedParts { name, instances, config, pool, upkeep } = parts;
        let count = instances.len();
        let name: Arc<str> = name.into();
        let state = LaneState {
            policy: Policy::new(config.clone()),
            service: ServiceTime::default(),
            gather: Gather::default(),
            idle: instances.into_iter().map(Instance::new).collect(),
            running: RunningBatches::default(),
            unwatched: false,
            surplus_workers: 0,
            refused: None,
            unreplaced: 0,
            staged: 0,
            staging_time: Duration::ZERO,
            unanswered: Vec::new(),
            timed: None,
            swept_at: None,
            dropped: 0,
            closed: false,
            waiting_workers: 0,
            woken_workers: 0,
            spare: Vec::new(),
        };
        Self {
            sharing: Sharing::new(name.clone(), config),
            name,
            stager: Stager {
                pool,
                sizes: config.allowed_batch_sizes.clone(),
                padding: config.padding.clone(),
            },
            instances: count,
            upkeep,
            tally: Tally::default(),
            lost_after: config.lost_after,
            max_batch_size: config.max_batch_size,
            shape_keys: ShapeKeys::default(),
            leads: config.leads,
            state: Mutex::new(state),
            work: Condvar::default(),
            freed: Condvar::default(),
            begun: Condvar::default(),
        }
    }

    /// Maximum rows of several requests in a batch.
    fn max_batch_size(&self) -> usize {
        if self.sharing.has_ended() { 1 } else { self.max_batch_size }
    }

    pub(crate) fn lock(&self) -> LockedState<'_> {
        LockedState { lane: self, state: self.state.lock() }
    }

    /// Answer the requests of a batch, then put its instance back. For short batches this is the
    /// only time that the lock is taken for a batch. That matters, because submitters often hold
    /// the lock.
    pub(crate) fn answer(&self, mut finished: Finished) -> LockedState<'_> {
        finished.batch.answer();
        let mut state = self.lock();
        state.complete(finished);
        state
    }

    /// All figures, including the current ones of the queue.
    pub(crate) fn statistics(&self) -> LaneStatistics {
        let locked = self.lock();
        let LaneState { policy, running, service, idle, .. } = &*locked.state;
        let (queued_rows, running, idle) = (policy.queued_rows(), running.len(), idle.len());
        let (oldest, service_time) = (policy.oldest(), service.line());
        drop(locked);
        let age = |oldest| now().saturating_duration_since(oldest);
        let queue_age = oldest.map(age).unwrap_or_default();
        let counted = self.tally.read();
        LaneStatistics { queued_rows, queue_age, running, idle, service_time, ..counted }
    }

    /// Forget the tenants that are not to be kept, except those with queued requests.
    pub(crate) fn retain_tenants(&self, keep: impl Fn(&Name) -> bool) {
        self.lock().state.policy.retain_tenants(&keep);
        self.tally.retain_tenants(keep);
    }
}

impl LockedState<'_> {
    /// Why requests are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        self.state.refused.clone()
    }

    /// Close the lane: no request comes any more, so no batch waits for one.
    pub(crate) fn close(&mut self) {
        self.state.closed = true;
        self.state.policy.close();
        self.lane.work.notify_all();
        self.lane.begun.notify_all();
    }

    /// Apply other settings. They may make a batch due earlier.
    pub(crate) fn configure(&mut self, config: &LaneConfig, now: Instant) {
        if self.state.policy.configure(config, now) {
            self.lane.work.notify_all();
        }
    }

    /// Whether the lane is closed and its queue empty.
    pub(crate) fn is_drained(&self) -> bool {
        self.state.closed && self.state.policy.queued_rows() == 0
    }
}
