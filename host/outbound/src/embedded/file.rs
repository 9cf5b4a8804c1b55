//! The file of one embedded store, which is opened again after a fault.
//!
//! Invariant: nothing that the file has, or that reading it does, ends more than the call that
//! reads. Texts for plugins name no path.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gristmill_core::Name;
use gristmill_sandbox::{Cleared, StoreFault, Swapped};
use parking_lot::Mutex;
use redb::{Builder, Database, Error};

use super::tables::{Change, Key, OwnedSwap};
use super::values::{self, Written};

/// The memory for parts of a file. The kernel has more of it.
const CACHE_BYTES: usize = 16 << 20;

/// Maximum bytes that changes write between two flushes: the file has no place of older values
/// again before a flush.
const UNFLUSHED_BYTES_MAX: u64 = 256 << 20;

/// The time between two tries to open a file.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A store's file.
pub(super) struct File {
    store: Name,
    path: PathBuf,
    /// Maximum bytes of the values of each prefix.
    max_bytes: u64,
    state: Mutex<FileState>,
    /// The bytes that changes have written since the last flush; 0 if there is nothing to flush.
    unflushed_bytes: AtomicU64,
    /// The prefix with which the next flush begins to forget values.
    next_prefix: Mutex<String>,
}

enum FileState {
    Open(Arc<Database>),
    /// It is not tried before this time.
    Closed(Option<Instant>),
}

impl File {
    /// A file, which is not opened yet.
    pub(super) fn new(store: Name, path: PathBuf, max_bytes: u64) -> Self {
        let state = Mutex::new(FileState::Closed(None));
        // What a file has from before may have ended: the first flush forgets it.
        let unflushed_bytes = AtomicU64::new(u64::from(path.exists()));
        Self { store, path, max_bytes, state, unflushed_bytes, next_prefix: Mutex::default() }
    }

    /// Do `work` with the database. After a fault it is opened anew the next time.
    pub(super) fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, Error>,
    ) -> Result<T, StoreFault> {
        let database = self.database()?;
        let done = guarded(|| work(&database));
        done.map_err(|error| {
            self.note(&error);
            // The other thread may still use the database. It has the file until then.
            let mut state = self.state.lock();
            if matches!(&*state, FileState::Open(open) if Arc::ptr_eq(open, &database)) {
                *state = FileState::Closed(Some(Instant::now() + RETRY_INTERVAL));
            }
            failed()
        })
    }

    /// Make these changes, all or none. Returns how many of them changed a value.
    pub(super) fn change(&self, changes: &[Change]) -> Result<usize, StoreFault> {
        self.write(|database| values::change(database, changes, self.max_bytes))
    }

    /// Add to a number.
    pub(super) fn increment(&self, key: &Key, delta: i64) -> Result<i64, StoreFault> {
        self.write(|database| values::increment(database, key, delta, self.max_bytes))
    }

    /// Compare a value and set it.
    pub(super) fn swap(&self, swap: &OwnedSwap) -> Result<Swapped, StoreFault> {
        self.write(|database| values::swap(database, swap, self.max_bytes))
    }

    /// Forget values of a prefix, in one step of many.
    pub(super) fn clear(&self, prefix: &str) -> Result<Cleared, StoreFault> {
        self.write(|database| values::clear(database, prefix))
    }

    fn write<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<Written<T>, Error>,
    ) -> Result<T, StoreFault> {
        let Written { outcome, bytes } = self.with(work)?;
        let before = self.unflushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > UNFLUSHED_BYTES_MAX {
            self.flush();
        }
        outcome
    }

    /// Write the changes so far to the disk, and forget values whose time has passed.
    pub(super) fn flush(&self) {
        if self.unflushed_bytes.swap(0, Ordering::Relaxed) == 0 {
            return;
        }
        // After a fault the file is opened anew, without these changes.
        let mut next = self.next_prefix.lock();
        let has_more = self.with(|database| values::flush(database, &mut next)).unwrap_or(false);
        self.unflushed_bytes.store(u64::from(has_more), Ordering::Relaxed);
    }

    fn database(&self) -> Result<Arc<Database>, StoreFault> {
        let mut state = self.state.lock();
        let retry_at = match &*state {
            FileState::Open(database) => return Ok(database.clone()),
            FileState::Closed(retry_at) => *retry_at,
        };
        let now = Instant::now();
        if retry_at.is_some_and(|retry_at| now < retry_at) {
            return Err(failed());
        }
        match guarded(|| self.open()) {
            Ok(database) => {
                let database = Arc::new(database);
                *state = FileState::Open(database.clone());
                Ok(database)
            }
            Err(error) => {
                self.note(&error);
                *state = FileState::Closed(Some(now + RETRY_INTERVAL));
                Err(failed())
            }
        }
    }

    fn open(&self) -> Result<Database, Error> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let database = Builder::new().set_cache_size(CACHE_BYTES).create(&self.path)?;
        values::prepare(&database)?;
        Ok(database)
    }

    fn note(&self, error: &Fault) {
        let (store, path) = (self.store.as_str(), self.path.display());
        tracing::error!(store, %path, %error, "the file of an embedded store cannot be used");
    }
}

/// What a file or its parts did.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Database(Error),
    #[error("the database panicked: the file may be damaged")]
    Panicked,
}

/// The outcome of work on a database. A damaged file can make it panic.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Fault> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(Fault::Database),
        Err(_) => Err(Fault::Panicked),
    }
}

/// What a plugin is told.
pub(super) fn failed() -> StoreFault {
    StoreFault::unavailable("its file cannot be read or written; the server's log says why")
}
