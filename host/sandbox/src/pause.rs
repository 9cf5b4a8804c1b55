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

    /// The call runs on the threads for long calls from now on. If it waits just now, it needs no
    /// permit for that.
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

    /// Wait until the call may go on. `is_long` says that it runs on the threads for long calls.
    ///
    /// # Errors
    /// The server stops.
    pub(crate) async fn resume(&self, is_long: bool) -> Result<(), CallError> {
        let wanted = Wanted { half: Half::Second, is_long, rests: false, latest: None };
        let (pool, resting) = (&self.pool, &self.resting);
        let (permits, _) = self.account.permits(wanted, &self.export, pool, resting).await?;
        *self.held.lock() = Some(permits);
        Ok(())
    }
}
