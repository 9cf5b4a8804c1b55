//! Reading and writing whole objects of the store, and small files of this server.

use std::fs::File;
use std::io;

use bytes::Bytes;
use gristmill_core::Digest;
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt, PutPayload};

use crate::{Store, StoreError};

/// Maximum bytes of an object of a shared store that is read whole: a release, a checkpoint or a
/// lease. A checkpoint with 10,000 tenants has some MiB. Blobs of any length are fetched in parts
/// there.
const OBJECT_BYTES_MAX: u64 = 1 << 30;

impl Store {
    pub(crate) async fn read(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        match self.objects.get(key).await {
            Ok(object) if self.is_shared() && object.meta.size > OBJECT_BYTES_MAX => {
                let size = object.meta.size;
                let text = format!("{key} has {size} bytes, over {OBJECT_BYTES_MAX}");
                Err(StoreError::read(io::Error::other(text)))
            }
            Ok(object) => Ok(Some(object.bytes().await.map_err(|error| self.unread(error))?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.unread(error)),
        }
    }

    /// Write an object, in place of any earlier one.
    pub(crate) async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), StoreError> {
        let put = self.objects.put(key, PutPayload::from_bytes(bytes)).await;
        put.map(|_| ()).map_err(|error| self.unwritten(error))
    }

    /// Remove an object. Returns whether it existed.
    pub(crate) async fn delete(&self, key: &Key) -> Result<bool, StoreError> {
        match self.objects.delete(key).await {
            Ok(()) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.unwritten(error)),
        }
    }

    /// Why a blob cannot be read.
    pub(crate) fn no_blob(&self, digest: Digest, error: object_store::Error) -> StoreError {
        match error {
            object_store::Error::NotFound { .. } => StoreError::Missing(digest),
            error => self.unread(error),
        }
    }

    pub(crate) fn unread(&self, error: object_store::Error) -> StoreError {
        if self.is_shared() { StoreError::unreachable(error) } else { StoreError::read(error) }
    }

    pub(crate) fn unwritten(&self, error: object_store::Error) -> StoreError {
        if self.is_shared() { StoreError::unreachable(error) } else { StoreError::write(error) }
    }

    pub(crate) async fn read_local(&self, name: &str) -> Result<Option<Bytes>, StoreError> {
        match self.local.get(&Key::from(name)).await {
            Ok(object) => Ok(Some(object.bytes().await.map_err(StoreError::read)?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(StoreError::read(error)),
        }
    }

    /// Write a local file, whole or not at all.
    pub(crate) async fn put_local(&self, name: &str, text: Bytes) -> Result<(), StoreError> {
        let put = self.local.put(&Key::from(name), PutPayload::from_bytes(text)).await;
        put.map(drop).map_err(StoreError::write)
    }

    /// Sync a file and the folder's entry of it.
    pub(crate) async fn sync(&self, folder: &str, name: String) -> Result<(), StoreError> {
        let folder = self.directory.join(folder);
        let syncing = move || {
            File::open(folder.join(name))?.sync_all()?;
            File::open(&folder)?.sync_all()
        };
        let synced: io::Result<()> =
            tokio::task::spawn_blocking(syncing).await.map_err(StoreError::write)?;
        synced.map_err(StoreError::write)
    }
}
