//! Stores in a file of this server alone: one database file for each, in the data directory.
//!
//! In reading order: `tables` has the tables of the file and what changes in them, `values` the
//! transactions, `file` opens it, and opens it again after a fault, and `worker` has the two
//! threads of a store: one reads, one changes values. So a reader waits for no change.
//!
//! A change is in the memory of this process when it is answered. It is on the disk a second later
//! ([`FLUSH_INTERVAL`]), or at the orderly end of the server. After a crash the file has the values
//! of the last time that it was written.
//!
//! Invariants:
//! - a fault of a file is an error of calls of its store alone;
//! - the memory and the permit of a call are kept until its job is over;
//! - a tenant's jobs wait for at most one job of each other tenant in turn.

mod file;
mod tables;
mod values;
mod worker;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{Name, Turn};
use gristmill_sandbox::{Cleared, KeyPage, StoreCall, StoreFault, Swapped};
use tokio::sync::oneshot;
use tokio::time::timeout_at;

use self::file::File;
pub(crate) use self::tables::{Change, Key, OwnedSwap};
pub(crate) use self::values::WantedKeys;
use self::worker::Worker;

/// How often changes are written to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum changes of one job. The file reads a value that it replaces or forgets whole, of up to
/// 1 MiB, and other tenants' jobs wait for one of these.
const CHANGES_BY_JOB: usize = 16;

/// A store in a file.
pub(crate) struct Embedded {
    file: Arc<File>,
    reads: Worker,
    changes: Worker,
}

/// A call that gets no answer in time.
pub(crate) struct TooLate;

impl Embedded {
    /// The store `name` in the file at `path`, in which the values of each prefix take at most
    /// `max_bytes`. The file is opened on a thread of the store's.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn start(name: &Name, path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        let file = Arc::new(File::new(name.clone(), path, max_bytes));
        let reads = Worker::start(Duration::MAX, || {})?;
        let flushed = file.clone();
        let changes = Worker::start(FLUSH_INTERVAL, move || flushed.flush())?;
        let opened = file.clone();
        // A fault is in the log.
        changes.push(None, Box::new(move || drop(opened.with(|_| Ok(())))));
        Ok(Self { file, reads, changes })
    }

    /// The values of keys, in their order. After one that is longer than wanted come none.
    pub(crate) async fn values(
        &self,
        call: StoreCall,
        until: Instant,
        wanted: WantedKeys,
    ) -> Result<Result<Vec<Option<Bytes>>, StoreFault>, TooLate> {
        let read =
            move |file: &File| file.with(|database| values::read(database, &wanted, until))?;
        self.ask(&self.reads, Arc::new(call), until, read).await
    }

    /// A page of the keys that begin with a prefix, without it.
    pub(crate) async fn keys(
        &self,
        call: StoreCall,
        until: Instant,
        prefix: String,
        after: Option<String>,
    ) -> Result<Result<KeyPage, StoreFault>, TooLate> {
        let list = move |file: &File| {
            file.with(|database| values::keys(database, &prefix, after.as_deref()))
        };
        self.ask(&self.reads, Arc::new(call), until, list).await
    }

    /// Make changes, in jobs of some. Each job makes all of its changes or none. Returns how many
    /// changed a value.
    pub(crate) async fn change(
        &self,
        call: StoreCall,
        until: Instant,
        changes: Vec<Change>,
    ) -> Result<Result<usize, StoreFault>, TooLate> {
        let (call, mut changes, mut changed) = (Arc::new(call), changes.into_iter(), 0);
        loop {
            let next: Vec<_> = changes.by_ref().take(CHANGES_BY_JOB).collect();
            if next.is_empty() {
                return Ok(Ok(changed));
            }
            let change = move |file: &File| file.change(&next);
            match self.ask(&self.changes, call.clone(), until, change).await? {
                Ok(of_job) => changed += of_job,
                Err(fault) => return Ok(Err(fault)),
            }
        }
    }

    /// Add to a number, in one transaction. Returns the sum.
    pub(crate) async fn increment(
        &self,
        call: StoreCall,
        until: Instant,
        key: Key,
        delta: i64,
    ) -> Result<Result<i64, StoreFault>, TooLate> {
        let increment = move |file: &File| file.increment(&key, delta);
        self.ask(&self.changes, Arc::new(call), until, increment).await
    }

    /// Compare a value and set it, in one transaction.
    pub(crate) async fn swap(
        &self,
        call: StoreCall,
        until: Instant,
        swap: OwnedSwap,
    ) -> Result<Result<Swapped, StoreFault>, TooLate> {
        let swap = move |file: &File| file.swap(&swap);
        self.ask(&self.changes, Arc::new(call), until, swap).await
    }

    /// Forget values of a prefix, in one step of many.
    pub(crate) async fn clear(
        &self,
        call: StoreCall,
        until: Instant,
        prefix: String,
    ) -> Result<Result<Cleared, StoreFault>, TooLate> {
        let clear = move |file: &File| file.clear(&prefix);
        self.ask(&self.changes, Arc::new(call), until, clear).await
    }

    /// Write all changes to the disk.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let file = self.file.clone();
        self.changes.push(
            None,
            Box::new(move || {
                file.flush();
                // Nobody may wait any more.
                let _ = done.send(());
            }),
        );
        // It fails only if the thread panicked, which is in the log.
        let _ = flushed.await;
    }

    async fn ask<T: Send + 'static>(
        &self,
        worker: &Worker,
        call: Arc<StoreCall>,
        until: Instant,
        work: impl FnOnce(&File) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<Result<T, StoreFault>, TooLate> {
        let (done, answer) = oneshot::channel();
        let file = self.file.clone();
        let owner = call.owner().cloned();
        let job = move || {
            let turn = Turn::begin();
            let answer = (Instant::now() < until).then(|| work(&file));
            // Before the plugin goes on, which may have no CPU time left.
            call.charge(Duration::from_nanos(turn.took()));
            if let Some(answer) = answer {
                // Nobody may wait any more.
                let _ = done.send(answer);
            }
        };
        worker.push(owner, Box::new(job));
        match timeout_at(until.into(), answer).await {
            Ok(Ok(answer)) => Ok(answer),
            // The job panicked.
            Ok(Err(_)) if Instant::now() < until => Ok(Err(file::failed())),
            Ok(Err(_)) | Err(_) => Err(TooLate),
        }
    }
}

#[cfg(test)]
mod tests;
