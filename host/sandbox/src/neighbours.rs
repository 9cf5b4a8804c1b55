//! Whether one owner has the serving threads for itself.
//!
//! The shares of `pace` keep room for the requests of others. While nobody else sends any, a move
//! to another thread only takes time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// An owner is alone if nobody else has sent a request for so long. Whoever sends one after that
/// may wait some tens of milliseconds for the calls that have begun.
const ALONE_AFTER: Duration = Duration::from_secs(10);

/// The owners of the latest requests: the last one, and when another one came before it.
#[derive(Debug)]
pub struct Neighbours {
    started: Instant,
    last: AtomicUsize,
    /// In nanoseconds since the start.
    changed: AtomicU64,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self { started: Instant::now(), last: AtomicUsize::new(0), changed: AtomicU64::new(0) }
    }
}

impl Neighbours {
    /// A request of this owner came at `now`.
    pub(crate) fn note(&self, owner: usize, now: Instant) {
        // While one owner is alone, nothing is written.
        if self.last.load(Ordering::Relaxed) != owner {
            self.changed.store(self.since_start(now), Ordering::Relaxed);
            self.last.store(owner, Ordering::Release);
        }
    }

    /// Whether all requests of the last ten seconds were of this owner.
    pub(crate) fn has_only(&self, owner: usize, now: Instant) -> bool {
        // In this order: the time belongs to this owner, or to a later one.
        let is_last = self.last.load(Ordering::Acquire) == owner;
        let alone_from = self.changed.load(Ordering::Relaxed) + ALONE_AFTER.as_nanos() as u64;
        is_last && self.since_start(now) >= alone_from
    }

    fn since_start(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_nanos() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_alone_ten_seconds_after_the_last_request_of_another() {
        let neighbours = Neighbours::default();
        let at = |hundredths: u64| neighbours.started + Duration::from_millis(10 * hundredths);
        assert!(!neighbours.has_only(1, at(5000)), "nobody has sent a request");
        neighbours.note(1, at(0));
        assert!(!neighbours.has_only(1, at(999)));
        assert!(neighbours.has_only(1, at(1000)));
        assert!(!neighbours.has_only(2, at(1000)));
        neighbours.note(1, at(1500));
        assert!(neighbours.has_only(1, at(1500)));
        neighbours.note(2, at(1600));
        assert!(!neighbours.has_only(1, at(1600)));
        neighbours.note(1, at(1700));
        assert!(!neighbours.has_only(1, at(2699)));
        assert!(neighbours.has_only(1, at(2700)));
    }
}
