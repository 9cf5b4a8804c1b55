//! One batch: staged, run, taken apart.
//!
//! A batch of one request uses that request's tensors. The tensors of a larger batch, and of one
//! for a device, are copied together once (`stager`). Outputs are row ranges of the batch's
//! outputs, not copies.
//!
//! Invariant: a batch that fails is bisected until the requests at fault are found. The others are
//! answered. If a batch shows that rows influence each other (`sharing`), its requests are run
//! again alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{
    BatchFigures, BatchRecord, Likeness, Model, ModelUse, Name, NamedTensor, Stage, Tensor, Turn,
    run_guarded, run_guarded_with,
};
use smallvec::SmallVec;

use crate::error::{RunError, SubmitError};
use crate::job::Job;
use crate::policy::{Entry, Taken, rows_of};
use crate::running::{Instance, Stop};
use crate::served::{Served, Times};
use crate::sharing::Sharing;
use crate::stager::Stager;
use crate::sync::now;
use crate::upkeep::Refusal;

/// A request's tensor for each output, in the model's order.
type Outputs = Result<Vec<Tensor>, SubmitError>;

/// Requests on their way through an instance. An emptied batch is used again, to save allocations.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) taken: Taken<Job>,
    /// The inputs of all requests together ([`stage`](Self::stage)); empty if the batch is not
    /// staged.
    staged: Vec<Tensor>,
    /// The rows that pad it to an allowed size.
    padding: usize,
    /// The tenants that share it. Set when it is counted.
    pub(crate) tenants: usize,
    /// How long each request was queued. Set when the batch runs.
    queued: Vec<Duration>,
    outcomes: Vec<Outputs>,
    /// The share of each request of its runs: of their CPU time if one thread ran them, else
    /// of the time that they took.
    shares: Vec<Duration>,
    /// Not charged: several tenants shared a run that was interrupted, and the host does not know
    /// whose rows made it long.
    is_free: bool,
    /// The provider that ran it.
    provider: Option<&'static str>,
    /// When it began to run.
    began: Option<Instant>,
    /// Its times.
    times: Times,
    /// How long it took to copy the requests together, if that was done ahead of the run.
    staging_time: Duration,
}

/// A batch that was run.
#[derive(Default)]
pub(crate) struct Ran {
    pub(crate) times: Times,
    /// The number of times that it was cut in half because it failed.
    pub(crate) bisections: u64,
    pub(crate) failed: usize,
    /// How long it took to copy the requests together, ahead of the run or in it. None if they were
    /// not copied.
    pub(crate) staging_time: Option<Duration>,
}

impl Batch {
    pub(crate) fn requests(&self) -> &[Entry<Job>] {
        &self.taken.batch
    }

    /// The last deadline of its requests.
    pub(crate) fn last_deadline(&self) -> Option<Instant> {
        self.requests().iter().map(|entry| entry.deadline).max()
    }

    pub(crate) fn rows(&self) -> usize {
        rows_of(self.requests())
    }

    /// The rows of each tenant, in the order in which the tenants first appear.
    pub(crate) fn tenant_rows(&self) -> SmallVec<[(&Name, usize); 4]> {
        let mut tenant_rows = SmallVec::<[(&Name, usize); 4]>::new();
        for entry in self.requests() {
            match tenant_rows.iter_mut().find(|(tenant, _)| *tenant == &entry.tenant) {
                Some((_, rows)) => *rows += entry.rows,
                None => tenant_rows.push((&entry.tenant, entry.rows)),
            }
        }
        tenant_rows
    }

    /// Copy the inputs of all requests together.
    pub(crate) fn stage(&mut self, stager: &Stager) {
        let started = now();
        self.padding = stager.padding(&self.taken.batch);
        // The same error occurs again when the batch runs, and is answered then.
        let _ = stager.stage(&self.taken.batch, self.padding, &mut self.staged);
        self.staging_time = now() - started;
    }

    /// Run all requests whose submitters still wait. Returns none if no submitter waits.
    pub(crate) fn run(
        &mut self,
        instance: &mut Instance,
        stager: &Stager,
        sharing: &Sharing,
    ) -> Option<Ran> {
        let started = now();
        self.began = Some(started);
        let before = self.taken.batch.len();
        self.taken.batch.retain(|entry| entry.item.reply.take());
        let requests = &self.taken.batch;
        if requests.len() != before {
            // The staged rows include those of requests that are gone.
            self.staged.clear();
        }
        if requests.is_empty() {
            return None;
        }
        for entry in requests {
            self.queued.push(started - entry.arrived);
            if let Some(progress) = entry.item.follow.progress {
                progress.enters(Stage::Infer);
            }
        }
        let was_staged = !self.staged.is_empty();
        if !was_staged {
            self.padding = stager.padding(requests);
        }
        let staged = &mut self.staged;
        let (outcomes, shares) = (&mut self.outcomes, &mut self.shares);
        let (model, stop) = (instance.model.as_mut(), &*instance.stop);
        let (ran, failing) = (Ran::default(), Duration::ZERO);
        let mut run = Run { model, stop, stager, sharing, staged, outcomes, shares, failing, ran };
        if sharing.has_ended() {
            // It may have been staged before that.
            self.padding = 0;
            run.staged.clear();
            run.each_alone(requests);
        } else {
            run.solve(requests, self.padding);
        }
        run.charge_failures(requests);
        let is_shared = requests.iter().any(|entry| entry.tenant != requests[0].tenant);
        self.is_free = is_shared && run.stop.is_ordered();
        let mut ran = run.ran;
        self.provider = run.model.provider();
        self.times = ran.times;
        self.staged.clear();
        let copied = stager.copies(requests, self.padding);
        let took = if was_staged { self.staging_time } else { ran.times.input };
        ran.staging_time = copied.then_some(took);
        ran.failed = self.outcomes.iter().filter(|outcome| outcome.is_err()).count();
        Some(ran)
    }

