//! How long a request may be queued, and its answer when that time is over.
//!
//! The submitter itself watches the time of its request, so that the answer comes on time even if
//! no batch runs. If a batch takes the request at the same moment, the batch wins.

use std::time::Duration;

use crate::config::{QueuePolicy, TimeoutAction};
use crate::error::SubmitError;
use crate::submission::Answered;
use crate::sync;
use crate::tally::Tally;
use crate::ticket::PendingReply;

/// How long a request with the timeout `own` may be queued in a level. None: until its deadline.
pub(crate) fn timeout_of(level: &QueuePolicy, requested: Option<Duration>) -> Option<Duration> {
    match (level.timeout, requested.filter(|_| level.allow_timeout_override)) {
        (Some(default), Some(requested)) => Some(default.min(requested)),
        (default, requested) => requested.or(default),
    }
}

/// The time after which the submitter takes its request as expired. None in a level that delays
/// requests.
pub(crate) fn expires_at(
    level: &QueuePolicy,
    timeout: Option<Duration>,
) -> Option<tokio::time::Instant> {
    let rejects = level.timeout_action == TimeoutAction::Reject;
    timeout.filter(|_| rejects).map(|timeout| sync::timer_now() + timeout)
}

/// The answer to a request, or to one part of it.
///
/// # Errors
/// [`SubmitError::Expired`] if no batch took the request by `until`; else the error of its batch.
pub(crate) async fn answer_of(
    waiting: &mut PendingReply,
    until: Option<tokio::time::Instant>,
    tally: &Tally,
) -> Result<Answered, SubmitError> {
    if let Some(until) = until {
        match tokio::time::timeout_at(until, &mut *waiting).await {
            Ok(answer) => return answer,
            Err(_) if waiting.withdraw() => {
                tally.recent().expired += 1;
                return Err(SubmitError::Expired);
            }
            // A batch has taken it already.
            Err(_) => {}
        }
    }
    waiting.await
}
