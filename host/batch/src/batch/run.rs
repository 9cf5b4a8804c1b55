//! Running the requests of a batch, together or in parts.
//!
//! Invariant: a batch that fails is bisected until the requests at fault are found. The others are
//! answered. If a batch shows that rows influence each other (`sharing`), its requests are run
//! again alone.

use std::time::Duration;

use gristmill_core::{
    Likeness, Model, ModelUse, NamedTensor, Tensor, Turn, run_guarded, run_guarded_with,
};
use smallvec::SmallVec;

use crate::error::{RunError, SubmitError};
use crate::job::Job;
use crate::policy::{Entry, is_lone, rows_of};
use crate::running::Stop;
use crate::sharing::Sharing;
use crate::stager::Stager;
use crate::statistics::Elements;
use crate::sync::now;
use crate::times::Times;

/// A request's tensor for each output, in the model's order.
pub(super) type Outputs = Result<Vec<Tensor>, SubmitError>;

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
    /// The elements of the inputs that may be padded, as they ran.
    pub(crate) elements: Elements,
    /// Whether all requests ran together, at the size of their buckets.
    pub(crate) is_at_bucket: bool,
}

/// How much more than the type of the numbers says the answers of a model that is checked may
/// differ: providers that round more may serve it.
const CHECK_SLACK: f64 = 50.0;

/// A run of some requests, and its outcomes so far.
pub(super) struct Run<'a> {
    pub(super) model: &'a mut dyn Model,
    pub(super) stop: &'a Stop,
    pub(super) stager: &'a Stager,
    pub(super) sharing: &'a Sharing,
    /// The staged inputs; empty if the batch is not staged.
    pub(super) staged: &'a mut Vec<Tensor>,
    pub(super) outcomes: &'a mut Vec<Outputs>,
    pub(super) shares: &'a mut Vec<Duration>,
    /// The time of runs that failed.
    pub(super) failing: Duration,
    pub(super) ran: Ran,
    /// Whether each request was run alone in the end.
    pub(super) are_alone: bool,
}

