//! Blobs and the release log. The only crate that names `object_store`.
//!
//! Blobs are immutable and named by their SHA-256. The log is a sequence of numbered documents, each
//! written with put-if-absent, the one primitive that a local directory and every object store have.
//! Refuses to know what a release means: a document is a JSON value.
//!
//! Invariants:
//! - what [`Store`] acknowledged is on stable storage: files are synced before a call returns;
//! - document n exists only if n-1 does, and never changes;
//! - a blob that is read back has the digest it was asked for by.

#![forbid(unsafe_code)]

mod error;

pub use error::StoreError;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::Digest;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};

/// Where blobs and the log are kept.
pub struct Store {
    objects: Arc<dyn ObjectStore>,
}

/// Whether a document became the log's next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    Yes,
    /// Another writer was first: read on, apply the change anew, and try the next number.
    Lost,
}

impl Store {
    /// The store in a local directory, which is made where it is missing.
    pub fn open_local(directory: &Path) -> Result<Self, StoreError> {
        std::fs::create_dir_all(directory).map_err(|source| StoreError::io(directory, source))?;
        let objects = LocalFileSystem::new_with_prefix(directory)?.with_fsync(true);
        Ok(Self { objects: Arc::new(objects) })
    }

    /// Keep a blob; returns its name. Keeping it again changes nothing, but mends one that was
    /// damaged.
    pub async fn put_blob(&self, blob: Bytes) -> Result<Digest, StoreError> {
        let digest = digest_of(&blob);
        let key = blob_key(digest);
        let lost = self.put_if_absent(&key, blob.clone()).await? == Appended::Lost;
        if lost && self.blob(digest).await.is_err() {
            tracing::warn!(%digest, "a damaged blob is replaced");
            self.objects.put(&key, PutPayload::from_bytes(blob)).await?;
        }
        Ok(digest)
    }

    /// The blob of this name.
    pub async fn blob(&self, digest: Digest) -> Result<Bytes, StoreError> {
        let bytes = self.objects.get(&blob_key(digest)).await?.bytes().await?;
        if digest_of(&bytes) != digest {
            return Err(StoreError::Damaged {
                what: digest.to_string(),
                why: "its content has another digest".into(),
            });
        }
        Ok(bytes)
    }

    /// The log's document `number`; none where the log is shorter.
    pub async fn document<T: DeserializeOwned>(
        &self,
        number: u64,
    ) -> Result<Option<T>, StoreError> {
        let bytes = match self.objects.get(&document_key(number)).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| StoreError::Damaged {
            what: format!("release {number}"),
            why: error.to_string(),
        })
    }

    /// Append `document` as `number`, which the caller found to be the next.
    pub async fn append<T: Serialize>(
        &self,
        number: u64,
        document: &T,
    ) -> Result<Appended, StoreError> {
        let bytes = serde_json::to_vec_pretty(document).map_err(|error| StoreError::Damaged {
            what: format!("release {number}"),
            why: error.to_string(),
        })?;
        self.put_if_absent(&document_key(number), bytes.into()).await
    }

    async fn put_if_absent(&self, key: &Key, bytes: Bytes) -> Result<Appended, StoreError> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match self.objects.put_opts(key, PutPayload::from_bytes(bytes), options).await {
            Ok(_) => Ok(Appended::Yes),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Appended::Lost),
            Err(error) => Err(error.into()),
        }
    }
}

/// The name that `blob` has.
pub fn digest_of(blob: &[u8]) -> Digest {
    Digest::from_bytes(Sha256::digest(blob).into())
}

fn blob_key(digest: Digest) -> Key {
    Key::from(format!("blobs/{}", digest.hex()))
}

fn document_key(number: u64) -> Key {
    Key::from(format!("log/{number:020}.json"))
}

#[cfg(test)]
mod tests;
