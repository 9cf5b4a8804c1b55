//! The end of the log, recorded beside it.
//!
//! The chain of digests finds a gap and an edit. It cannot find that the newest releases are gone,
//! because the rest is a complete log. So the last release's number and digest are kept in a
//! separate file, which is written after each append. A crash between the two leaves the file one
//! release behind. So a log may have more releases than the file says, but must have the release
//! that the file names.

use gristmill_core::Digest;
use gristmill_state::Head;
use gristmill_store::Store;
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::release_log::end_error::{LogEndError, LogEndFault};

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogEnd {
    /// The number of the last release.
    number: u64,
    /// The digest of its document.
    digest: Digest,
}

impl LogEnd {
    fn of(log: &Head) -> Self {
        Self { number: log.number, digest: log.digest() }
    }
}

/// Refuse a `log` that does not hold the release that it ended with. A directory without the file
/// is from an earlier version, or the operator removed the file. A checkpoint stands for the
/// releases up to `base`.
///
/// # Errors
/// [`ControlError::LogEnd`], or [`ControlError::Store`] where the store cannot be read.
pub(crate) async fn check(store: &Store, log: &Head, base: u64) -> Result<(), ControlError> {
    let last = log.number;
    let refused = |fault| LogEndError { last, fault };
    let Some(text) = store.log_end().await? else { return Ok(()) };
    let LogEnd { number, digest } =
        serde_json::from_slice(&text).map_err(|error| refused(LogEndFault::Damaged(error)))?;
    if number > last {
        return Err(refused(LogEndFault::Shorter { last, recorded: number }).into());
    }
    if number <= base {
        return Ok(());
    }
    let document = store.document(number).await?.unwrap_or_default();
    if Digest::of(&document) != digest {
        return Err(refused(LogEndFault::Replaced(number)).into());
    }
    Ok(())
}

/// Record where the log ends. If that fails, the server goes on: it only cannot detect missing
/// releases.
pub(crate) async fn note(store: &Store, log: &Head) {
    let noted = match serde_json::to_vec(&LogEnd::of(log)) {
        Ok(text) => store.put_log_end(text.into()).await.map_err(|error| format!("{error:?}")),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = noted {
        tracing::warn!(why, "the end of the release log cannot be written to its file");
    }
}
