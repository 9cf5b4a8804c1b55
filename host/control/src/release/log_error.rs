//! Why the release log, or a document of it, cannot be used.

use std::error::Error;

use gristmill_store::LOG_END;

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

/// Why a log does not match the record of its end.
#[derive(Debug, thiserror::Error)]
#[error(
    "{fault}; put the files of the release log back as they were. To serve the state of release \
     {last} instead, as after an older copy of the log was restored, remove the file {LOG_END} \
     beside the log's folder (keep a copy of the data directory: files that no release names are \
     removed); `gristmill fsck` names everything that is damaged"
)]
pub struct LogEndError {
    /// The last release of the log.
    pub last: u64,
    /// The fault. Its text is part of this error's text, so it is not also a source.
    pub fault: LogEndFault,
}

/// How the log and the record of its end differ.
#[derive(Debug, thiserror::Error)]
pub enum LogEndFault {
    /// The record cannot be read.
    #[error("{LOG_END} is damaged: {0}")]
    Damaged(#[source] serde_json::Error),
    /// The log lacks releases that it had.
    #[error(
        "the release log is shorter than it was: it ends with release {last}, and {}",
        missing(*.last, *.recorded)
    )]
    Shorter {
        /// The last release of the log.
        last: u64,
        /// The last release that the log had.
        recorded: u64,
    },
    /// The recorded release has other bytes.
    #[error("release {0} in the log is not the one that this server wrote")]
    Replaced(u64),
}

/// The releases after `last` up to `recorded`, which are missing.
fn missing(last: u64, recorded: u64) -> String {
    match last + 1 {
        first if first == recorded => format!("release {first} is missing"),
        first => format!("releases {first} to {recorded} are missing"),
    }
}
