//! A word of the caller's in the middle of a decoder.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use crate::work::Work;

/// How long a decoder may work between two checks.
const BETWEEN: Duration = Duration::from_micros(500);

/// After how many bytes of pixels it is time to read the clock. A row counts as [`ROW_BYTES`] more.
const READ_AFTER_BYTES: usize = 16 << 10;

/// A row of one pixel takes about as long as these bytes of a long one.
const ROW_BYTES: usize = 256;

/// Says when the next check is due, and makes it.
pub(super) struct Clock<'a> {
    work: Work<'a>,
    checked: Instant,
    /// Bytes of pixels since the clock was read.
    bytes: usize,
}

impl<'a> Clock<'a> {
    pub(super) fn new(work: Work<'a>) -> Self {
        Self { work, checked: Instant::now(), bytes: 0 }
    }

    /// A row of so many bytes is next: [look](Self::look), where enough of them were made.
    pub(super) fn look_before_row(&mut self, bytes: usize) {
        self.bytes += bytes + ROW_BYTES;
        if self.bytes >= READ_AFTER_BYTES {
            self.bytes = 0;
            self.look();
        }
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
