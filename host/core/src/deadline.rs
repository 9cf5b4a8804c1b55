//! The end of a request's time.

use std::time::Instant;

/// The point in time after which no client waits for the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline at `instant`.
    pub fn at(instant: Instant) -> Self {
        Self(instant)
    }

    /// The instant itself.
    pub fn instant(self) -> Instant {
        self.0
    }
}
