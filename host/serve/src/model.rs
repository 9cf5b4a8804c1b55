//! Running one request through a model, without plugins.

use std::pin::pin;
use std::time::{Duration, Instant};

use gristmill_batch::{Lane, RunError, Submission, SubmitError};
use gristmill_core::{ClientError, ErrorCode, ModelErrorKind, Name, Receipt, Tensor};
use tokio::time::timeout_at;

use crate::access::NamedTenant;
use crate::quota::{QuotaError, held_rows};
use crate::submit::{code_of, retry_after, rows_of, submit, time_given};

/// The reason why a model did not answer a client that made the tensors itself.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The lane refused the request, or its batch failed.
    #[error(transparent)]
    Model(#[from] SubmitError),
    /// The deadline passed; holds the time from the request's arrival to the deadline.
    #[error("no answer within {} ms", .0.as_millis())]
    DeadlineExceeded(Duration),
    /// The tenant has too many rows under way.
    #[error(transparent)]
    Quota(#[from] QuotaError),
}

impl ClientError for ModelError {
    fn code(&self) -> ErrorCode {
        match self {
            // The client made the tensors, so a wrong tensor is the client's fault.
            Self::Model(SubmitError::Input(_) | SubmitError::TooManyRows { .. }) => {
                ErrorCode::InvalidRequest
            }
            Self::Model(SubmitError::Failed { source: RunError::Model(error), .. })
                if error.kind == ModelErrorKind::InvalidInput =>
            {
                ErrorCode::InvalidRequest
            }
            Self::Model(error) => code_of(error),
            Self::DeadlineExceeded(_) => ErrorCode::DeadlineExceeded,
            Self::Quota(error) => error.code(),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Model(error) => retry_after(error),
            Self::DeadlineExceeded(_) => None,
            Self::Quota(error) => error.retry_after(),
        }
    }
}

impl NamedTenant<'_> {
    /// Run a request of the tenant for a model within its deadline, and note in `receipt` what it
    /// takes. Returns the outputs in the model's order. The caller logs a failure.
    ///
    /// # Errors
    /// The quota is used up, the deadline passed, or the lane did not answer.
    pub async fn run_model(
        self,
        model: &Name,
        lane: &Lane,
        submission: Submission,
        receipt: &mut Receipt,
    ) -> Result<Vec<Tensor>, ModelError> {
        let (deadline, quota) = (submission.deadline, &self.tenant.quota);
        quota.calls.note_request(Instant::now());
        let _rows = held_rows(quota, rows_of(lane, &submission))?;
        let submitted = {
            // Pinned here, because the timeout would move it.
            let submitting = pin!(submit(model, lane, submission, receipt));
            timeout_at(deadline.instant().into(), submitting).await
        };
        match submitted {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(ModelError::DeadlineExceeded(time_given(receipt, deadline))),
        }
    }
}
