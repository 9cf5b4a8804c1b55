//! Why a request got no outputs: the errors of this crate, with their sources.
//!
//! Callers decide by [`SubmitError::code`]. The texts reach clients, so they name no file and no
//! other tenant.

use std::time::Duration;

use gristmill_core::{ErrorCode, InputError, ModelError, ModelUse, TensorError};
use smallvec::SmallVec;

use crate::policy::Full;
use crate::submission::Answered;
use crate::upkeep::Refusal;

/// Why a request got no outputs.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    /// The inputs do not fit the model.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The request is larger than the queue's limits ever allow.
    #[error(
        "the request has {rows} rows: the model's queue holds at most {max} rows of one tenant"
    )]
    TooManyRows {
        /// Rows of the request.
        rows: usize,
        /// Maximum rows of one tenant in the queue.
        max: usize,
    },
    /// The queue has no room now.
    #[error(transparent)]
    QueueFull(#[from] Full),
    /// The request would not have been answered before its deadline, so it was not queued.
    #[error(
        "the model is too busy to answer in time: expected in {} ms, and {} ms are left",
        milliseconds(*expected),
        milliseconds(*left)
    )]
    TooBusy {
        /// The time from now until the expected answer.
        expected: Duration,
        /// The time from now until the deadline.
        left: Duration,
    },
    /// The deadline or the queue timeout passed before a batch took the request.
    #[error("the deadline passed while the request was queued")]
    Expired,
    /// The model ran and failed.
    #[error("{source}")]
    Failed {
        /// Why.
        source: RunError,
        /// The request's use of the runs that failed.
        used: ModelUse,
    },
    /// The run went on after the deadline and was told to end.
    #[error("the model did not answer in time, its run was given up")]
    GivenUp {
        /// The request's use of that run.
        used: ModelUse,
    },
    /// The lane refuses all requests, for this reason.
    #[error("the model is out of service: {0}")]
    OutOfService(#[source] Refusal),
    /// The request ran in parts, and it was found meanwhile that the model does not allow this.
    #[error("the model turned out to answer otherwise in parts: send the request again")]
    Mixed,
    /// The lane is closed.
    #[error("the model is being unloaded")]
    Closed,
}

/// Why a run gave no outputs for a request.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The model itself failed.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Tensors of several requests could not be copied together.
    #[error("model failed: {0}")]
    Tensor(#[from] TensorError),
    /// The model returned another number of rows than it was given, with those of padding.
    #[error("model failed: {rows_in} rows went in{}, {rows_out} came out", padding_text(*padding))]
    Rows {
        /// Rows of the batch.
        rows_in: usize,
        /// How many of these are padding.
        padding: usize,
        /// Rows of one of its outputs.
        rows_out: usize,
    },
    /// An output does not have the length to which its inputs were padded.
    #[error(
        "model failed: dimension {axis} of an output is {actual} for inputs that were padded to \
         {padded}, see pad and cut"
    )]
    Length {
        /// The dimension that is cut.
        axis: usize,
        /// The length of the inputs.
        padded: usize,
        /// The dimension's size.
        actual: usize,
    },
    /// An output has no rows, so it cannot be divided among the requests.
    #[error("model failed: an output cannot be split by rows")]
    Indivisible,
}

impl SubmitError {
    /// The same error, with the request's use of the runs that failed.
    pub(crate) fn charged(self, used: ModelUse) -> Self {
        match self {
            Self::Failed { source, .. } => Self::Failed { source, used },
            Self::GivenUp { .. } => Self::GivenUp { used },
            other => other,
        }
    }

    /// The error of a request one part of which failed with this error, after the parts in
    /// `answers` had run. If it is an error that says what was used, their use is moved from there
    /// to it.
    pub(crate) fn with(self, answers: &mut SmallVec<[Answered; 1]>) -> Self {
        match self {
            Self::Failed { mut used, .. } | Self::GivenUp { mut used } => {
                answers.drain(..).for_each(|part| used.add(part.used));
                self.charged(used)
            }
            other => other,
        }
    }

    /// The request's use of the model.
    pub fn used(&self) -> ModelUse {
        match self {
            Self::Failed { used, .. } | Self::GivenUp { used } => *used,
            _ => ModelUse::default(),
        }
    }

    /// The code that clients see.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Input(_) => ErrorCode::InvalidRequest,
            Self::TooManyRows { .. } => ErrorCode::Unprocessable,
            Self::QueueFull(_) => ErrorCode::QueueFull,
            Self::TooBusy { .. } => ErrorCode::Overloaded,
            Self::Expired | Self::GivenUp { .. } => ErrorCode::DeadlineExceeded,
            Self::Failed { .. } => ErrorCode::ModelFailed,
            Self::Mixed | Self::Closed | Self::OutOfService(_) => ErrorCode::Unavailable,
        }
    }
}

/// Milliseconds with a tenth: many models answer within one.
fn milliseconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64() * 1000.0)
}

impl From<RunError> for SubmitError {
    fn from(source: RunError) -> Self {
        Self::Failed { source, used: ModelUse::default() }
    }
}

impl From<ModelError> for SubmitError {
    fn from(error: ModelError) -> Self {
        RunError::from(error).into()
    }
}

impl From<TensorError> for SubmitError {
    fn from(error: TensorError) -> Self {
        RunError::from(error).into()
    }
}

fn padding_text(rows: usize) -> String {
    match rows {
        0 => String::new(),
        rows => format!(" ({rows} of them padding, see allowed_batch_sizes)"),
    }
}