impl Run<'_> {
    /// Push an outcome for each of `requests`. They are run together with so many rows of
    /// `padding`. If that fails, parts of them are run as they are.
    pub(super) fn solve(&mut self, requests: &[Entry<Job>], padding: usize) {
        let (before, elements) = (self.outcomes.len(), self.ran.elements);
        let outcome = self.together(requests, padding);
        match outcome {
            Ok(()) => {
                let filled = self.stager.filled(requests);
                if let Some(why) = self.check(requests, padding, (&filled[..], before)) {
                    self.sharing.end_for(&why, !filled.is_empty());
                }
                self.again_if_ended(requests, padding, (before, elements));
            }
            Err(_) if self.stop.is_ordered() => {
                self.outcomes.extend(requests.iter().map(|_| Err(given_up())));
                self.shares.extend(requests.iter().map(|_| Duration::ZERO));
            }
            Err(SubmitError::Failed {
                source:
                    mixed @ (RunError::Rows { .. } | RunError::Length { .. } | RunError::Indivisible),
                ..
            }) => {
                let is_of_filling = matches!(mixed, RunError::Length { .. });
                self.sharing.end_for(&mixed.to_string(), is_of_filling);
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
                self.again_if_ended(requests, 0, (before, elements));
            }
        }
    }

    /// Run each of `requests` again alone if they may not share a batch any more, or may not be
    /// filled up: this batch has shown it, or another instance. Their outcomes begin at `before`,
    /// and `elements` ran before them.
    fn again_if_ended(
        &mut self,
        requests: &[Entry<Job>],
        padding: usize,
        (before, elements): (usize, Elements),
    ) {
        let is_shared = requests.len() > 1 || padding > 0;
        if is_shared && self.sharing.has_ended()
            || self.sharing.has_filling_ended() && !self.stager.filled(requests).is_empty()
        {
            self.outcomes.truncate(before);
            self.shares.truncate(before);
            self.ran.elements = elements;
            self.each_alone(requests);
        }
    }

    /// Run each of `requests` in a batch of its own.
    pub(super) fn each_alone(&mut self, requests: &[Entry<Job>]) {
        self.are_alone = true;
        for request in requests {
            self.solve(std::slice::from_ref(request), 0);
        }
    }

    /// Run those of `requests` together that have one length. They stand side by side.
    pub(super) fn by_length(&mut self, requests: &[Entry<Job>]) {
        let stager = self.stager;
        for part in requests.chunk_by(|a, b| stager.lengths_of(a) == stager.lengths_of(b)) {
            self.solve(part, stager.padding(part));
        }
    }

    /// If the batch of `requests` and of `padding` is one that is checked, run one of them again
    /// alone. Some places were `filled` up, and the outcomes begin at `before`. Returns how the
    /// answers differ, if they do.
    fn check(
        &mut self,
        requests: &[Entry<Job>],
        padding: usize,
        (filled, before): (&[usize], usize),
    ) -> Option<String> {
        let index = self.sharing.checks(requests.len(), padding, filled)?;
        if self.stop.is_ordered() {
            return None;
        }
        let request = requests.get(index..=index)?;
        self.stager.stage(request, 0, self.staged).ok()?;
        let again = run_guarded(self.model, self.staged);
        self.staged.clear();
        if self.stop.is_ordered() {
            // Its answer says nothing.
            return None;
        }
        let (again, among) = (again.ok()?, self.outcomes.get(before + index)?.as_ref().ok()?);
        let likeness =
            again.iter().zip(among).map(|(alone, among)| Likeness::of(alone, among, CHECK_SLACK));
        let likeness = likeness.fold(Likeness::default(), Likeness::or);
        likeness.differs.then(|| {
            let (requests, influence) = (requests.len(), likeness.influence);
            let filled = if filled.is_empty() { "" } else { ", filled up to one length" };
            format!(
                "among {requests} requests and {padding} rows of padding{filled}, one got another \
                 answer than alone: it differs by {influence:.0e} of its largest element"
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
            Ok(()) => {
                self.share_out(took, requests);
                self.ran.elements.add(self.stager.elements(requests));
            }
            Err(_) => self.failing += took,
        }
        attempted
    }

    /// Share the time of a run out by rows. All have one length in the run, so each costs the same:
    /// a short row pays for what filled it up.
    fn share_out(&mut self, took: Duration, requests: &[Entry<Job>]) {
        let all = rows_of(requests);
        self.shares.extend(requests.iter().map(|entry| part_of(took, entry.rows, all)));
    }

    /// Charge the time of runs that failed to the requests that made them fail, by rows: those that
    /// were in the same batch pay for their own run alone.
    pub(super) fn charge_failures(&mut self, requests: &[Entry<Job>]) {
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
            // Inputs with defaults, and empty ones, are outside of what was proven.
            if !is_lone(requests[0].shape_key) {
                self.sharing.compare_rows(requests[0].rows, &outputs);
            }
            self.outcomes.push(Ok(outputs));
        } else {
            self.take_apart(requests, padding, &outputs)?;
        }
        self.ran.times.output += now() - ran;
        Ok(())
    }

    /// Push each request's rows of `outputs`, after which come so many rows of `padding`. Rows that
    /// were filled up are cut back.
    fn take_apart(
        &mut self,
        requests: &[Entry<Job>],
        padding: usize,
        outputs: &[Tensor],
    ) -> Result<(), RunError> {
        let rows = padding + rows_of(requests);
        if let Some(odd) = outputs.iter().find(|output| output.rows() != rows) {
            return Err(RunError::Rows { rows_in: rows, padding, rows_out: odd.rows() });
        }
        let lengths = self.stager.lengths(requests);
        if let Some(lengths) = &lengths {
            self.stager.check_lengths(outputs, lengths)?;
        }
        let before = self.outcomes.len();
        let mut start = 0;
        for entry in requests {
            let range = start..start + entry.rows;
            start = range.end;
            let part = outputs.iter().map(|output| output.slice_rows(range.clone()));
            let part: Option<Vec<Tensor>> = part.collect();
            let part = match lengths {
                Some(_) => part.and_then(|part| self.stager.cut(entry, part)),
                None => part,
            };
            let Some(part) = part else {
                self.outcomes.truncate(before);
                return Err(RunError::Indivisible);
            };
            self.outcomes.push(Ok(part));
        }
        Ok(())
    }
}

/// The error of a run that was told to end. Its use is noted when the batch is answered.
fn given_up() -> SubmitError {
    SubmitError::GivenUp { used: ModelUse::default() }
}

/// The part of a time that belongs to `size` of `all`.
fn part_of(time: Duration, size: usize, all: usize) -> Duration {
    time.mul_f64(size as f64 / all.max(1) as f64)
}
