//! A word of the caller's in the middle of a decoder.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use crate::Work;

/// How long a decoder may work between two checks.
const BETWEEN: Duration = Duration::from_micros(500);

/// Says when the next check is due, and makes it.
pub(super) struct Clock<'a> {
    work: Work<'a>,
    checked: Instant,
}

impl<'a> Clock<'a> {
    pub(super) fn new(work: Work<'a>) -> Self {
        Self { work, checked: Instant::now() }
    }

    /// Check, where it is time to. Where the caller says stop, the decoder is unwound, up to
    /// [`decode`](super::decode): some decoders take no error for an answer.
    pub(super) fn look(&mut self) {
        if self.checked.elapsed() < BETWEEN {
            return;
        }
        if let Err(stopped) = (self.work.check)() {
            resume_unwind(Box::new(stopped));
        }
        self.checked = Instant::now();
    }
}
