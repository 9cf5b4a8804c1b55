//! What can go wrong with a store.

use std::path::{Path, PathBuf};

use gristmill_core::ErrorCode;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("store: {0}")]
    Objects(#[from] object_store::Error),
    #[error("store: {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("store: {what} is damaged: {why}")]
    Damaged { what: String, why: String },
}

impl StoreError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Objects(object_store::Error::NotFound { .. }) => ErrorCode::NotFound,
            _ => ErrorCode::Internal,
        }
    }
}
