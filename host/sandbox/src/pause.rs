//! The permits of a call that may wait for models.
//!
//! While it waits it has only the permit of a guest that rests, so that other calls run meanwhile.
//! Before it goes on it gets permits for a call again, before all calls that have not begun.
//!
//! Invariant: a call that waits for permits to go on holds none that a running call waits for. So
//! no two calls wait for one another.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::account::{Account, CallPermits, RestPermit, Resting};
use crate::error::CallError;
use crate::meter::Meter;
use crate::queue::{Half, Permit, Round, Wanted};

/// The permits of a call.
pub(crate) enum HeldPermits {
    /// It has them until it ends.
    Whole(CallPermits),
    /// It can give them back while it waits.
    Pausable(Arc<PausablePermits>),
}

/// The permits of a call that may wait for models.
pub(crate) struct PausablePermits {
    account: Account,
    pool: Arc<Semaphore>,
    resting: Resting,
    export: Round,
    /// None while it waits.
    held: Mutex<Option<CallPermits>>,
    _rest: RestPermit,
}

impl HeldPermits {
    /// The permit for long calls, if it has one.
    pub(crate) fn take_long(&mut self) -> Option<Permit> {
        match self {
            Self::Whole(permits) => permits.long.take(),
            Self::Pausable(permits) => permits.held.lock().as_mut()?.long.take(),
        }
    }

    /// The permits, if they can be given back meanwhile.
    pub(crate) fn pausable(&self) -> Option<Arc<PausablePermits>> {
        match self {
            Self::Whole(_) => None,
            Self::Pausable(permits) => Some(permits.clone()),
        }
    }
}

impl PausablePermits {
    /// The permits of a call that begins, and of its guest when it rests.
    pub(crate) fn new(
        account: &Account,
        (pool, resting): (&Arc<Semaphore>, &Resting),
        export: &Round,
        (held, rest): (CallPermits, RestPermit),
    ) -> Arc<Self> {
        Arc::new(Self {
            account: account.clone(),
            pool: pool.clone(),
            resting: resting.clone(),
            export: export.clone(),
            held: Mutex::new(Some(held)),
            _rest: rest,
        })
    }

    /// Whether the call waits. Then it needs no permit for long calls, but gets one before it goes
    /// on.
    pub(crate) fn is_paused(&self) -> bool {
        self.held.lock().is_none()
    }

    /// The call runs on the threads for long calls from now on.
    pub(crate) fn hold_long(&self, permit: Permit) {
        if let Some(held) = self.held.lock().as_mut() {
            held.long = Some(permit);
        }
    }

    /// The call waits from now on.
    pub(crate) fn pause(&self) {
        let held = self.held.lock().take();
        // Outside of the lock: other calls begin here.
        drop(held);
    }

    /// Wait until the call of this meter may go on.
    ///
    /// # Errors
    /// The server stops.
    pub(crate) async fn resume(&self, meter: &Meter) -> Result<(), CallError> {
        let is_long = meter.is_long();
        let wanted = Wanted { half: Half::Second, is_long, rests: false, latest: None };
        let (pool, resting) = (&self.pool, &self.resting);
        let (mut permits, _) = self.account.permits(wanted, &self.export, pool, resting).await?;
        // It may have moved meanwhile, or given this permit back while it waited for the pool.
        if meter.is_long() && permits.long.is_none() {
            permits.long = Some(self.account.queue.long_permit(&self.export).await?);
        }
        *self.held.lock() = Some(permits);
        Ok(())
    }
}
