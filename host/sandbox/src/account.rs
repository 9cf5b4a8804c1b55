//! Accounts: the places and the memory that the calls of one owner share.

use std::sync::Arc;

use gristmill_core::{ByteBudget, Rate};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::error::CallError;
use crate::pace::Pace;

/// The most background calls that may run at the same time, for each core. All accounts for
/// background calls together must have no more places.
pub const BACKGROUND_CALLS_PER_CORE: usize = 2;

/// The places and the memory that the calls of one owner share. Clones share it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The places for calls, which run or wait for a turn.
    places: Arc<Semaphore>,
    places_max: usize,
    /// The places for long calls that run. Further long calls wait and keep their instance.
    pub(crate) long_places: Arc<Semaphore>,
    /// The places for calls that wait in WASI, for a clock.
    pub(crate) waiting_places: Arc<Semaphore>,
    pub(crate) waiting_places_max: usize,
    /// The owner's share of [`Resting`].
    resting: Resting,
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

/// The places that a call holds until its instance is gone.
pub(crate) struct Places {
    _owner: OwnedSemaphorePermit,
    _pool: OwnedSemaphorePermit,
}

impl Account {
    /// The calls that run or wait for a turn now.
    pub fn calls_under_way(&self) -> usize {
        self.places_max.saturating_sub(self.places.available_permits())
    }

    /// An account of `calls` calls at a time, of which `long_calls` can be long ones and a quarter
    /// can wait for a clock. Their memory counts against `bytes`.
    pub fn new(calls: usize, long_calls: usize, bytes: Arc<ByteBudget>) -> Self {
        let waiting = (calls / 4).max(1);
        Self {
            places: Arc::new(Semaphore::new(calls)),
            places_max: calls,
            long_places: Arc::new(Semaphore::new(long_calls)),
            waiting_places: Arc::new(Semaphore::new(waiting)),
            waiting_places_max: waiting,
            resting: Resting::new(calls),
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

    /// Wait for one of the owner's places, then for one in the pool that all owners share.
    pub(crate) async fn places(&self, pool: &Arc<Semaphore>) -> Result<Places, CallError> {
        let owner = self.places.clone().acquire_owned().await.map_err(closed)?;
        let pool = pool.clone().acquire_owned().await.map_err(closed)?;
        Ok(Places { _owner: owner, _pool: pool })
    }

    /// Wait for a place for a guest that waits for its model.
    pub(crate) async fn waiting_place(
        &self,
        all: &Resting,
    ) -> Result<[OwnedSemaphorePermit; 2], CallError> {
        let own = self.resting.waiting.clone().acquire_owned().await.map_err(closed)?;
        Ok([own, all.waiting.clone().acquire_owned().await.map_err(closed)?])
    }

    /// A place for an idle guest, if one is free.
    pub(crate) fn idle_place(&self, all: &Resting) -> Option<[OwnedSemaphorePermit; 2]> {
        let own = self.resting.idle.clone().try_acquire_owned().ok()?;
        Some([own, all.idle.clone().try_acquire_owned().ok()?])
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
