//! Submitting a request to a model's lane, and noting the outcome in its receipt.

use std::time::{Duration, Instant};

use gristmill_batch::{Full, Lane, Submission, SubmitError};
use gristmill_core::{Deadline, ErrorCode, ModelRun, Name, Receipt, Span, Stage, Tensor};

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
        SubmitError::TooBusy { expected, .. } => Some(*expected),
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

/// Submit a request to the lane of a model, and note this run of it. Returns the outputs in the
/// model's order.
pub(crate) async fn submit(
    model: &Name,
    lane: &Lane,
    submission: Submission,
    receipt: &mut Receipt,
) -> Result<Vec<Tensor>, SubmitError> {
    let (run, outputs) = run_model(model, lane, submission, receipt).await;
    receipt.note().spans.push(Span::Run(run));
    outputs
}

/// Submit a request to the lane of a model. Returns this run of it, also if it failed.
pub(crate) async fn run_model(
    model: &Name,
    lane: &Lane,
    submission: Submission,
    receipt: &Receipt,
) -> (ModelRun, Result<Vec<Tensor>, SubmitError>) {
    let started = Instant::now();
    receipt.enters(Stage::Queue);
    let submitted = lane.submit(submission, Some(receipt)).await;
    let waited = started.elapsed();
    let queued = submitted.as_ref().map_or(waited, |answered| answered.queued);
    let run = ModelRun::new(model.clone(), queued, waited.saturating_sub(queued));
    let run = ModelRun { began: Some(started), ..run };
    match submitted {
        Ok(answered) => {
            let run = ModelRun {
                staging: Some(answered.times.input),
                used: answered.used,
                batch_rows: answered.batch_rows,
                batch_tenants: answered.batch_tenants,
                provider: answered.provider,
                batch: answered.batch,
                ..run
            };
            (run, Ok(answered.outputs))
        }
        Err(error) => (ModelRun { used: error.used(), ..run }, Err(error)),
    }
}
