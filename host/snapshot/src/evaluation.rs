//! How a candidate fares beside the pipeline that it may replace, and when it must end.
//!
//! Requests are counted in windows of a fixed number of the candidate's requests. As soon as a
//! window has more failures, slow answers or differences than the bounds allow, the candidate is
//! aborted: it gets no further request on this server, and [`Evaluation::new`]'s function is called
//! once, so that a release can take it away everywhere.
//!
//! Invariant: what is kept of a candidate is bounded, whatever its plugins answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::mismatch::Mismatches;

/// The last differences that are kept, and the values of each.
const DIFFERENCES_MAX: usize = 8;
const VALUES_MAX: usize = 5;

/// The share of a window's answers that may be slow, in percent: so the bound on the latency is one
/// on the 95th percentile.
const SLOW_PERCENT: f64 = 5.0;

/// 2 to the 64th over the golden ratio: its multiples are spread evenly.
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// The bounds of a candidate. One that is not given does not exist.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AbortBounds {
    /// The candidate's requests in a window.
    pub requests: u32,
    /// The failures in a window, in percent.
    pub failure_percent: Option<f64>,
    /// The time within which 95 % of a window's requests are answered.
    pub latency: Option<Duration>,
    /// The answers in a window that differ from those that clients got, in percent.
    pub difference_percent: Option<f64>,
}

/// How one request went.
#[derive(Clone, Copy, Debug)]
pub struct Observed {
    /// Whether it failed for reasons that are not the client's.
    pub failed: bool,
    /// From its start to its answer.
    pub took: Duration,
}

/// The requests of one variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariantTally {
    /// Requests that were answered or failed.
    pub requests: u64,
    /// Of these, failures that are not the client's.
    pub failures: u64,
    /// The time that all of them took.
    pub time: Duration,
    /// The longest time.
    pub slowest: Duration,
}

/// What became of requests for a shadow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShadowTally {
    /// Answers that were compared.
    pub compared: u64,
    /// Of these, answers that differ.
    pub different: u64,
    /// Requests that did not run, because all places were taken or they were too large.
    pub skipped: u64,
}

/// The outcome of comparing two answers.
#[derive(Clone, Debug)]
pub enum Comparison {
    /// They are the same within the tolerance.
    Same,
    /// They differ.
    Different(Mismatches),
}

/// Two answers that differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// When it was found.
    pub at: SystemTime,
    /// The id of the client's request.
    pub request_id: Arc<str>,
    /// The values that differ. The expected ones are those that the client got.
    pub mismatches: Mismatches,
}

/// What is known of a candidate.
#[derive(Clone, Debug, Default)]
pub struct EvaluationReport {
    /// The requests that the pipeline itself answered meanwhile.
    pub stable: VariantTally,
    /// The requests that the candidate ran.
    pub candidate: VariantTally,
    /// Of a shadow.
    pub shadow: ShadowTally,
    /// The last differences, the newest at the end.
    pub differences: Vec<Difference>,
    /// Why it was aborted, if it was.
    pub aborted: Option<String>,
}

/// The counters of a candidate, and its bounds.
pub struct Evaluation {
    bounds: AbortBounds,
    /// The release that brought the candidate.
    since: u64,
    /// Called once, with the reason, if the candidate is aborted.
    abort: Box<dyn Fn(&str) + Send + Sync>,
    state: Mutex<EvaluationState>,
    is_over: AtomicBool,
    /// The requests that were distributed.
    distributed: AtomicU64,
}

#[derive(Default)]
struct EvaluationState {
    stable: VariantTally,
    candidate: VariantTally,
    shadow: ShadowTally,
    differences: VecDeque<Difference>,
    /// The candidate's requests, and the answers that were compared.
    runs: Window,
    comparisons: Window,
    aborted: Option<String>,
}

/// The part of a window that has passed.
#[derive(Default)]
struct Window {
    all: u32,
    failed: u32,
    slow: u32,
    different: u32,
}

