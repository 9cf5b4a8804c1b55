//! Blobs and the release log. The only crate that names `object_store`.
//!
//! Blobs are immutable and named by their SHA-256. The log is a sequence of numbered documents, each
//! written with put-if-absent, the one primitive that a local directory and every object store have.
//! Refuses to know what a release means: a document is bytes.
//!
//! Invariants:
//! - what [`Store`] acknowledged is on stable storage: files are synced before a call returns;
//! - a document that exists never changes;
//! - a blob that is read back has the digest it was asked for by.

#![forbid(unsafe_code)]

mod error;
mod leftovers;

pub use error::StoreError;
pub use leftovers::Removed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use gristmill_core::Digest;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use sha2::{Digest as _, Sha256};

const BLOBS: &str = "blobs";
const LOG: &str = "log";

/// A blob that is larger than this is hashed on a thread of its own.
const HASHED_INLINE_MAX: usize = 64 << 10;

/// Where blobs and the log are kept.
pub struct Store {
    objects: Arc<dyn ObjectStore>,
    directory: PathBuf,
}

/// Whether a document became the log's next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Yes,
    /// Another writer was first: read on, apply the change anew, and try the next number.
    Lost,
}

/// What the log's folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogListing {
    /// The numbers of the documents, in order.
    pub numbers: Vec<u64>,
    /// Files that are no documents.
    pub foreign: Vec<String>,
}

impl Store {
    /// The store in a local directory, which is made where it is missing. Only one process at a time
    /// may have a directory open.
    pub fn open_local(directory: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(directory).map_err(StoreError::write)?;
        let objects = LocalFileSystem::new_with_prefix(directory).map_err(StoreError::read)?;
        let objects = Arc::new(objects.with_fsync(true));
        Ok(Self { objects, directory: directory.to_owned() })
    }

    /// Keep a blob whose digest is known. Keeping it again changes nothing, but mends one that was
    /// damaged.
    pub async fn put_blob(&self, digest: Digest, blob: Bytes) -> Result<(), StoreError> {
        let key = blob_key(digest);
        let lost = self.put_if_absent(&key, blob.clone()).await? == Appended::Lost;
        if lost && self.blob(digest).await.is_err() {
            tracing::warn!(%digest, "a damaged blob is replaced");
            let replaced = self.objects.put(&key, PutPayload::from_bytes(blob)).await;
            replaced.map_err(StoreError::write)?;
        }
        Ok(())
    }

    /// The blob of this name.
    pub async fn blob(&self, digest: Digest) -> Result<Bytes, StoreError> {
        let missing = || StoreError::Missing(digest.to_string());
        let bytes = self.read(&blob_key(digest)).await?.ok_or_else(missing)?;
        if hashed(bytes.clone()).await? != digest {
            return Err(StoreError::Damaged {
                what: digest.to_string(),
                why: "its content has another digest".into(),
            });
        }
        Ok(bytes)
    }

    /// Remove a blob; one that is not there is as good as removed.
    pub async fn remove_blob(&self, digest: Digest) -> Result<(), StoreError> {
        match self.objects.delete(&blob_key(digest)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(StoreError::write(error)),
        }
    }

    /// Remove what killed processes and refused uploads left behind: files that were not written to
    /// their end, and blobs that `is_named` does not know. Only while no upload is under way.
    pub async fn remove_leftovers(
        &self,
        is_named: impl Fn(&Digest) -> bool + Send + 'static,
    ) -> Result<Removed, StoreError> {
        let directory = self.directory.clone();
        let removing = move || {
            let log = leftovers::remove_staged(&directory.join(LOG))?;
            let blobs = directory.join(BLOBS);
            let staged = leftovers::remove_staged(&blobs)?;
            Ok(log.and(staged).and(leftovers::remove_unnamed(&blobs, is_named)?))
        };
        let removed: std::io::Result<_> =
            tokio::task::spawn_blocking(removing).await.map_err(StoreError::read)?;
        removed.map_err(StoreError::write)
    }

    /// What the log's folder holds.
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

    /// The log's document `number`; none where there is none.
    pub async fn document(&self, number: u64) -> Result<Option<Bytes>, StoreError> {
        self.read(&document_key(number)).await
    }

    /// Append `document` as `number`, which the caller found to be the next.
    pub async fn append(&self, number: u64, document: Bytes) -> Result<Appended, StoreError> {
        self.put_if_absent(&document_key(number), document).await
    }

    async fn read(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        match self.objects.get(key).await {
            Ok(found) => Ok(Some(found.bytes().await.map_err(StoreError::read)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::read(error)),
        }
    }

    async fn put_if_absent(&self, key: &Key, bytes: Bytes) -> Result<Appended, StoreError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.objects.put_opts(key, PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(Appended::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Appended::Lost),
            Err(error) => Err(StoreError::write(error)),
        }
    }
}

/// The name that `blob` has.
pub fn digest_of(blob: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(blob).into())
}

/// The same, off the request threads where it takes long: a gigabyte takes a second.
pub async fn hashed(blob: Bytes) -> Result<Digest, StoreError> {
    if blob.len() <= HASHED_INLINE_MAX {
        return Ok(digest_of(&blob));
    }
    let hashing = tokio::task::spawn_blocking(move || digest_of(&blob));
    hashing.await.map_err(StoreError::read)
}

fn blob_key(digest: Digest) -> Key {
    Key::from(format!("{BLOBS}/{}", digest.hex()))
}

fn document_key(number: u64) -> Key {
    Key::from(format!("{LOG}/{number:020}.json"))
}

fn number_of(key: &Key) -> Option<u64> {
    let number = key.filename()?.strip_suffix(".json")?.parse().ok()?;
    (document_key(number) == *key).then_some(number)
}

#[cfg(test)]
mod tests;
