//! Running one request through a model, without plugins.

use std::sync::Arc;
use std::time::Duration;

use gristmill_batch::{Lane, Submission, SubmitError};
use gristmill_core::{ClientError, ErrorCode, Name, NamedTensor, Receipt};

use crate::submit::{retry_after, submit};

/// A request for a model. It owns all that it needs.
pub struct ModelWork {
    pub model: Name,
    pub lane: Arc<Lane>,
    pub submission: Submission,
    /// The request's id, for the log.
    pub id: String,
    pub receipt: Receipt,
}

/// A model's answer, with the receipt that is still open.
pub struct ModelAnswer {
    /// The outputs in the model's order.
    pub outcome: Result<Vec<NamedTensor>, ModelError>,
    pub receipt: Receipt,
}

/// Why a model gave no answer to a client that made the tensors itself.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Model(#[from] SubmitError),
    /// The deadline passed; holds the time from the request's arrival to the deadline.
    #[error("no answer within {} ms", .0.as_millis())]
    DeadlineExceeded(Duration),
}

impl ClientError for ModelError {
    fn code(&self) -> ErrorCode {
        match self {
            // The client made the tensors, so a wrong tensor is the client's fault.
            Self::Model(SubmitError::Input(_) | SubmitError::TooManyRows { .. }) => {
                ErrorCode::InvalidRequest
            }
            Self::Model(error) => error.code(),
            Self::DeadlineExceeded(_) => ErrorCode::DeadlineExceeded,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Model(error) => retry_after(error),
            Self::DeadlineExceeded(_) => None,
        }
    }
}

impl ModelWork {
    /// Run the request, to be done by its deadline.
    pub async fn run(self) -> ModelAnswer {
        let Self { model, lane, submission, id, mut receipt } = self;
        let (tenant, deadline) = (submission.tenant.clone(), submission.deadline);
        let submitting = submit(&lane, submission, &mut receipt);
        let outcome = match tokio::time::timeout_at(deadline.instant().into(), submitting).await {
            Ok(outcome) => outcome.map_err(ModelError::from),
            Err(_) => {
                let arrived = receipt.record().arrived;
                let within = deadline.instant().saturating_duration_since(arrived);
                Err(ModelError::DeadlineExceeded(within))
            }
        };
        if let Err(error) = &outcome
            && error.code() == ErrorCode::ModelFailed
        {
            let (request_id, tenant, model) = (id, tenant.as_str(), model.as_str());
            tracing::warn!(request_id, tenant, model, %error, "request failed");
        }
        ModelAnswer { outcome, receipt }
    }
}
