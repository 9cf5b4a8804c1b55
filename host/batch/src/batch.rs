//! One batch: staged, run, taken apart.
//!
//! A batch of one request is that request's tensors themselves; a larger one is copied together once,
//! into pooled buffers. Outputs are row ranges of the batch's outputs, not copies.
//!
//! Invariant: a batch that fails is bisected until the requests that fail by themselves are found; the
//! others are answered.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{BufferPool, Model, Tensor};

use crate::SubmitError;
use crate::lane::Job;
use crate::policy::{Entry, Taken};
use crate::running::{Instance, Stop};
use crate::ticket::Served;

/// What a request came to: a tensor for each output, in the model's order.
type Outputs = Result<Vec<Tensor>, SubmitError>;

/// Requests on their way through an instance; emptied, kept for its allocations.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) taken: Taken<Job>,
    /// The inputs of all requests as of [`stage`](Self::stage); empty where not staged.
    staged: Vec<Tensor>,
    /// How long each request was queued, once the batch runs.
    queued: Vec<Duration>,
    outcomes: Vec<Outputs>,
    /// What ran it.
    provider: Option<&'static str>,
    /// Where its time went.
    times: Times,
    /// How long it took to copy it together, where that was done ahead of the run.
    staging_time: Duration,
}

/// A batch that was run.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) times: Times,
    /// How often it was cut in half because it failed.
    pub(crate) bisections: u64,
    pub(crate) failed: usize,
    pub(crate) requests: usize,
    /// How long it took to copy the requests together, whenever that was.
    pub(crate) staging_time: Duration,
}

/// Where a batch's time went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Staging the inputs.
    pub input: Duration,
    /// In the model.
    pub infer: Duration,
    /// Taking the outputs apart.
    pub output: Duration,
}

impl Times {
    /// All of it.
    pub fn total(&self) -> Duration {
        self.input + self.infer + self.output
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.input += other.input;
        self.infer += other.infer;
        self.output += other.output;
    }
}

impl Batch {
    pub(crate) fn requests(&self) -> &[Entry<Job>] {
        &self.taken.batch
    }

    /// When the last of its requests is waited for no more.
    pub(crate) fn last_deadline(&self) -> Option<Instant> {
        self.requests().iter().map(|entry| entry.deadline).max()
    }

    pub(crate) fn rows(&self) -> usize {
        self.requests().iter().map(|entry| entry.rows).sum()
    }

    /// Stage all requests.
    pub(crate) fn stage(&mut self, pool: &BufferPool) {
        let started = Instant::now();
        let Self { taken, staged, .. } = self;
        // An error is met again, and answered for, when the batch runs.
        let _ = stage(&taken.batch, staged, pool);
        self.staging_time = started.elapsed();
    }

    /// Run all requests that are still waited for; none where there is none.
    pub(crate) fn run(&mut self, instance: &mut Instance, pool: &BufferPool) -> Option<Ran> {
        let started = Instant::now();
        let before = self.taken.batch.len();
        self.taken.batch.retain(|entry| entry.item.reply.take());
        let requests = &self.taken.batch;
        if requests.len() != before {
            // Staged with the rows of those who left.
            self.staged.clear();
        }
        if requests.is_empty() {
            return None;
        }
        self.queued.extend(requests.iter().map(|entry| started - entry.arrived));
        let was_staged = !self.staged.is_empty();
        let staged = &mut self.staged;
        let outcomes = &mut self.outcomes;
        let (model, stop) = (instance.model.as_mut(), &*instance.stop);
        let mut run = Run { model, stop, pool, staged, outcomes, ran: Ran::default() };
        run.solve(requests);
        let mut ran = run.ran;
        self.provider = run.model.provider();
        self.times = ran.times;
        self.staged.clear();
        ran.staging_time = if was_staged { self.staging_time } else { ran.times.input };
        ran.requests = self.taken.batch.len();
        ran.failed = self.outcomes.iter().filter(|outcome| outcome.is_err()).count();
        Some(ran)
    }

    /// Answer each request that it is not run.
    pub(crate) fn refuse(&mut self, why: &Arc<str>) {
        self.staged.clear();
        for entry in self.taken.batch.drain(..) {
            entry.item.reply.answer(Err(SubmitError::OutOfService(why.clone())));
        }
    }

