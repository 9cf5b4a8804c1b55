//! Blobs and the release log. The only crate that names `object_store`.
//!
//! Blobs are immutable and named by their SHA-256. The log is a sequence of numbered documents,
//! each written with put-if-absent, the one primitive that a local directory and every object store
//! have. Refuses to know what a release means: a document is bytes.
//!
//! A store is a folder that one server has for itself, or is [shared](Store::open_shared) by
//! several servers, at a `url`. What a shared one does in another way is in `shared`, with the
//! local copies of its blobs (`cache`) and the `leases` of the servers. `simulation` is a shared
//! one in memory, for tests.
//!
//! Invariants:
//! - content that [`Store`] acknowledged is on stable storage: files are synced before a call
//!   returns, and object stores do the same;
//! - a document that exists never changes;
//! - a blob that is read has the digest by which it was requested.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod blob_file;
mod cache;
mod error;
mod faults;
mod incoming;
mod leases;
mod leftovers;
mod log;
mod objects;
mod outgoing;
mod shared;
#[doc(hidden)]
pub mod simulation;
mod url;
mod worker;

pub use blob_file::BlobFile;
pub use error::StoreError;
pub use faults::Faults;
pub use incoming::{Incoming, Mark, Received};
pub use leases::Lease;
pub use leftovers::Removed;
pub use log::{CHECKPOINT, LOG_END, LogListing};
pub use outgoing::Outgoing;
pub use url::{StoreUrl, StoreUrlError};

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::Digest;
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;

use crate::cache::Cache;
use crate::worker::Worker;

const BLOBS: &str = "blobs";
const LOG: &str = "log";

/// The folder of arriving files.
const INCOMING: &str = "incoming";

/// The store of blobs and the log.
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    /// The small files of this server alone. All of the store is there, unless it is shared.
    local: Arc<dyn ObjectStore>,
    /// The folder of `local`, in which files arrive.
    directory: PathBuf,
    worker: Worker,
    /// The local copies of blobs, if the store is shared.
    cache: Option<Cache>,
    faults: Arc<Faults>,
}

impl Store {
    /// The store in a local directory, which is made if it is missing. Only one process at a time
    /// may open a directory.
    ///
    /// # Errors
    /// [`StoreError::Write`] or [`StoreError::Full`] if the directory cannot be made,
    /// [`StoreError::Read`] if it cannot be opened.
    pub fn open_local(directory: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(directory).map_err(StoreError::write)?;
        let objects = files_in(directory)?;
        let local = objects.clone();
        let worker = Worker::start().map_err(StoreError::write)?;
        let (directory, faults) = (directory.to_owned(), Arc::default());
        Ok(Self { objects, local, directory, worker, cache: None, faults })
    }

    /// The store at `url`, which any number of servers share. Files arrive in the local
    /// `directory`, which also has copies of blobs, of about `copies_bytes_max` bytes. Only one
    /// process at a time may use a directory.
    ///
    /// # Errors
    /// [`StoreError::Setup`]; [`StoreError::Write`] or [`StoreError::Full`] if the directory cannot
    /// be made; [`StoreError::Read`] if it cannot be opened. Whether the store can be reached is
    /// not tried.
    pub fn open_shared(
        url: &StoreUrl,
        directory: &Path,
        copies_bytes_max: u64,
    ) -> Result<Self, StoreError> {
        let copies = directory.join(BLOBS);
        std::fs::create_dir_all(&copies).map_err(StoreError::write)?;
        let (objects, local) = (url.open()?, files_in(directory)?);
        let worker = Worker::start().map_err(StoreError::write)?;
        let (directory, faults) = (directory.to_owned(), Arc::default());
        let cache = Some(Cache::new(copies, copies_bytes_max));
        Ok(Self { objects, local, directory, worker, cache, faults })
    }

    /// Whether other servers may write to it.
    pub fn is_shared(&self) -> bool {
        self.cache.is_some()
    }

