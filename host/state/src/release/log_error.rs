//! Why a document of the release log cannot be used.

use std::error::Error;

/// Why a document of the release log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The document is not what its format asks for.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// A later version of gristmill wrote it.
    #[error(
        "its format is {format}, and this server reads formats up to {newest}: upgrade the server"
    )]
    Newer {
        /// The document's format.
        format: u32,
        /// The newest format that this server reads.
        newest: u32,
    },
    /// It carries the number of another file.
    #[error("it says that it is release {0}")]
    Misplaced(u64),
    /// It is of format 1, and comes after one of a later format.
    #[error("it has no digest, although the release before it has one")]
    Unchained,
    /// Its content does not match its own digest.
    #[error("its content was changed: its digest does not match")]
    Changed,
    /// Its record of the release before it does not match that release.
    #[error("it does not follow release {before}: one of the two was replaced")]
    Replaced {
        /// The number of the release before it.
        before: u64,
    },
    /// Its changes do not fit the state after the releases before it.
    #[error(transparent)]
    Unfit(Box<dyn Error + Send + Sync>),
}
