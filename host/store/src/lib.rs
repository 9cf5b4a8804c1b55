//! Blobs and the release log. The only crate that names `object_store`.
//!
//! Blobs are immutable and named by their SHA-256. The log is a sequence of numbered documents,
//! each written with put-if-absent, the one primitive that a local directory and every object store
//! have. Refuses to know what a release means: a document is bytes.
//!
//! Invariants:
//! - content that [`Store`] acknowledged is on stable storage: files are synced before a call
//!   returns;
//! - a document that exists never changes;
//! - a blob that is read has the digest by which it was requested.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod error;
mod faults;
mod incoming;
mod leftovers;
mod outgoing;
mod worker;

pub use error::StoreError;
pub use faults::Faults;
pub use incoming::{Incoming, Mark, Received};
pub use leftovers::Removed;
pub use outgoing::Outgoing;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use gristmill_core::Digest;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use sha2::{Digest as _, Sha256};

use crate::worker::Worker;

const BLOBS: &str = "blobs";
const LOG: &str = "log";

/// The folder of arriving files.
const INCOMING: &str = "incoming";

/// The file that records the log's end, beside the log's folder.
pub const LOG_END: &str = "log-end.json";

/// The file with the state of the releases that are no longer kept, beside the log's folder.
pub const CHECKPOINT: &str = "checkpoint.json";

/// The store of blobs and the log.
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    directory: PathBuf,
    worker: Worker,
    faults: Faults,
}

/// The outcome of appending a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The log has the document.
    Yes,
    /// Another writer was first: read on, apply the change again, and try the next number.
    Lost,
}

