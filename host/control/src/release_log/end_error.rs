//! Why the release log does not match the record of its end.

use gristmill_store::LOG_END;

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