    /// Tell each request that it is not run, and why.
    pub(crate) fn refuse(&mut self, why: &Refusal) {
        self.staged.clear();
        for entry in self.taken.batch.drain(..) {
            entry.item.reply.answer(Err(SubmitError::OutOfService(why.clone())));
        }
    }

    /// The batch for traces, if one of its requests may be traced.
    fn record(&self, rows: usize) -> Option<Arc<BatchRecord>> {
        let sink = self.requests().iter().find_map(|entry| entry.item.follow.traces)?;
        let Times { input, run, output } = self.times;
        let requests = self.requests().len();
        let figures = BatchFigures { began: self.began?, input, run, output, rows, requests };
        Some(BatchRecord::new(figures, sink))
    }

    /// Give each request its answer.
    pub(crate) fn answer(&mut self) {
        let Self { provider, times, is_free, tenants, .. } = *self;
        let rows = self.rows();
        let batch = self.record(rows);
        let waited = self.outcomes.drain(..).zip(self.queued.drain(..));
        let waited = waited.zip(self.shares.drain(..));
        for (entry, ((outcome, queued), share)) in self.taken.batch.drain(..).zip(waited) {
            let used = match is_free {
                true => ModelUse::default(),
                false => ModelUse { rows: entry.rows, time: share },
            };
            let served = outcome.map(|outputs| Served {
                outputs,
                queued,
                times,
                batch_rows: rows,
                batch_tenants: tenants,
                used,
                provider,
                batch: batch.clone(),
            });
            entry.item.reply.answer(served.map_err(|error| error.charged(used)));
        }
    }
}

/// Providers that round more than the type of the numbers says may serve a declared model.
const CHECK_SLACK: f64 = 50.0;

/// A run of some requests, and its outcomes so far.
struct Run<'a> {
    model: &'a mut dyn Model,
    stop: &'a Stop,
    stager: &'a Stager,
    sharing: &'a Sharing,
    /// The staged inputs; empty if the batch is not staged.
    staged: &'a mut Vec<Tensor>,
    outcomes: &'a mut Vec<Outputs>,
    shares: &'a mut Vec<Duration>,
    /// The time of runs that failed.
    failing: Duration,
    ran: Ran,
}

