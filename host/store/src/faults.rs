//! Faults that tests inject, because no disk fails on demand.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::StoreError;

/// What is to fail.
#[derive(Debug, Default)]
pub struct Faults {
    after_append: AtomicBool,
}

impl Faults {
    /// Let the next append fail when its document is there already, as a folder does that cannot be
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