impl Evaluation {
    /// The evaluation of a candidate that release `since` brings. `abort` is called once, with the
    /// reason, when a bound is passed. It runs on a serving thread, so it must be quick.
    pub fn new(
        bounds: AbortBounds,
        since: u64,
        abort: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            bounds,
            since,
            abort: Box::new(abort),
            state: Mutex::default(),
            is_over: AtomicBool::new(false),
            distributed: AtomicU64::new(0),
        }
    }

    /// Whether the candidate gets requests.
    pub fn is_running(&self) -> bool {
        !self.is_over.load(Ordering::Relaxed)
    }

    /// Its bounds.
    pub fn bounds(&self) -> &AbortBounds {
        &self.bounds
    }

    /// The release that brought the candidate.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// The next of evenly spread numbers from 0 to 1. Of any series of them, the share below `x` is
    /// `x`, give or take one.
    pub fn next_in_turn(&self) -> f64 {
        in_turn(self.distributed.fetch_add(1, Ordering::Relaxed))
    }

    /// Count a request that the pipeline itself ran.
    pub fn note_stable(&self, observed: Observed) {
        self.state.lock().stable.add(observed);
    }

    /// Count a request that the candidate ran.
    pub fn note_candidate(&self, observed: Observed) {
        let bounds = &self.bounds;
        self.change(|state| {
            state.candidate.add(observed);
            let window = &mut state.runs;
            window.all += 1;
            window.failed += u32::from(observed.failed);
            let is_slow = bounds.latency.is_some_and(|most| observed.took > most);
            window.slow += u32::from(is_slow);
            let Window { failed, slow, .. } = *window;
            let passed = bounds.is_passed(bounds.failure_percent, failed).map(|most| {
                format!("{failed} of {} requests failed: {most} % may", bounds.requests)
            });
            let passed = passed.or_else(|| {
                let latency = bounds.latency?;
                bounds.is_passed(Some(SLOW_PERCENT), slow)?;
                let ms = latency.as_millis();
                Some(format!("{slow} of {} requests took over {ms} ms", bounds.requests))
            });
            window.next(bounds.requests);
            passed
        });
    }

    /// Count an answer of a shadow.
    pub fn note_comparison(&self, request_id: &Arc<str>, comparison: Comparison) {
        let bounds = &self.bounds;
        self.change(|state| {
            state.shadow.compared += 1;
            state.comparisons.all += 1;
            if let Comparison::Different(mut mismatches) = comparison {
                mismatches.keep(VALUES_MAX);
                state.shadow.different += 1;
                state.comparisons.different += 1;
                if state.differences.len() == DIFFERENCES_MAX {
                    state.differences.pop_front();
                }
                let (at, request_id) = (SystemTime::now(), request_id.clone());
                state.differences.push_back(Difference { at, request_id, mismatches });
            }
            let different = state.comparisons.different;
            let passed = bounds.is_passed(bounds.difference_percent, different).map(|most| {
                format!("{different} of {} answers differ: {most} % may", bounds.requests)
            });
            state.comparisons.next(bounds.requests);
            passed
        });
    }

    /// Count a request that a shadow did not run.
    pub fn note_skipped(&self) {
        self.state.lock().shadow.skipped += 1;
    }

    /// What is known by now.
    pub fn report(&self) -> EvaluationReport {
        let state = self.state.lock();
        EvaluationReport {
            stable: state.stable,
            candidate: state.candidate,
            shadow: state.shadow,
            differences: state.differences.iter().cloned().collect(),
            aborted: state.aborted.clone(),
        }
    }

    /// Change the state. If `change` returns that a bound is passed, the candidate is aborted.
    fn change(&self, change: impl FnOnce(&mut EvaluationState) -> Option<String>) {
        let mut state = self.state.lock();
        let Some(reason) = change(&mut state) else { return };
        if state.aborted.is_some() {
            return;
        }
        state.aborted = Some(reason.clone());
        self.is_over.store(true, Ordering::Relaxed);
        drop(state);
        (self.abort)(&reason);
    }
}

impl AbortBounds {
    /// The bound, if so many of a window are more than it allows.
    fn is_passed(&self, percent: Option<f64>, count: u32) -> Option<f64> {
        let most = f64::from(self.requests);
        percent.filter(|percent| f64::from(count) > most * percent / 100.0)
    }
}

impl VariantTally {
    fn add(&mut self, observed: Observed) {
        self.requests += 1;
        self.failures += u64::from(observed.failed);
        self.time += observed.took;
        self.slowest = self.slowest.max(observed.took);
    }
}

impl Window {
    /// Begin the next window if this one has passed.
    fn next(&mut self, requests: u32) {
        if self.all >= requests {
            *self = Self::default();
        }
    }
}