    /// Begin to receive a file. [`Store::keep`] makes a blob of it.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn receive(&self) -> Result<Incoming, StoreError> {
        let incoming = Incoming::begin(self.worker.clone(), self.directory.join(INCOMING)).await;
        incoming.map_err(StoreError::write)
    }

    /// Keep a file as a blob. If the blob exists, nothing is written, unless the blob is damaged or
    /// the store is shared.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Full`] if the disk is full, or
    /// [`StoreError::Unreachable`].
    pub async fn keep(&self, received: Received) -> Result<(), StoreError> {
        if let Some(cache) = &self.cache {
            return self.keep_shared(cache, received).await;
        }
        let digest = received.digest();
        match self.check_blob(digest).await {
            // The call that wrote the blob may have failed to sync it.
            Ok(_) => return self.sync(BLOBS, digest.hex()).await,
            Err(StoreError::Missing(_)) => {}
            Err(_) => tracing::warn!(%digest, "a damaged blob is replaced"),
        }
        let folder = self.directory.join(BLOBS);
        let kept = tokio::task::spawn_blocking(move || received.persist(&folder)).await;
        kept.map_err(StoreError::write)?.map_err(StoreError::write)
    }

    /// The blob of this name.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Read`], or [`StoreError::Damaged`] if its content has
    /// another digest.
    pub async fn blob(&self, digest: Digest) -> Result<Bytes, StoreError> {
        if let Some(cache) = &self.cache {
            return self.blob_shared(cache, digest).await;
        }
        let missing = || StoreError::Missing(digest);
        let bytes = self.read(&blob_key(digest)).await?.ok_or_else(missing)?;
        let hashed = bytes.clone();
        let hash = self.worker.run(move || Digest::of(&hashed)).await.map_err(StoreError::read)?;
        if hash != digest {
            return Err(StoreError::Damaged(digest));
        }
        Ok(bytes)
    }

    /// Begin to send the blob of this name.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Read`]
    pub async fn send(&self, digest: Digest) -> Result<Outgoing, StoreError> {
        if let Some(cache) = &self.cache {
            return self.send_shared(cache, digest).await;
        }
        Outgoing::begin(self.worker.clone(), self.blob_path(digest), digest).await
    }

    /// The bytes of the blob of this name. Its content is not checked.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Read`]
    pub async fn blob_bytes(&self, digest: Digest) -> Result<u64, StoreError> {
        // The copy's length is known without a call.
        if let Some(cache) = &self.cache
            && let Ok(copy) = tokio::fs::metadata(cache.path(digest)).await
        {
            return Ok(copy.len());
        }
        Ok(self.head(digest).await?.size)
    }

    /// Remove a blob. Returns whether it existed. Those of a shared store stay: another server may
    /// need them ([`Self::remove_leftovers`]).
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn remove_blob(&self, digest: Digest) -> Result<bool, StoreError> {
        match self.is_shared() {
            true => Ok(false),
            false => self.delete(&blob_key(digest)).await,
        }
    }

    /// Remove what killed processes and refused uploads left behind: files that were not written to
    /// their end, and blobs that `is_named` does not know. Of a shared store, blobs that were sent
    /// lately stay. Call it only while no upload is under way.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Write`]: some leftovers may be left.
    pub async fn remove_leftovers(
        &self,
        is_named: impl Fn(&Digest) -> bool + Send + 'static,
    ) -> Result<Removed, StoreError> {
        if self.is_shared() {
            let removed = self.remove_incoming().await?;
            return Ok(removed.and(self.remove_unnamed(is_named).await?));
        }
        let directory = self.directory.clone();
        let removing = move || {
            let log = leftovers::remove_staged(&directory.join(LOG))?;
            let incoming = leftovers::remove_all(&directory.join(INCOMING))?;
            let end = leftovers::remove_staged(&directory)?;
            let blobs = directory.join(BLOBS);
            let staged = leftovers::remove_staged(&blobs)?;
            Ok(log
                .and(end)
                .and(incoming)
                .and(staged)
                .and(leftovers::remove_unnamed(&blobs, is_named)?))
        };
        let removed: std::io::Result<_> =
            tokio::task::spawn_blocking(removing).await.map_err(StoreError::read)?;
        removed.map_err(StoreError::write)
    }

    /// Faults that tests inject.
    #[doc(hidden)]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

/// The files in a folder as objects. What was put is on stable storage.
fn files_in(folder: &Path) -> Result<Arc<dyn ObjectStore>, StoreError> {
    let files = LocalFileSystem::new_with_prefix(folder).map_err(StoreError::read)?;
    Ok(Arc::new(files.with_fsync(true)))
}

fn blob_key(digest: Digest) -> Key {
    Key::from(format!("{BLOBS}/{}", digest.hex()))
}

#[cfg(test)]
mod tests;
