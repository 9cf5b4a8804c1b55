//! One batch: staged, run, taken apart.
//!
//! A batch of one request uses that request's tensors. The tensors of a larger batch, and of one
//! for a device, are copied together once (`stager`). Outputs are row ranges of the batch's
//! outputs, not copies.
//!
//! `run` runs it, and parts of it if it fails.

mod run;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{BatchFigures, BatchRecord, Lengths, ModelUse, Name, Stage, Tensor};
use smallvec::SmallVec;

pub(crate) use self::run::Ran;
use self::run::{Outputs, Run};
use crate::error::SubmitError;
use crate::job::Job;
use crate::policy::{Entry, Taken, joined_key, rows_of};
use crate::running::Instance;
use crate::sharing::Sharing;
use crate::stager::Stager;
use crate::submission::Answered;
use crate::sync::now;
use crate::times::Times;
use crate::upkeep::Refusal;

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
    /// Whether each request was run alone in the end, because rows influence each other.
    are_alone: bool,
    /// The provider that ran it.
    provider: Option<&'static str>,
    /// When it began to run.
    began: Option<Instant>,
    /// Its times.
    times: Times,
    /// How long it took to copy the requests together, if that was done ahead of the run.
    staging_time: Duration,
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

    /// The key of its shape: that of its requests, with the largest bucket among them.
    pub(crate) fn shape_key(&self) -> Option<u64> {
        self.requests().iter().map(|entry| entry.shape_key).reduce(joined_key)
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

    /// Copy the inputs of all requests together, if they run together.
    pub(crate) fn stage(&mut self, stager: &Stager) {
        let requests = &self.taken.batch;
        if stager.lengths(requests).is_some_and(|lengths| !stager.may_fill(requests, &lengths)) {
            return;
        }
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
        let may_not_fill =
            |lengths: &Lengths| sharing.has_filling_ended() || !stager.may_fill(requests, lengths);
        let runs_by_length = stager.lengths(requests).as_ref().is_some_and(may_not_fill);
        if runs_by_length {
            self.staged.clear();
            stager.sort_by_length(&mut self.taken.batch);
        }
        let requests = &self.taken.batch;
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
        let mut run = Run {
            model,
            stop,
            stager,
            sharing,
            staged,
            outcomes,
            shares,
            failing,
            ran,
            are_alone: false,
        };
        if sharing.has_ended() {
            // It may have been staged before that.
            self.padding = 0;
            run.staged.clear();
            run.each_alone(requests);
        } else if runs_by_length {
            self.padding = 0;
            run.by_length(requests);
        } else {
            run.solve(requests, self.padding);
        }
        run.charge_failures(requests);
        let is_shared = requests.iter().any(|entry| entry.tenant != requests[0].tenant);
        self.is_free = is_shared && run.stop.is_ordered();
        self.are_alone = run.are_alone;
        let mut ran = run.ran;
        self.provider = run.model.provider();
        self.times = ran.times;
        self.staged.clear();
        let copied = stager.copies(requests, self.padding);
        let took = if was_staged { self.staging_time } else { ran.times.input };
        ran.staging_time = copied.then_some(took);
        ran.is_at_bucket = !self.are_alone
            && !runs_by_length
            && ran.bisections == 0
            && stager.are_at_bucket(requests);
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
        let Self { provider, times, is_free, are_alone, tenants, .. } = *self;
        let rows = self.rows();
        let batch = self.record(rows);
        let waited = self.outcomes.drain(..).zip(self.queued.drain(..));
        let waited = waited.zip(self.shares.drain(..));
        for (entry, ((outcome, queued), share)) in self.taken.batch.drain(..).zip(waited) {
            let used = match is_free {
                true => ModelUse::default(),
                false => ModelUse { rows: entry.rows, time: share },
            };
            let (batch_rows, batch_tenants) =
                if are_alone { (entry.rows, 1) } else { (rows, tenants) };
            let answered = outcome.map(|outputs| Answered {
                outputs,
                queued,
                times,
                batch_rows,
                batch_tenants,
                used,
                provider,
                batch: batch.clone(),
            });
            entry.item.reply.answer(answered.map_err(|error| error.charged(used)));
        }
    }
}