/// The number in the place `turn` of evenly spread ones from 0 to 1.
pub(crate) fn in_turn(turn: u64) -> f64 {
    (turn.wrapping_mul(SPREAD) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const WELL: Observed = Observed { failed: false, took: Duration::from_millis(1) };

    fn evaluation(bounds: AbortBounds) -> (Evaluation, Arc<Mutex<Vec<String>>>) {
        let reasons = Arc::<Mutex<Vec<String>>>::default();
        let kept = reasons.clone();
        let abort = move |reason: &str| kept.lock().push(reason.to_owned());
        (Evaluation::new(bounds, 1, abort), reasons)
    }

    fn bounds() -> AbortBounds {
        AbortBounds {
            requests: 20,
            failure_percent: Some(10.0),
            latency: Some(Duration::from_millis(50)),
            difference_percent: Some(0.0),
        }
    }

    #[test]
    fn a_candidate_is_aborted_once_when_too_many_of_a_window_fail() {
        let (evaluation, reasons) = evaluation(bounds());
        let fails = Observed { failed: true, ..WELL };
        for _ in 0..100 {
            (0..2).for_each(|_| evaluation.note_candidate(fails));
            (0..18).for_each(|_| evaluation.note_candidate(WELL));
        }
        assert!(evaluation.is_running(), "a tenth may fail");
        (0..5).for_each(|_| evaluation.note_candidate(fails));
        assert!(!evaluation.is_running());
        assert_eq!(*reasons.lock(), ["3 of 20 requests failed: 10 % may"]);
        let report = evaluation.report();
        assert_eq!((report.candidate.requests, report.candidate.failures), (2005, 205));
        assert_eq!(report.aborted.as_ref(), reasons.lock().first());
    }

    #[test]
    fn failures_of_the_pipeline_itself_do_not_count_for_the_candidate() {
        let (evaluation, _) = evaluation(bounds());
        (0..100).for_each(|_| evaluation.note_stable(Observed { failed: true, ..WELL }));
        assert!(evaluation.is_running());
        assert_eq!(evaluation.report().stable.failures, 100);
    }

    #[test]
    fn one_slow_request_of_twenty_is_allowed() {
        let (evaluation, reasons) = evaluation(bounds());
        let slow = Observed { took: Duration::from_millis(51), ..WELL };
        for _ in 0..10 {
            evaluation.note_candidate(slow);
            (0..19).for_each(|_| evaluation.note_candidate(WELL));
        }
        assert!(evaluation.is_running());
        (0..2).for_each(|_| evaluation.note_candidate(slow));
        assert_eq!(*reasons.lock(), ["2 of 20 requests took over 50 ms"]);
    }

    #[test]
    fn differences_are_counted_and_the_last_ones_kept() {
        let (evaluation, reasons) =
            evaluation(AbortBounds { difference_percent: None, ..bounds() });
        for number in 0..20 {
            let mut mismatches = Mismatches::default();
            mismatches.add("$", "1", number.to_string());
            let id = number.to_string().into();
            evaluation.note_comparison(&id, Comparison::Different(mismatches));
            evaluation.note_comparison(&id, Comparison::Same);
        }
        let report = evaluation.report();
        assert_eq!((report.shadow.compared, report.shadow.different), (40, 20));
        let kept: Vec<_> = report.differences.iter().map(|one| one.request_id.as_ref()).collect();
        assert_eq!(kept, ["12", "13", "14", "15", "16", "17", "18", "19"]);
        assert!(evaluation.is_running() && reasons.lock().is_empty());
    }

    #[test]
    fn with_no_difference_allowed_the_first_one_aborts() {
        let (evaluation, reasons) = evaluation(bounds());
        let mut mismatches = Mismatches::default();
        mismatches.add("$", "1", "2");
        evaluation.note_comparison(&"id".into(), Comparison::Different(mismatches));
        assert_eq!(*reasons.lock(), ["1 of 20 answers differ: 0 % may"]);
    }

    #[test]
    fn the_turns_are_spread_evenly_from_the_first_on() {
        let (evaluation, _) = evaluation(bounds());
        for share in [0.1, 0.01, 0.5] {
            for _ in 0..20 {
                let taken = (0..1000).filter(|_| evaluation.next_in_turn() < share).count();
                let expected = 1000.0 * share;
                assert!((taken as f64 - expected).abs() <= 3.0, "{taken} of {expected}");
            }
        }
    }
}
