//! Reading files, to load them: a plugin or a model of one file whole, a model of several where it
//! lies.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_backend::ModelFile;
use gristmill_backend::package::Package;
use gristmill_core::Digest;
use gristmill_store::{BlobFile, Received, Store, StoreError};

use crate::load::error::LoadError;
use crate::load::paths::without_folder;

/// A model's file that the store keeps.
#[derive(Clone)]
pub(crate) enum StoredModel {
    /// One ONNX file.
    Onnx(Bytes),
    /// A package of several files, which can be larger than memory.
    Package(Arc<BlobFile>),
}

impl StoredModel {
    pub(crate) fn file(&self) -> ModelFile<'_> {
        match self {
            Self::Onnx(onnx) => onnx.into(),
            Self::Package(file) => ModelFile::Package(file.path()),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Onnx(onnx) => onnx.len() as u64,
            Self::Package(file) => file.bytes(),
        }
    }

    /// The path of a package.
    pub(crate) fn package(&self) -> Option<&Path> {
        match self {
            Self::Onnx(_) => None,
            Self::Package(file) => Some(file.path()),
        }
    }

    /// A runtime's text without the folder of the store.
    pub(crate) fn without_paths(&self, text: &str) -> String {
        without_folder(text, self.package())
    }
}

/// A model that the store keeps.
pub(crate) async fn read_model(store: &Store, digest: Digest) -> Result<StoredModel, LoadError> {
    let unread = |error| unread(digest, error);
    let file = store.file(digest).await.map_err(unread)?;
    let start = store.start_of(&file, Package::HEAD_BYTES).await.map_err(unread)?;
    if !Package::is_one(&start) {
        ModelFile::check_onnx_bytes(file.bytes()).map_err(|source| {
            let text = source.to_string();
            LoadError::Backend { text, source }
        })?;
        return Ok(StoredModel::Onnx(read_blob(store, digest).await?));
    }
    store.check(&file).await.map_err(unread)?;
    Ok(StoredModel::Package(Arc::new(file)))
}

/// A file that has just arrived.
pub(crate) async fn read_upload(file: &Received) -> Result<Bytes, LoadError> {
    file.read().await.map_err(|error| {
        tracing::error!(digest = %file.digest(), ?error, "an uploaded file cannot be read");
        LoadError::Upload(error)
    })
}

/// A file that the store keeps. The error's text does not say where the store looked for it.
pub(crate) async fn read_blob(store: &Store, digest: Digest) -> Result<Bytes, LoadError> {
    store.blob(digest).await.map_err(|error| unread(digest, error))
}

/// The length of a file that the store keeps.
pub(crate) async fn blob_bytes(store: &Store, digest: Digest) -> Result<u64, LoadError> {
    store.blob_bytes(digest).await.map_err(|error| unread(digest, error))
}

fn unread(digest: Digest, error: StoreError) -> LoadError {
    tracing::error!(%digest, ?error, "an uploaded file cannot be read");
    match error {
        damaged @ StoreError::Damaged(_) => LoadError::Damaged(damaged),
        source => LoadError::Unreadable { digest, source },
    }
}
