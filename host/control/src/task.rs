//! Tasks whose panics are errors of those who wait for them, and not panics of theirs.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use tokio::task::JoinError;

use crate::error::ControlError;

/// The outcome of a task that `doing` describes, as in "the server failed while it ...".
///
/// # Errors
/// The task panicked or was cancelled.
pub async fn joined<T>(
    doing: &'static str,
    task: impl Future<Output = Result<T, JoinError>>,
) -> Result<T, ControlError> {
    task.await.map_err(|error| ControlError::Internal { doing, cause: error.to_string() })
}

/// The outcome of work on this task.
///
/// # Errors
/// That of the work, or the work panicked.
pub(crate) async fn caught<T>(
    doing: &'static str,
    work: impl Future<Output = Result<T, ControlError>>,
) -> Result<T, ControlError> {
    let outcome = AssertUnwindSafe(work).catch_unwind().await;
    outcome.unwrap_or_else(|panic| Err(ControlError::Internal { doing, cause: text_of(&*panic) }))
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use gristmill_core::{ClientError, ErrorCode};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_internal_error_that_keeps_its_text_for_the_log() {
        let task = tokio::spawn(async { panic!("the secret cause {}", 7) });
        let joined = joined::<()>("counted", task).await.unwrap_err();
        let caught = caught::<()>("counted", async { panic!("the secret cause 7") }).await;
        for error in [joined, caught.unwrap_err()] {
            assert_eq!(error.code(), ErrorCode::Internal);
            assert_eq!(error.to_string(), "the server failed while it counted: see its log");
            assert!(format!("{error:?}").contains("the secret cause 7"), "{error:?}");
        }
        let cancelled = tokio::spawn(std::future::pending::<()>());
        cancelled.abort();
        assert_eq!(
            super::joined("counted", cancelled).await.unwrap_err().code(),
            ErrorCode::Internal
        );
    }
}
