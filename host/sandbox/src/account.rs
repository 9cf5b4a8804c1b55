//! Accounts: the places and the memory that the calls of one owner share.

use std::sync::Arc;

use gristmill_core::{ByteBudget, Rate};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::error::{CallError, HostFault};
use crate::pace::Pace;
use crate::queue::{Kind, Place, Queue, Round, Wanted};

/// The most background calls that may run at the same time, for each core. All accounts for
/// background calls together must have no more places.
pub const BACKGROUND_CALLS_PER_CORE: usize = 2;

/// The places and the memory that the calls of one owner share. Clones share it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The places of calls, and the calls that wait for one.
    pub(crate) queue: Arc<Queue>,
    /// The places for calls that wait in WASI, for a clock.
    pub(crate) sleepers: Arc<Sleepers>,
    /// The places for guests that wait for another request.
    idle: Arc<Semaphore>,
    /// Of all calls of the owner together.
    pub(crate) pace: Arc<Pace>,
    /// Whether all calls run on the threads for long calls.
    pub(crate) is_background: bool,
    /// The budget that tensors, pictures and linear memory count against.
    pub(crate) bytes: Arc<ByteBudget>,
    /// The CPU time of all calls, in nanoseconds.
    cpu: Arc<Rate>,
}

/// The places for guests that stay after a call, shared by all owners.
#[derive(Clone, Debug)]
pub(crate) struct Resting {
    /// Guests that wait for the model of their request.
    pub(crate) waiting: Arc<Semaphore>,
    /// Guests that wait for another request.
    pub(crate) idle: Arc<Semaphore>,
}

/// The calls of one owner that sleep, and those that wait until they may. All of them keep their
/// instance, so some places are left for others.
#[derive(Debug)]
pub(crate) struct Sleepers {
    asleep: Arc<Semaphore>,
    all: Arc<Semaphore>,
    max: usize,
}

/// The places that a call holds until its instance is gone.
pub(crate) struct Places {
    _owner: Option<Place>,
    _pool: OwnedSemaphorePermit,
    /// Of a call that begins on the threads for long calls.
    pub(crate) long: Option<Place>,
}

/// The place of a guest that waits for the model of its request.
pub(crate) type RestPlace = (Place, OwnedSemaphorePermit);

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

    /// The rate of the CPU time of all calls, in nanoseconds. Calls are charged as they run, and
    /// also beyond its limit: the limit is for new requests.
    pub fn cpu(&self) -> &Arc<Rate> {
        &self.cpu
    }

    /// Wait for the owner's places, then for those in the pool that all owners share.
    pub(crate) async fn places(
        &self,
        wanted: Wanted,
        export: &Round,
        pool: &Arc<Semaphore>,
        resting: &Resting,
    ) -> Result<(Places, Option<RestPlace>), CallError> {
        let mut granted = self.queue.enter(wanted, export).await?;
        let owner = granted.take(Kind::Call);
        let mut long = granted.take(Kind::Long);
        let pool = shared_place(pool, &mut long).await?;
        let rest = match granted.take(Kind::Rest) {
            Some(place) => Some((place, shared_place(&resting.waiting, &mut long).await?)),
            None => None,
        };
        Ok((Places { _owner: owner, _pool: pool, long }, rest))
    }

    /// A place for an idle guest, if one is free.
    pub(crate) fn idle_place(&self, all: &Resting) -> Option<[OwnedSemaphorePermit; 2]> {
        let place = self.idle.clone().try_acquire_owned().ok()?;
        Some([place, all.idle.clone().try_acquire_owned().ok()?])
    }
}

/// Wait for a place that all owners share. If none is free, `long` is given back first: calls that
/// hold a place of the pool may be waiting for it.
async fn shared_place(
    places: &Arc<Semaphore>,
    long: &mut Option<Place>,
) -> Result<OwnedSemaphorePermit, CallError> {
    match places.clone().try_acquire_owned() {
        Err(TryAcquireError::NoPermits) => {
            *long = None;
            places.clone().acquire_owned().await.map_err(closed)
        }
        taken => taken.map_err(|_| CallError::Host(HostFault::Ended)),
    }
}

impl Sleepers {
    /// Those of an owner with so many places for calls.
    fn new(calls: usize) -> Self {
        let (asleep, max) = ((calls / 4).max(1), (calls * 3 / 4).max(1));
        let places = |count| Arc::new(Semaphore::new(count));
        Self { asleep: places(asleep), all: places(max), max }
    }

    /// Wait for a place for a call that sleeps.
    ///
    /// # Errors
    /// [`CallError::TooManyWait`], as the number of them.
    pub(crate) async fn place(&self) -> Result<[OwnedSemaphorePermit; 2], usize> {
        let all = self.all.clone().try_acquire_owned().map_err(|_| self.max)?;
        let asleep = self.asleep.clone().acquire_owned().await.map_err(|_| self.max)?;
        Ok([all, asleep])
    }
}

impl Resting {
    /// Places for so many guests of each kind.
    pub(crate) fn new(guests: usize) -> Self {
        let places = || Arc::new(Semaphore::new(guests));
        Self { waiting: places(), idle: places() }
    }
}

fn closed(error: AcquireError) -> CallError {
    CallError::Host(error.into())
}