impl Run<'_> {
    /// Push an outcome for each of `requests`. They are run together with so many rows of
    /// `padding`. If that fails, parts of them are run as they are.
    fn solve(&mut self, requests: &[Entry<Job>], padding: usize) {
        let before = self.outcomes.len();
        let outcome = self.together(requests, padding);
        match outcome {
            Ok(()) => {
                if let Some(why) = self.check(requests, before) {
                    self.sharing.end(&why);
                }
                let is_shared = requests.len() > 1 || padding > 0;
                // Another instance may have ended it meanwhile.
                if is_shared && self.sharing.has_ended() {
                    self.outcomes.truncate(before);
                    self.shares.truncate(before);
                    self.each_alone(requests);
                }
            }
            Err(_) if self.stop.is_ordered() => {
                self.outcomes.extend(requests.iter().map(|_| Err(given_up())));
                self.shares.extend(requests.iter().map(|_| Duration::ZERO));
            }
            Err(SubmitError::Failed {
                source: mixed @ (RunError::Rows { .. } | RunError::Indivisible),
                ..
            }) => {
                self.sharing.end(&mixed.to_string());
                self.each_alone(requests);
            }
            Err(_) if requests.len() <= 1 && padding > 0 => self.solve(requests, 0),
            Err(error) if requests.len() <= 1 => {
                self.outcomes.push(Err(error));
                self.shares.push(Duration::ZERO);
            }
            Err(error) => {
                let count = requests.len();
                tracing::warn!(%error, requests = count, "batch failed: trying its halves");
                self.ran.bisections += 1;
                let (left, right) = requests.split_at(requests.len() / 2);
                self.solve(left, 0);
                self.solve(right, 0);
            }
        }
    }

    /// Run each of `requests` in a batch of its own.
    fn each_alone(&mut self, requests: &[Entry<Job>]) {
        for request in requests {
            self.solve(std::slice::from_ref(request), 0);
        }
    }

    /// If the batch of `requests` is one that is checked, run one of them again alone. Their
    /// outcomes begin at `before`. Returns how the answers differ, if they do.
    fn check(&mut self, requests: &[Entry<Job>], before: usize) -> Option<String> {
        let index = self.sharing.checks(requests.len())?;
        if self.stop.is_ordered() {
            return None;
        }
        let request = requests.get(index..=index)?;
        self.stager.stage(request, 0, self.staged).ok()?;
        let again = run_guarded(self.model, self.staged);
        self.staged.clear();
        let (again, among) = (again.ok()?, self.outcomes.get(before + index)?.as_ref().ok()?);
        let likeness =
            again.iter().zip(among).map(|(alone, among)| Likeness::of(alone, among, CHECK_SLACK));
        let likeness = likeness.fold(Likeness::default(), Likeness::or);
        likeness.differs.then(|| {
            let (requests, influence) = (requests.len(), likeness.influence);
            format!(
                "among {requests} requests, one got another answer than alone: it differs by \
                 {influence:.0e} of its largest element"
            )
        })
    }

    /// Run `requests` together. Pushes an outcome and a share of the time for each of them; if it
    /// fails, it pushes none.
    fn together(&mut self, requests: &[Entry<Job>], padding: usize) -> Result<(), SubmitError> {
        let (before, turn) = (self.ran.times.total(), Turn::begin());
        let attempted = self.attempt(requests, padding);
        let passed = self.ran.times.total() - before;
        // On a busy machine the thread also waits for a core.
        let took = match self.model.ran_on_caller() {
            true => passed.min(Duration::from_nanos(turn.took())),
            false => passed,
        };
        match attempted {
            Ok(()) => self.shares.extend(shares_of(took, requests)),
            Err(_) => self.failing += took,
        }
        attempted
    }

    /// Charge the time of runs that failed to the requests that made them fail, by rows: those that
    /// were in the same batch pay for their own run alone.
    fn charge_failures(&mut self, requests: &[Entry<Job>]) {
        let failed = self.outcomes.iter().map(Result::is_err);
        let pays: SmallVec<[bool; 16]> = match self.outcomes.iter().any(Result::is_err) {
            true => failed.collect(),
            // All succeeded in the end.
            false => requests.iter().map(|_| true).collect(),
        };
        let paying = requests.iter().zip(&pays).filter(|(_, pays)| **pays);
        let rows: usize = paying.map(|(entry, _)| entry.rows).sum();
        for ((entry, pays), share) in requests.iter().zip(pays).zip(self.shares.iter_mut()) {
            if pays {
                *share += part_of(self.failing, entry.rows, rows);
            }
        }
    }

    fn attempt(&mut self, requests: &[Entry<Job>], padding: usize) -> Result<(), SubmitError> {
        if self.stop.is_ordered() {
            return Err(given_up());
        }
        let optional: &[NamedTensor] = match requests {
            [request] => &request.item.optional,
            // Their keys were equal by chance.
            _ if requests.iter().any(|request| !request.item.optional.is_empty()) => {
                return Err(RunError::Indivisible.into());
            }
            _ => &[],
        };
        let started = now();
        if self.staged.is_empty() {
            self.stager.stage(requests, padding, self.staged)?;
        }
        let staged = now();
        let outputs = run_guarded_with(self.model, self.staged, optional);
        self.staged.clear();
        let ran = now();
        let times = &mut self.ran.times;
        times.input += staged - started;
        times.run += ran - staged;
        let outputs = outputs.map_err(RunError::from)?;
        if requests.len() == 1 && padding == 0 {
            self.outcomes.push(Ok(outputs));
        } else {
            take_apart(requests, padding, &outputs, self.outcomes)?;
        }
        self.ran.times.output += now() - ran;
        Ok(())
    }
}

/// The error of a run that was told to end. Its use is noted when the batch is answered.
fn given_up() -> SubmitError {
    SubmitError::GivenUp { used: ModelUse::default() }
}

/// The share of each request of the time of a run, by rows.
fn shares_of(took: Duration, requests: &[Entry<Job>]) -> impl Iterator<Item = Duration> {
    let all = rows_of(requests);
    requests.iter().map(move |entry| part_of(took, entry.rows, all))
}

fn part_of(time: Duration, rows: usize, all: usize) -> Duration {
    time.mul_f64(rows as f64 / all.max(1) as f64)
}

/// Push each request's rows of `outputs`, after which come so many rows of `padding`.
fn take_apart(
    requests: &[Entry<Job>],
    padding: usize,
    outputs: &[Tensor],
    outcomes: &mut Vec<Outputs>,
) -> Result<(), RunError> {
    let rows = padding + rows_of(requests);
    if let Some(odd) = outputs.iter().find(|output| output.rows() != rows) {
        return Err(RunError::Rows { rows_in: rows, padding, rows_out: odd.rows() });
    }
    let before = outcomes.len();
    let mut start = 0;
    for entry in requests {
        let range = start..start + entry.rows;
        start = range.end;
        let part = outputs.iter().map(|output| output.slice_rows(range.clone()));
        let Some(part) = part.collect() else {
            outcomes.truncate(before);
            return Err(RunError::Indivisible);
        };
        outcomes.push(Ok(part));
    }
    Ok(())
}
