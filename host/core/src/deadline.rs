//! When a request stops being worth anything.

use std::time::{Duration, Instant};

/// A point in time after which nobody waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline `timeout` from now.
    pub fn after(timeout: Duration) -> Self {
        let now = Instant::now();
        // An overflow means "as good as never": a day is longer than any request lives.
        Self(now.checked_add(timeout).unwrap_or(now + Duration::from_secs(86_400)))
    }

    /// The deadline at `instant`.
    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant itself.
    pub fn instant(self) -> Instant {
        self.0
    }

    /// Whether it has passed at `now`.
    pub fn expired(self, now: Instant) -> bool {
        self.0 <= now
    }
}
