//! Accounts: the permits and the memory that the calls of one owner share.

use std::sync::Arc;
use std::time::Instant;

use gristmill_core::{ByteBudget, Rate};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::error::{CallError, HostFault};
use crate::neighbours::Neighbours;
use crate::pace::Pace;
use crate::queue::{Kind, Permit, Queue, Round, Wanted};

/// Maximum background calls that may run at the same time, for each core. All accounts for
/// background calls together must have no more permits.
pub const BACKGROUND_CALLS_PER_CORE: usize = 2;

/// The permits and the memory that the calls of one owner share. Clones share it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The permits of calls, and the calls that wait for one.
    pub(crate) queue: Arc<Queue>,
    /// The permits for calls that wait in WASI, for a clock.
    pub(crate) sleepers: Arc<Sleepers>,
    /// The permits for guests that wait for another request.
    idle: Arc<Semaphore>,
    /// Of all calls of the owner together.
    pub(crate) pace: Arc<Pace>,
    /// The owners whose requests are served beside this one's.
    neighbours: Arc<Neighbours>,
    /// Whether all calls run on the threads for long calls.
    pub(crate) is_background: bool,
    /// The budget that tensors, images and linear memory count against.
    pub(crate) bytes: Arc<ByteBudget>,
    /// The CPU time of all calls, in nanoseconds.
    cpu: Arc<Rate>,
}

/// The permits for guests that stay after a call, shared by all owners.
#[derive(Clone, Debug)]
pub(crate) struct Resting {
    /// Guests that wait for the model of their request.
    pub(crate) waiting: Arc<Semaphore>,
    /// Guests that wait for another request.
    pub(crate) idle: Arc<Semaphore>,
    /// The most of either.
    max: usize,
}

/// The calls of one owner that sleep, and those that wait until they may. All of them keep their
/// instance, so some permits are left for others.
#[derive(Debug)]
pub(crate) struct Sleepers {
    asleep: Arc<Semaphore>,
    all: Arc<Semaphore>,
    max: usize,
}

/// The permits that a call holds until its instance is gone.
pub(crate) struct CallPermits {
    _owner: Option<Permit>,
    _pool: OwnedSemaphorePermit,
    /// Of a call that begins on the threads for long calls.
    pub(crate) long: Option<Permit>,
}

/// The permit of a guest that waits for the model of its request.
pub(crate) type RestPermit = (Permit, OwnedSemaphorePermit);

impl Account {
    /// The calls that run now.
    pub fn calls_under_way(&self) -> usize {
        self.queue.taken(Kind::Call)
    }

    /// An account of `calls` calls at a time, of which `long_calls` can be long ones and a quarter
    /// can sleep. Their memory counts against `bytes`.
    pub fn new(calls: usize, long_calls: usize, bytes: Arc<ByteBudget>) -> Self {
        Self {
            queue: Queue::new(calls, long_calls),
            sleepers: Arc::new(Sleepers::new(calls)),
            idle: Arc::new(Semaphore::new(calls)),
            pace: Arc::default(),
            neighbours: Arc::default(),
            is_background: false,
            bytes,
            cpu: Arc::default(),
        }
    }

    /// An account of `calls` calls at a time that take no time from the serving threads: they run
    /// on the threads for long calls. Their memory counts against `bytes`.
    pub fn background(calls: usize, bytes: Arc<ByteBudget>) -> Self {
        Self { is_background: true, ..Self::new(calls, calls, bytes) }
    }

    /// The account as one of these owners.
    pub fn among(self, neighbours: &Arc<Neighbours>) -> Self {
        Self { neighbours: neighbours.clone(), ..self }
    }

    /// A request of the owner came at `now`, or goes on, also one that calls no plugin.
    pub fn note_request(&self, now: Instant) {
        if !self.is_background {
            self.neighbours.note(self.number(), now);
        }
    }

    /// Whether nobody else sends requests.
    pub(crate) fn is_alone(&self, now: Instant) -> bool {
        self.neighbours.has_only(self.number(), now)
    }

    fn number(&self) -> usize {
        Arc::as_ptr(&self.pace).addr()
    }

    /// The rate of the CPU time of all calls, in nanoseconds. Calls are charged as they run, and
    /// also beyond its limit: the limit is for new requests.
    pub fn cpu(&self) -> &Arc<Rate> {
        &self.cpu
    }

    /// Wait for the owner's permits, then for those in the pool that all owners share.
    pub(crate) async fn permits(
        &self,
        wanted: Wanted,
        export: &Round,
        pool: &Arc<Semaphore>,
        resting: &Resting,
    ) -> Result<(CallPermits, Option<RestPermit>), CallError> {
        let mut granted = self.queue.enter(wanted, export).await?;
        let owner = granted.take(Kind::Call);
        let mut long = granted.take(Kind::Long);
        let pool = shared_permit(pool, &mut long).await?;
        let rest = match granted.take(Kind::Rest) {
            Some(permit) => Some((permit, shared_permit(&resting.waiting, &mut long).await?)),
            None => None,
        };
        Ok((CallPermits { _owner: owner, _pool: pool, long }, rest))
    }

    /// A permit for an idle guest, if one is free.
    pub(crate) fn idle_permit(&self, all: &Resting) -> Option<[OwnedSemaphorePermit; 2]> {
        let permit = self.idle.clone().try_acquire_owned().ok()?;
        Some([permit, all.idle.clone().try_acquire_owned().ok()?])
    }
}

/// Wait for a permit that all owners share. If none is free, `long` is given back first: calls that
/// hold a permit of the pool may be waiting for it.
async fn shared_permit(
    permits: &Arc<Semaphore>,
    long: &mut Option<Permit>,
) -> Result<OwnedSemaphorePermit, CallError> {
    match permits.clone().try_acquire_owned() {
        Err(TryAcquireError::NoPermits) => {
            *long = None;
            permits.clone().acquire_owned().await.map_err(closed)
        }
        taken => taken.map_err(|_| CallError::Host(HostFault::Ended)),
    }
}

impl Sleepers {
    /// Those of an owner with so many permits for calls.
    fn new(calls: usize) -> Self {
        let (asleep, max) = ((calls / 4).max(1), (calls * 3 / 4).max(1));
        let permits = |count| Arc::new(Semaphore::new(count));
        Self { asleep: permits(asleep), all: permits(max), max }
    }

    /// Wait for a permit for a call that sleeps.
    ///
    /// # Errors
    /// [`CallError::TooManyWait`], as the number of them.
    pub(crate) async fn permit(&self) -> Result<[OwnedSemaphorePermit; 2], usize> {
        let all = self.all.clone().try_acquire_owned().map_err(|_| self.max)?;
        let asleep = self.asleep.clone().acquire_owned().await.map_err(|_| self.max)?;
        Ok([all, asleep])
    }
}

impl Resting {
    /// Permits for so many guests of each kind.
    pub(crate) fn new(guests: usize) -> Self {
        let permits = || Arc::new(Semaphore::new(guests));
        Self { waiting: permits(), idle: permits(), max: guests }
    }

    /// Whether fewer than half of the guests that may be idle are.
    pub(crate) fn has_idle_for_rewound(&self) -> bool {
        self.idle.available_permits() > self.max / 2
    }
}

fn closed(error: AcquireError) -> CallError {
    CallError::Host(error.into())
}
