//! Faults that tests inject, because no disk fails on demand.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::StoreError;

/// The faults to come.
#[derive(Debug, Default)]
pub struct Faults {
    after_append: AtomicBool,
}

impl Faults {
    /// Make the next append fail after its documents were written, as if their folder could not be
    /// synced.
    pub fn fail_after_next_append(&self) {
        self.after_append.store(true, Ordering::Relaxed);
    }

    pub(crate) fn after_append(&self) -> Result<(), StoreError> {
        match self.after_append.swap(false, Ordering::Relaxed) {
            true => Err(StoreError::write(std::io::Error::other("/srv/secret: injected"))),
            false => Ok(()),
        }
    }
}
