//! Submitting a request to a model's lane, and noting the outcome in its receipt.

use std::time::{Duration, Instant};

use gristmill_batch::{Full, Lane, Submission, SubmitError};
use gristmill_core::{Deadline, ErrorCode, NamedTensor, Receipt, Stage};

/// The code of a refusal or a failure. A tenant's own part of the queue is a quota of it.
pub(crate) fn code_of(error: &SubmitError) -> ErrorCode {
    match error {
        SubmitError::QueueFull(Full::Tenant { .. }) => ErrorCode::QuotaExceeded,
        error => error.code(),
    }
}

/// The time after which a client may try again, if the model was too busy.
pub(crate) fn retry_after(error: &SubmitError) -> Option<Duration> {
    match error {
        SubmitError::TooBusy { expected } => Some(*expected),
        _ => None,
    }
}

/// The time from a request's arrival to its deadline.
pub(crate) fn time_given(receipt: &Receipt, deadline: Deadline) -> Duration {
    deadline.instant().saturating_duration_since(receipt.record().arrived)
}

/// The rows of a request to a lane. A model without rows runs each request as one.
pub(crate) fn rows_of(lane: &Lane, submission: &Submission) -> usize {
    match lane.forms_batches() {
        true => submission.inputs.first().map_or(0, |input| input.tensor.rows()),
        false => 1,
    }
}

/// Submit a request to a lane, and note its use of the model, its times and its provider.
pub(crate) async fn submit(
    lane: &Lane,
    submission: Submission,
    receipt: &mut Receipt,
) -> Result<Vec<NamedTensor>, SubmitError> {
    let started = Instant::now();
    receipt.enters(Stage::Queue);
    let submitted = lane.submit(submission, Some(receipt)).await;
    let waited = started.elapsed();
    let record = receipt.note();
    let queued = submitted.as_ref().map_or(waited, |answered| answered.queued);
    record.stages.queue = Some(queued);
    record.stages.infer = Some(waited.saturating_sub(queued));
    if let Err(error) = &submitted {
        record.model = error.used();
    }
    let answered = submitted?;
    record.model = answered.used;
    record.stages.staging = Some(answered.staging);
    (record.batch_rows, record.batch_tenants) = (answered.batch_rows, answered.batch_tenants);
    record.provider = answered.provider;
    record.batch = answered.batch;
    Ok(answered.outputs)
}