/// The content of the log's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogListing {
    /// The numbers of the documents, in order.
    pub numbers: Vec<u64>,
    /// Names of files that are not documents.
    pub foreign: Vec<String>,
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
        let objects = LocalFileSystem::new_with_prefix(directory).map_err(StoreError::read)?;
        let objects = Arc::new(objects.with_fsync(true));
        let worker = Worker::start().map_err(StoreError::write)?;
        Ok(Self { objects, directory: directory.to_owned(), worker, faults: Faults::default() })
    }

    /// Begin to receive a file. [`Store::keep`] makes a blob of it.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn receive(&self) -> Result<Incoming, StoreError> {
        let incoming = Incoming::begin(self.worker.clone(), self.directory.join(INCOMING)).await;
        incoming.map_err(StoreError::write)
    }

    /// Keep a file as a blob. If the blob exists, nothing is written, unless the blob is damaged.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn keep(&self, received: Received) -> Result<(), StoreError> {
        let digest = received.digest();
        match self.blob(digest).await {
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
        let missing = || StoreError::Missing(digest);
        let bytes = self.read(&blob_key(digest)).await?.ok_or_else(missing)?;
        let hashed = bytes.clone();
        let hash = self.worker.run(move || digest_of(&hashed)).await.map_err(StoreError::read)?;
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
        let path = self.directory.join(BLOBS).join(digest.hex());
        Outgoing::begin(self.worker.clone(), path, digest).await
    }

    /// The bytes of the blob of this name. Its content is not checked.
    ///
    /// # Errors
    /// [`StoreError::Missing`] or [`StoreError::Read`]
    pub async fn blob_bytes(&self, digest: Digest) -> Result<u64, StoreError> {
        match self.objects.head(&blob_key(digest)).await {
            Ok(found) => Ok(found.size),
            Err(object_store::Error::NotFound { .. }) => Err(StoreError::Missing(digest)),
            Err(error) => Err(StoreError::read(error)),
        }
    }

    /// Remove a blob. Returns whether it existed.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn remove_blob(&self, digest: Digest) -> Result<bool, StoreError> {
        match self.objects.delete(&blob_key(digest)).await {
            Ok(()) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(StoreError::write(error)),
        }
    }

    /// Remove what killed processes and refused uploads left behind: files that were not written to
    /// their end, and blobs that `is_named` does not know. Call it only while no upload is under
    /// way.
    ///
    /// # Errors
    /// [`StoreError::Read`] or [`StoreError::Write`]: some leftovers may be left.
    pub async fn remove_leftovers(
        &self,
        is_named: impl Fn(&Digest) -> bool + Send + 'static,
    ) -> Result<Removed, StoreError> {
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

    /// The content of the log's folder.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn log(&self) -> Result<LogListing, StoreError> {
        let mut listing = LogListing::default();
        let mut files = self.objects.list(Some(&Key::from(LOG)));
        while let Some(file) = files.try_next().await.map_err(StoreError::read)? {
            match number_of(&file.location) {
                Some(number) => listing.numbers.push(number),
                None => listing.foreign.push(file.location.to_string()),
            }
        }
        listing.numbers.sort_unstable();
        listing.foreign.sort_unstable();
        Ok(listing)
    }

    /// The log's document `number`. None if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn document(&self, number: u64) -> Result<Option<Bytes>, StoreError> {
        self.read(&document_key(number)).await
    }

    /// Append `document` as `number`, which the caller found to be the next.
    ///
    /// # Errors
    /// [`StoreError::Write`] or [`StoreError::Full`]. Then it is unknown whether the log contains
    /// the document: read the log again.
    pub async fn append(&self, number: u64, document: Bytes) -> Result<Appended, StoreError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let payload = PutPayload::from_bytes(document);
        match self.objects.put_opts(&document_key(number), payload, options).await {
            Ok(_) => self.faults.after_append().map(|()| Appended::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Appended::Lost),
            Err(error) => Err(StoreError::write(error)),
        }
    }

    /// Sync the log's document `number`, and the folder's entries of all before it, to stable
    /// storage.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn sync_document(&self, number: u64) -> Result<(), StoreError> {
        self.sync(LOG, document_name(number)).await
    }

    /// The record of the log's end. None if there is no record.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn log_end(&self) -> Result<Option<Bytes>, StoreError> {
        self.read(&Key::from(LOG_END)).await
    }

    /// Record the log's end.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn put_log_end(&self, text: Bytes) -> Result<(), StoreError> {
        self.put(&Key::from(LOG_END), text).await
    }

    /// The checkpoint. None if there is none.
    ///
    /// # Errors
    /// [`StoreError::Read`] if the storage cannot be read.
    pub async fn checkpoint(&self) -> Result<Option<Bytes>, StoreError> {
        self.read(&Key::from(CHECKPOINT)).await
    }

    /// Replace the checkpoint. It is on stable storage when this returns.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn put_checkpoint(&self, text: Bytes) -> Result<(), StoreError> {
        self.put(&Key::from(CHECKPOINT), text).await
    }

    /// Remove the log's document `number`, which a checkpoint stands for. It need not exist.
    ///
    /// # Errors
    /// [`StoreError::Write`], or [`StoreError::Full`] if the disk is full.
    pub async fn remove_document(&self, number: u64) -> Result<(), StoreError> {
        match self.objects.delete(&document_key(number)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::write(error)),
        }
    }

    /// Faults that tests inject.
    #[doc(hidden)]
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    async fn read(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        match self.objects.get(key).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(StoreError::read)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::read(error)),
        }
    }

    /// Write an object, in place of any earlier one.
    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.objects.put(key, PutPayload::from_bytes(bytes)).await;
        put.map(|_| ()).map_err(StoreError::write)
    }

    /// Sync a file and the folder's entry of it.
    async fn sync(&self, folder: &str, name: String) -> Result<(), StoreError> {
        let folder = self.directory.join(folder);
        let syncing = move || {
            File::open(folder.join(name))?.sync_all()?;
            File::open(&folder)?.sync_all()
        };
        let synced: std::io::Result<()> =
            tokio::task::spawn_blocking(syncing).await.map_err(StoreError::write)?;
        synced.map_err(StoreError::write)
    }
}

/// The name of `blob`.
pub fn digest_of(blob: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(blob).into())
}

fn blob_key(digest: Digest) -> Key {
    Key::from(format!("{BLOBS}/{}", digest.hex()))
}

fn document_key(number: u64) -> Key {
    Key::from(format!("{LOG}/{}", document_name(number)))
}

fn document_name(number: u64) -> String {
    format!("{number:020}.json")
}

fn number_of(key: &Key) -> Option<u64> {
    let number = key.filename()?.strip_suffix(".json")?.parse().ok()?;
    (document_key(number) == *key).then_some(number)
}

#[cfg(test)]
mod tests;
