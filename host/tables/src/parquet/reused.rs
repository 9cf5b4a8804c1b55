//! Memory that is used again and again while a file is read.

use crate::error::{TableError, Work};

/// Is counted as its largest.
#[derive(Debug, Default)]
pub(super) struct Reused(usize);

impl Reused {
    /// Count what it takes more than ever before.
    pub(super) fn fit(&mut self, bytes: usize, work: &mut Work<'_>) -> Result<(), TableError> {
        if let Some(more @ 1..) = bytes.checked_sub(self.0) {
            (work.reserve)(more)?;
            self.0 = bytes;
        }
        Ok(())
    }
}
