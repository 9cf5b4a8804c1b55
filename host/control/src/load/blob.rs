//! Reading whole files, to load them.

use bytes::Bytes;
use gristmill_core::Digest;
use gristmill_store::{Received, Store, StoreError};

use crate::load::error::LoadError;

/// A file that has just arrived.
pub(crate) async fn read_upload(file: &Received) -> Result<Bytes, LoadError> {
    file.read().await.map_err(|error| {
        tracing::error!(digest = %file.digest(), ?error, "an uploaded file cannot be read");
        LoadError::Upload(error)
    })
}

/// A file that the store keeps. The error's text does not say where the store looked for it.
pub(crate) async fn read_blob(store: &Store, digest: Digest) -> Result<Bytes, LoadError> {
    store.blob(digest).await.map_err(|error| {
        tracing::error!(%digest, ?error, "an uploaded file cannot be read");
        match error {
            damaged @ StoreError::Damaged(_) => LoadError::Damaged(damaged),
            source => LoadError::Unreadable { digest, source },
        }
    })
}
