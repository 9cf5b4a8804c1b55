//! Accounts: the permits and the memory that the calls of one owner share.

use std::sync::{Arc, Weak};
use std::time::Instant;

use gristmill_core::{ByteBudget, Rate};
use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::error::{CallError, HostFault};
use crate::neighbours::Neighbours;
use crate::pace::Pace;
use crate::queue::{Kind, Permit, Queue, Round, Wanted};

/// Maximum background calls that may run at the same time, for each core. All accounts for
/// background calls together must have no more permits.
pub const BACKGROUND_CALLS_PER_CORE: usize = 2;

/// Maximum idle guests that make room for one more.
const MAKE_ROOM_MAX: usize = 8;

/// The permits and the memory that the calls of one owner share. Clones share it.
#[derive(Clone)]
pub struct Account {
    /// The permits of calls, and the calls that wait for one.
    pub(crate) queue: Arc<Queue>,
    /// The permits for calls that wait in WASI, for a clock.
    pub(crate) sleepers: Arc<Sleepers>,
    /// The guests that wait for another request.
    idle: Arc<OwnersIdle>,
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

/// The guests of one owner that wait for another request.
struct OwnersIdle {
    permits: Arc<Semaphore>,
    pipelines: Mutex<Vec<Weak<dyn StayingGuests>>>,
}

/// The guests of one pipeline that wait for another request.
pub(crate) trait StayingGuests: Send + Sync {
    /// Since when the oldest one is idle.
    fn oldest(&self) -> Option<Instant>;
    /// Drop the oldest one, unless that takes long. Returns the bytes that it held.
    fn drop_oldest(&self) -> Option<usize>;
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

/// The permits of a guest that waits for another request: among its owner's and among all.
pub(crate) type RestPermits = [OwnedSemaphorePermit; 2];

impl Account {
    /// The calls that run now.
    pub fn calls_under_way(&self) -> usize {
        self.queue.taken(Kind::Call)
    }

    /// An account of `calls` calls at a time, of which `long_calls` can be long ones and a quarter
    /// can sleep. Their memory counts against `bytes`.
    pub fn new(calls: usize, long_calls: usize, bytes: Arc<ByteBudget>) -> Self {
        Self {
            queue: Queue::new(calls, long_calls, calls),
            sleepers: Arc::new(Sleepers::new(calls)),
            idle: Arc::new(OwnersIdle::new(calls)),
            pace: Arc::default(),
            neighbours: Arc::default(),
            is_background: false,
            bytes,
            cpu: Arc::default(),
        }
    }

    /// The account with so many guests that may wait for models.
    pub fn with_resting(self, calls: usize, long_calls: usize, resting: usize) -> Self {
        Self { queue: Queue::new(calls, long_calls, resting), ..self }
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
        // First, because a guest that rests keeps it and needs one of the pool to go on.
        let rest = match granted.take(Kind::Rest) {
            Some(permit) => Some((permit, shared_permit(&resting.waiting, &mut long).await?)),
            None => None,
        };
        let pool = shared_permit(pool, &mut long).await?;
        Ok((CallPermits { _owner: owner, _pool: pool, long }, rest))
    }

    /// The owner's guests of one more pipeline.
    pub(crate) fn add_idle(&self, guests: Weak<dyn StayingGuests>) {
        let mut pipelines = self.idle.pipelines.lock();
        pipelines.retain(|guests| guests.strong_count() > 0);
        pipelines.push(guests);
    }

    /// A permit for an idle guest of `bytes`. If the owner has none left, or half of its memory is
    /// used, those that have been idle for the longest time make room. None if they do not.
    pub(crate) fn idle_permit(&self, bytes: usize, all: &Resting) -> Option<RestPermits> {
        let is_free = || {
            let permit = self.idle.permits.clone().try_acquire_owned().ok()?;
            Some([permit, all.idle.clone().try_acquire_owned().ok()?])
        };
        let mut freed = 0;
        for dropped in 0.. {
            let fits = freed >= bytes || !self.bytes.is_half_used();
            if fits && let Some(permits) = is_free() {
                return Some(permits);
            }
            if dropped == MAKE_ROOM_MAX {
                break;
            }
            freed += self.idle.drop_oldest()?;
        }
        None
    }

    /// Drop the idle guest that is the oldest. False if there is none that can be dropped at once.
    pub(crate) fn drop_oldest_idle(&self) -> bool {
        self.idle.drop_oldest().is_some()
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

impl OwnersIdle {
    fn new(guests: usize) -> Self {
        Self { permits: Arc::new(Semaphore::new(guests)), pipelines: Mutex::default() }
    }

    /// Drop the guest that has been idle for the longest time, unless that takes long. Returns the
    /// bytes that it held.
    fn drop_oldest(&self) -> Option<usize> {
        let pipelines: Vec<_> = self.pipelines.lock().iter().filter_map(Weak::upgrade).collect();
        let oldest = pipelines.iter().filter_map(|guests| Some((guests.oldest()?, guests)));
        oldest.min_by_key(|(since, _)| *since)?.1.drop_oldest()
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
