//! The errors of a store.
//!
//! The texts are for clients as well, so they name no path of the host; the sources have the rest,
//! for the log.
//!
//! Invariant: the error of a call to a shared store has no query of a URL, which can be signed, and
//! no document of the store, which can repeat a credential.

use std::error::Error;
use std::io;
use std::io::ErrorKind::{
    FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
};
use std::sync::Arc;

use gristmill_core::{Digest, ErrorCode};

/// Why the store failed. The texts name no path; the sources do.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no blob with this digest.
    #[error("the server has no file {0}")]
    Missing(Digest),
    /// Reading failed.
    #[error("the server cannot read its storage")]
    Read(#[source] Arc<dyn Error + Send + Sync>),
    /// Writing failed.
    #[error("the server cannot write to its storage: the change is not made")]
    Write(#[source] Arc<dyn Error + Send + Sync>),
    /// Writing failed because the disk is full.
    #[error("the server's disk is full: the change is not made")]
    Full(#[source] Arc<dyn Error + Send + Sync>),
    /// Writing failed because the disk is read-only, or the server may not write there.
    #[error("the server may not write to its disk, or it is read-only: the change is not made")]
    ReadOnly(#[source] Arc<dyn Error + Send + Sync>),
    /// A call to the store that several servers share failed. What it was to do may be done or not.
    #[error("the store of releases and files cannot be reached: try again")]
    Unreachable(#[source] Arc<dyn Error + Send + Sync>),
    /// The settings of the shared store, or its credentials, are not what it needs.
    #[error("the store cannot be used: {0}")]
    Setup(#[source] Arc<dyn Error + Send + Sync>),
    /// The content of the blob with this digest has another digest.
    #[error("{0} is damaged: its content has another digest")]
    Damaged(Digest),
}

impl StoreError {
    pub(crate) fn read(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Read(source.into().into())
    }

    pub(crate) fn write(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source: Arc<dyn Error + Send + Sync> = source.into().into();
        match kind_of(&*source) {
            Some(StorageFull | QuotaExceeded | FileTooLarge) => Self::Full(source),
            Some(ReadOnlyFilesystem | PermissionDenied) => Self::ReadOnly(source),
            _ => Self::Write(source),
        }
    }

    pub(crate) fn setup(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Setup(source.into().into())
    }

    /// The shared store failed. Signatures and credentials are left out of the text.
    pub fn unreachable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let text: Box<dyn Error + Send + Sync> = without_secrets(&source.into().to_string()).into();
        Self::Unreachable(text.into())
    }

    /// The code by which clients tell errors apart.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Full(_) | Self::ReadOnly(_) => ErrorCode::InsufficientStorage,
            Self::Unreachable(_) => ErrorCode::Unavailable,
            Self::Missing(_)
            | Self::Read(_)
            | Self::Write(_)
            | Self::Setup(_)
            | Self::Damaged(_) => ErrorCode::Internal,
        }
    }
}

/// The text without queries of URLs, which can be signed, and without the document with which a
/// store refuses a call, which can repeat credentials. Of that the code is kept.
fn without_secrets(text: &str) -> String {
    let (text, document) = match text.find('<') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let code = document.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let words = text.split(' ').map(|word| word.split_once('?').map_or(word, |(url, _)| url));
    let words = words.chain(code.map(|(code, _)| code));
    words.collect::<Vec<_>>().join(" ")
}

/// What the operating system says, in the error or in one of its sources.
fn kind_of(error: &(dyn Error + 'static)) -> Option<io::ErrorKind> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>()
            && error.kind() != io::ErrorKind::Other
        {
            return Some(error.kind());
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_neither_a_signature_nor_a_stores_document() {
        let text = "GET https://host/a?sig=secret failed: 400: <Error><Code>ExpiredToken</Code>\
                    <Token-0>secret</Token-0></Error>";
        let text = format!("{:?}", StoreError::unreachable(text));
        assert!(text.contains("https://host/a failed: 400:  ExpiredToken"), "{text}");
        assert!(!text.contains("secret"), "{text}");
        assert_eq!(without_secrets("it did not answer"), "it did not answer");
    }
}
