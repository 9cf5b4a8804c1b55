//! Running batches: by a worker thread, or by the submitting task where batches are short.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{MutexGuard, PoisonError};
use std::time::Instant;

use gristmill_core::{Model, Tensor};

use crate::SubmitError;
use crate::lane::{Answer, Job, Shared, State};
use crate::policy::Taken;
use crate::statistics::Ran;

/// How many batches a leader runs before it leaves the rest to a worker.
const LEADER_BATCHES_MAX: usize = 4;

/// How much the latest batch counts in the recency-weighted batch time: one part in so many.
const BATCH_TIME_WEIGHT: u32 = 8;

/// A batch and the instance to run it on.
struct Turn {
    batch: Vec<Job>,
    model: Box<dyn Model>,
}

/// A worker: take batches and run them until the lane is closed and its queue empty.
pub(crate) fn run(shared: &Shared) {
    let mut state = shared.state();
    loop {
        if let Some(turn) = next(&mut state) {
            drop(state);
            state = play(shared, turn);
        } else if state.closed && state.policy.queued_rows() == 0 {
            return;
        } else {
            state.waiting_workers += 1;
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiting_workers -= 1;
        }
    }
}

/// A leader: the submitting task runs what is queued itself, its own request among it, for as long
/// as that is short; what then is left goes to a worker.
pub(crate) fn lead(shared: &Shared) {
    let mut state = shared.state();
    for _ in 0..LEADER_BATCHES_MAX {
        let Some(turn) = next(&mut state) else { return };
        drop(state);
        state = play(shared, turn);
    }
    shared.wake_worker(&state);
}

/// The next batch with an idle instance for it; none where either is missing.
fn next(state: &mut State) -> Option<Turn> {
    let model = state.idle.pop()?;
    let Taken { batch, expired } = state.policy.take(Instant::now(), |job| job.reply.is_closed());
    state.statistics.expired += expired.len() as u64;
    for entry in expired {
        let _ = entry.item.reply.send(Err(SubmitError::Expired) as Answer);
    }
    if batch.is_empty() {
        state.idle.push(model);
        return None;
    }
    Some(Turn { batch: batch.into_iter().map(|entry| entry.item).collect(), model })
}

/// Run a batch, answer its requests, put the instance back.
fn play(shared: &Shared, Turn { batch, mut model }: Turn) -> MutexGuard<'_, State> {
    let started = Instant::now();
    let requests: Vec<_> =
        batch.iter().map(|job| (job.tenant.clone(), job.rows, started - job.queued_at)).collect();
    let answers = answer(shared, model.as_mut(), &batch);
    let failed = answers.iter().filter(|answer| answer.is_err()).count();
    let compute = started.elapsed();
    let mut state = shared.state();
    state.idle.push(model);
    state.statistics.count(&Ran { requests: &requests, compute, failed });
    state.batch_time = Some(match state.batch_time {
        Some(time) => (time * (BATCH_TIME_WEIGHT - 1) + compute) / BATCH_TIME_WEIGHT,
        None => compute,
    });
    // Answered under the lock: whoever sees its answer sees it counted, too.
    for ((job, outputs), (_, _, queued)) in batch.into_iter().zip(answers).zip(requests) {
        // An error here means that the submitter is gone.
        let _ = job.reply.send(outputs.map(|outputs| (outputs, queued)));
    }
    state
}

type Outputs = Result<Vec<Tensor>, SubmitError>;

/// Run the batch in one, or, where it cannot be, each request by itself.
fn answer(shared: &Shared, model: &mut dyn Model, batch: &[Job]) -> Vec<Outputs> {
    if batch.len() > 1 && shared.rows_are_dynamic {
        match run_together(shared, model, batch) {
            Ok(answers) => return answers.into_iter().map(Ok).collect(),
            Err(error) => {
                tracing::warn!(%error, requests = batch.len(), "batch failed, running each request by itself");
            }
        }
    }
    batch.iter().map(|job| run_guarded(model, &job.inputs)).collect()
}

fn run_together(
    shared: &Shared,
    model: &mut dyn Model,
    batch: &[Job],
) -> Result<Vec<Vec<Tensor>>, SubmitError> {
    let failed = |text: String| SubmitError::Failed(text);
    let stack = |index: usize| {
        let parts: Vec<_> = batch.iter().map(|job| &job.inputs[index]).collect();
        Tensor::stack(&shared.pool, &parts).map_err(|error| failed(error.to_string()))
    };
    let inputs = (0..batch[0].inputs.len()).map(stack).collect::<Result<Vec<_>, _>>()?;
    let outputs = run_guarded(model, &inputs)?;
    let rows: usize = batch.iter().map(|job| job.rows).sum();
    if let Some(odd) = outputs.iter().find(|output| output.rows() != rows) {
        return Err(failed(format!("{rows} rows went in, {} came out", odd.rows())));
    }
    let mut start = 0;
    let parts = batch.iter().map(|job| {
        let range = start..start + job.rows;
        start += job.rows;
        let part = |output: &Tensor| {
            let part = output.slice_rows(range.clone());
            part.ok_or_else(|| failed("an output cannot be split by rows".into()))
        };
        outputs.iter().map(part).collect()
    });
    parts.collect()
}

/// Run the model; a panic in it is an error of this run.
fn run_guarded(model: &mut dyn Model, inputs: &[Tensor]) -> Outputs {
    match catch_unwind(AssertUnwindSafe(|| model.run(inputs))) {
        Ok(outcome) => outcome.map_err(|error| SubmitError::Failed(error.0)),
        Err(_) => Err(SubmitError::Failed("panicked".into())),
    }
}
