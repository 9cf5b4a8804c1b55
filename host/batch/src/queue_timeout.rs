//! How long a request may be queued, and telling it when that time is over.
//!
//! The submitter watches the clock for its own request, so that it is told at once although nothing
//! runs. A batch that takes the request in the same moment wins.

use std::time::Duration;

use crate::config::{QueuePolicy, TimeoutAction};
use crate::error::SubmitError;
use crate::served::Served;
use crate::sync;
use crate::tally::Tally;
use crate::ticket::Waiting;

/// How long a request that names a timeout of its `own` may be queued in a level; none: until its
/// deadline.
pub(crate) fn timeout_of(level: &QueuePolicy, own: Option<Duration>) -> Option<Duration> {
    match (level.timeout, own.filter(|_| level.allow_timeout_override)) {
        (Some(default), Some(own)) => Some(default.min(own)),
        (default, own) => own.or(default),
    }
}

/// When the submitter tells itself that its request was queued for too long. None in a level that
/// delays: there it waits on.
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
/// Fails with [`SubmitError::Expired`] if no batch took the request by `until`, and as its batch
/// does.
pub(crate) async fn answer_of(
    mut waiting: Waiting,
    until: Option<tokio::time::Instant>,
    tally: &Tally,
) -> Result<Served, SubmitError> {
    if let Some(until) = until {
        match tokio::time::timeout_at(until, &mut waiting).await {
            Ok(answer) => return answer,
            Err(_) if waiting.withdraw() => {
                tally.recent().expired += 1;
                return Err(SubmitError::Expired);
            }
            // A batch has it already.
            Err(_) => {}
        }
    }
    waiting.await
}
