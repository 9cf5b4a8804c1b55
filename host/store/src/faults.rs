//! Faults that tests inject, because no disk fails on demand.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::StoreError;

/// The faults to come.
#[derive(Debug, Default)]
pub struct Faults {
    after_append: AtomicBool,
    no_document: AtomicU64,
}

impl Faults {
    /// Make the next append fail after its documents were written, as if their folder could not be
    /// synced.
    pub fn fail_after_next_append(&self) {
        self.after_append.store(true, Ordering::Relaxed);
    }

    /// Let the local log's document `number` be one that the disk does not take. 0 ends that.
    pub fn refuse_document(&self, number: u64) {
        self.no_document.store(number, Ordering::Relaxed);
    }

    pub(crate) fn before_document(&self, number: u64) -> io::Result<()> {
        match self.no_document.load(Ordering::Relaxed) == number {
            true => Err(io::Error::other("injected")),
            false => Ok(()),
        }
    }

    pub(crate) fn after_append(&self) -> Result<(), StoreError> {
        match self.after_append.swap(false, Ordering::Relaxed) {
            true => Err(StoreError::write(io::Error::other("/srv/secret: injected"))),
            false => Ok(()),
        }
    }
}
