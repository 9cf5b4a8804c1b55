//! Asking the caller, in the middle of a decoder, whether to go on.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use crate::work::Workspace;

/// The longest work of a decoder between two checks.
const BETWEEN: Duration = Duration::from_micros(500);

/// The clock is read after this many bytes of pixels. Each row counts as [`ROW_BYTES`] more.
const READ_AFTER_BYTES: usize = 16 << 10;

/// A row of one pixel takes about as long as this many bytes of a long row.
const ROW_BYTES: usize = 256;

/// Decides when the next check is due, and makes it.
pub(super) struct Clock<'a> {
    work: Workspace<'a>,
    checked: Instant,
    /// Bytes of pixels since the clock was read.
    bytes: usize,
}

impl<'a> Clock<'a> {
    pub(super) fn new(work: Workspace<'a>) -> Self {
        Self { work, checked: Instant::now(), bytes: 0 }
    }

    /// A row of so many bytes is next. [Poll](Self::poll) if enough bytes were made since the last
    /// time.
    pub(super) fn poll_before_row(&mut self, bytes: usize) {
        self.bytes += bytes + ROW_BYTES;
        if self.bytes >= READ_AFTER_BYTES {
            self.bytes = 0;
            self.poll();
        }
    }

    /// Check if it is time to. If the caller refuses, this panics, and [`decode`](super::decode)
    /// catches the panic, because some decoders cannot be ended by an error.
    pub(super) fn poll(&mut self) {
        if self.checked.elapsed() < BETWEEN {
            return;
        }
        if let Err(stopped) = (self.work.check)() {
            resume_unwind(Box::new(stopped));
        }
        self.checked = Instant::now();
    }
}
