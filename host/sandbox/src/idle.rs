//! Guests that stay after a call: for the other call of their request, or for later requests of
//! their tenant.
//!
//! Invariants:
//! - a guest that stays has its own permit, apart from the permits of calls that run, and its
//!   memory counts against its owner's budget;
//! - a guest with much memory is dropped on the threads for long calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::account::{Account, RestPermit, RestPermits, Resting, StayingGuests};
use crate::guest::Guest;

/// How the guests of a tenant are used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantReuse {
    /// Maximum calls that one instance serves.
    pub max_count: u32,
    /// The time after which an instance that serves no call is dropped.
    pub idle: Duration,
    /// Maximum instances of one plugin that are kept while they serve no call.
    pub max_idle: usize,
}

/// The guests of a pipeline that stay, for each core: as many as an owner's calls at a time, so
/// that calls which end together find them again.
const IDLE_PER_CORE: usize = 8;

/// A document can name at most so many.
const IDLE_MAX: usize = 64;

impl Default for TenantReuse {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let max_idle = (cores * IDLE_PER_CORE).min(IDLE_MAX);
        Self { max_count: 1000, idle: Duration::from_secs(10), max_idle }
    }
}

/// What becomes of a guest after a call that ended well, and where a call's guest comes from.
#[derive(Clone)]
pub(crate) enum Keep {
    /// Each call has a fresh guest, which is dropped.
    Never,
    /// It stays for the other call of its request. It may have been rewound before.
    ForRequest(Arc<OneGuest>, Option<Arc<IdleGuests>>),
    /// It is rewound, and stays for later calls. The first call of its request may have left it.
    Rewound(Option<Arc<OneGuest>>, Arc<IdleGuests>),
    /// It stays for later calls.
    ForTenant(Arc<IdleGuests>),
}

impl Keep {
    /// A guest for a call; none if a fresh one is needed.
    pub(crate) fn take(&self) -> Option<Guest> {
        match self {
            Self::Never => None,
            Self::ForRequest(one, rewound) => {
                let left = one.guest.lock().take();
                left.or_else(|| rewound.as_ref()?.take())
            }
            Self::Rewound(one, rewound) => {
                let left = one.as_ref().and_then(|one| one.guest.lock().take());
                left.or_else(|| rewound.take())
            }
            Self::ForTenant(idle) => idle.take(),
        }
    }

    /// Whether the guest of a first call waits for the second one.
    pub(crate) fn rests(&self) -> bool {
        matches!(self, Self::ForRequest(..))
    }

    /// The permit with which it waits.
    pub(crate) fn set_permit(&self, permit: RestPermit) {
        if let Self::ForRequest(one, _) = self {
            one.permit.lock().replace(permit);
        }
    }

    /// A call of the guest has ended well. Returns the guest if it does not stay.
    pub(crate) fn put(&self, mut guest: Guest) -> Option<Guest> {
        match self {
            Self::Never => Some(guest),
            Self::ForRequest(one, _) => {
                guest.end_call();
                one.guest.lock().replace(guest)
            }
            Self::Rewound(_, idle) => {
                guest.end_call();
                if idle.has_room_for_rewound() && guest.rewind() {
                    idle.put(guest)
                } else {
                    Some(guest)
                }
            }
            Self::ForTenant(idle) => {
                guest.end_call();
                idle.put(guest)
            }
        }
    }
}

/// The guest of one request, while the model runs.
pub(crate) struct OneGuest {
    guest: Mutex<Option<Guest>>,
    long: Handle,
    /// None until its first call begins.
    permit: Mutex<Option<RestPermit>>,
}

impl OneGuest {
    pub(crate) fn new(long: Handle) -> Self {
        Self { guest: Mutex::new(None), long, permit: Mutex::new(None) }
    }
}

impl Drop for OneGuest {
    fn drop(&mut self) {
        if let Some(guest) = self.guest.get_mut().take() {
            discard(guest, self.permit.get_mut().take(), &self.long);
        }
    }
}

/// The idle guests of one plugin in one pipeline.
pub(crate) struct IdleGuests {
    reuse: TenantReuse,
    idle: Mutex<VecDeque<Idle>>,
    account: Account,
    resting: Resting,
    long: Handle,
}

struct Idle {
    guest: Guest,
    since: Instant,
    permit: RestPermits,
}

impl IdleGuests {
    pub(crate) fn new(
        reuse: TenantReuse,
        account: Account,
        resting: Resting,
        long: Handle,
    ) -> Self {
        Self { reuse, idle: Mutex::default(), account, resting, long }
    }

    /// The guest that served a call last.
    fn take(&self) -> Option<Guest> {
        let Idle { guest, since, permit } = self.idle.lock().pop_back()?;
        if since.elapsed() < self.reuse.idle {
            return Some(guest);
        }
        discard(guest, permit, &self.long);
        None
    }

    /// Whether a guest that is rewound could stay. Such guests take at most half of the permits,
    /// because the others are of owners who asked for instances that stay.
    fn has_room_for_rewound(&self) -> bool {
        self.idle.lock().len() < self.reuse.max_idle
            && self.resting.has_idle_for_rewound()
            && !self.account.bytes.is_half_used()
    }

    /// Returns the guest if it does not stay.
    fn put(&self, mut guest: Guest) -> Option<Guest> {
        let is_spent = guest.calls() >= self.reuse.max_count || guest.is_unfit();
        if is_spent {
            return Some(guest);
        }
        let is_full = |idle: &VecDeque<Idle>| idle.len() >= self.reuse.max_idle;
        if is_full(&self.idle.lock()) {
            return Some(guest);
        }
        let Some(permit) = self.account.idle_permit(guest.held_bytes(), &self.resting) else {
            return Some(guest);
        };
        let mut idle = self.idle.lock();
        if is_full(&idle) {
            return Some(guest);
        }
        idle.push_back(Idle { guest, since: Instant::now(), permit });
        None
    }

    /// Drop the guests that have been idle for too long.
    pub(crate) fn drop_expired(&self) {
        let expired = {
            let mut idle = self.idle.lock();
            let is_old = |idle: &Idle| idle.since.elapsed() >= self.reuse.idle;
            let count = idle.iter().take_while(|idle| is_old(idle)).count();
            idle.drain(..count).collect::<Vec<_>>()
        };
        drop(expired);
    }
}

impl StayingGuests for IdleGuests {
    fn oldest(&self) -> Option<Instant> {
        self.idle.lock().front().map(|idle| idle.since)
    }

    fn drop_oldest(&self) -> Option<usize> {
        let oldest = self.idle.lock().pop_front_if(|oldest| !oldest.guest.is_large())?;
        Some(oldest.guest.held_bytes())
    }
}

impl Drop for IdleGuests {
    fn drop(&mut self) {
        // Together they may take long.
        let all = std::mem::take(self.idle.get_mut());
        if !all.is_empty() {
            self.long.spawn(async move { drop(all) });
        }
    }
}

/// Drop a guest and then give its permit back, away from the serving threads if it has much memory.
fn discard(guest: Guest, permit: impl Send + 'static, long: &Handle) {
    let is_large = guest.is_large();
    let discarding = move || {
        drop(guest);
        drop(permit);
    };
    if is_large {
        long.spawn(async move { discarding() });
    } else {
        discarding();
    }
}