    /// Give each request its answer.
    pub(crate) fn answer(&mut self) {
        let Self { provider, times, .. } = *self;
        let waited = self.outcomes.drain(..).zip(self.queued.drain(..));
        for (entry, (outcome, queued)) in self.taken.batch.drain(..).zip(waited) {
            let served = outcome.map(|outputs| Served { outputs, queued, times, provider });
            entry.item.reply.answer(served);
        }
    }
}

/// A run of some requests, and what came of it so far.
struct Run<'a> {
    model: &'a mut dyn Model,
    stop: &'a Stop,
    pool: &'a BufferPool,
    /// Inputs staged already; empty where not.
    staged: &'a mut Vec<Tensor>,
    outcomes: &'a mut Vec<Outputs>,
    ran: Ran,
}

impl Run<'_> {
    /// Push an outcome for each of `requests`.
    fn solve(&mut self, requests: &[Entry<Job>]) {
        let outcome = self.together(requests);
        match outcome {
            Ok(()) => {}
            Err(_) if self.stop.is_ordered() => {
                self.outcomes.extend(requests.iter().map(|_| Err(SubmitError::GivenUp)));
            }
            Err(error) if requests.len() <= 1 => self.outcomes.push(Err(error)),
            Err(error) => {
                tracing::warn!(%error, requests = requests.len(), "batch failed, cut in half");
                self.ran.bisections += 1;
                let (left, right) = requests.split_at(requests.len() / 2);
                self.solve(left);
                self.solve(right);
            }
        }
    }

    /// Run `requests` in one; pushes an outcome for each of them, or none and fails.
    fn together(&mut self, requests: &[Entry<Job>]) -> Result<(), SubmitError> {
        if self.stop.is_ordered() {
            return Err(SubmitError::GivenUp);
        }
        let started = Instant::now();
        if self.staged.is_empty() {
            stage(requests, self.staged, self.pool)?;
        }
        let staged = Instant::now();
        let outputs = run_guarded(self.model, self.staged);
        self.staged.clear();
        let ran = Instant::now();
        let times = &mut self.ran.times;
        times.input += staged - started;
        times.infer += ran - staged;
        let outputs = outputs?;
        if requests.len() == 1 {
            self.outcomes.push(Ok(outputs));
        } else {
            take_apart(requests, &outputs, self.outcomes)?;
        }
        self.ran.times.output += ran.elapsed();
        Ok(())
    }
}

/// The inputs of all `requests` together into `staged`, which is empty.
fn stage(
    requests: &[Entry<Job>],
    staged: &mut Vec<Tensor>,
    pool: &BufferPool,
) -> Result<(), SubmitError> {
    let [first, rest @ ..] = requests else { return Ok(()) };
    if rest.is_empty() {
        staged.extend(first.item.inputs.iter().map(|input| input.tensor.clone()));
        return Ok(());
    }
    for index in 0..first.item.inputs.len() {
        let parts = requests.iter().map(|entry| &entry.item.inputs[index].tensor);
        match Tensor::stack(pool, parts) {
            Ok(stacked) => staged.push(stacked),
            Err(error) => {
                staged.clear();
                return Err(SubmitError::Failed(error.to_string()));
            }
        }
    }
    Ok(())
}

/// Each request's rows of `outputs`.
fn take_apart(
    requests: &[Entry<Job>],
    outputs: &[Tensor],
    outcomes: &mut Vec<Outputs>,
) -> Result<(), SubmitError> {
    let failed = |text: String| SubmitError::Failed(text);
    let rows: usize = requests.iter().map(|entry| entry.rows).sum();
    if let Some(odd) = outputs.iter().find(|output| output.rows() != rows) {
        return Err(failed(format!("{rows} rows went in, {} came out", odd.rows())));
    }
    let before = outcomes.len();
    let mut start = 0;
    for entry in requests {
        let range = start..start + entry.rows;
        start = range.end;
        let part = outputs.iter().map(|output| output.slice_rows(range.clone()));
        let Some(part) = part.collect() else {
            outcomes.truncate(before);
            return Err(failed("an output cannot be split by rows".into()));
        };
        outcomes.push(Ok(part));
    }
    Ok(())
}

/// Run the model; a panic in it is an error of this run.
fn run_guarded(model: &mut dyn Model, inputs: &[Tensor]) -> Outputs {
    match catch_unwind(AssertUnwindSafe(|| model.run(inputs))) {
        Ok(outcome) => outcome.map_err(|error| SubmitError::Failed(error.0)),
        Err(_) => Err(SubmitError::Failed("panicked".into())),
    }
}
