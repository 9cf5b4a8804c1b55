//! Which variant of a pipeline runs a request: the pipeline itself or its candidate; and whether
//! the candidate runs it besides, as a shadow.
//!
//! Invariant: requests with the same value of the candidate's header get the same variant, on every
//! server and after a restart, as long as the candidate's share is the same. A larger share takes
//! further values, and gives none back.
//!
//! Invariant: a candidate answers only for what it did in time that it had. A client's slow upload
//! or short deadline, and a refusal because of load, do not count as its failures, unless the load
//! is on a model of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_core::{ErrorCode, Named, Outcome, Record, Sink};
use gristmill_sandbox::Response;
use gristmill_snapshot::{Candidate, Evaluation, Observed, Route, Takes};
use gristmill_transport::status_of;
use sha2::{Digest, Sha256};

use crate::pipeline::InferError;

/// A variant of a pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The pipeline itself.
    Stable,
    /// Its candidate.
    Candidate,
}

impl Variant {
    /// Its name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Candidate => "candidate",
        }
    }
}

/// The variant that runs a request.
pub struct Chosen {
    /// Its way of the request.
    pub route: Arc<Route>,
    /// Its part in the evaluation of the candidate, if there is a candidate.
    pub part: Option<TrialPart>,
}

/// The part of a request in the evaluation of a candidate.
pub struct TrialPart {
    /// The variant that answers.
    pub variant: Variant,
    /// The counters.
    pub(crate) evaluation: Arc<Evaluation>,
    /// The pipeline whose candidate also runs the request, as a shadow.
    pub(crate) shadowed: Option<Arc<Route>>,
    /// Whether the candidate that answers has a model of its own.
    pub(crate) own_model: bool,
}

/// Counts a request in the evaluation of a candidate, when its receipt is closed.
pub(crate) struct Counted {
    pub(crate) evaluation: Arc<Evaluation>,
    pub(crate) variant: Variant,
    /// Whether the candidate that answers has a model of its own: then it is up to the candidate if
    /// that has no room.
    pub(crate) own_model: bool,
    /// Whether the client left much less time than the pipeline gives: it wished so, or it took
    /// long to send the request.
    pub(crate) is_hurried: bool,
    /// A client that leaves after so long has not left for its own reasons, and one that gave so
    /// much time has given enough.
    pub(crate) patience: Duration,
    /// Whether the plugin answered with a status of 500 or more, or one of the request's rows.
    pub(crate) is_error: AtomicBool,
}

impl Counted {
    /// Note the pipeline's own answer, to the request or to one of its rows.
    pub(crate) fn note(&self, outcome: &Result<Response, InferError>) {
        let is_error = outcome.as_ref().is_ok_and(|response| response.status >= 500);
        self.is_error.fetch_or(is_error, Ordering::Relaxed);
    }
}

impl Named for Counted {}

impl Sink for Counted {
    fn record(&self, record: &Record, took: Duration) {
        let failed = match record.outcome {
            Outcome::Abandoned if took < self.patience => return,
            Outcome::Abandoned => true,
            Outcome::Failed(ErrorCode::DeadlineExceeded)
                if self.is_hurried && took < self.patience =>
            {
                return;
            }
            Outcome::Failed(ErrorCode::QueueFull | ErrorCode::Overloaded) if self.own_model => true,
            Outcome::Failed(code) if code.is_busy() => return,
            Outcome::Failed(code) => status_of(code).is_server_error(),
            Outcome::Answered => self.is_error.load(Ordering::Relaxed),
        };
        let observed = Observed { failed, took };
        match self.variant {
            Variant::Stable => self.evaluation.note_stable(observed),
            Variant::Candidate => self.evaluation.note_candidate(observed),
        }
    }
}

/// Choose the variant of the pipeline `route` that runs a request. `header` looks up a header of
/// the request.
pub fn choose<'h>(route: &Arc<Route>, header: impl FnOnce(&str) -> Option<&'h [u8]>) -> Chosen {
    let stable = |part| Chosen { route: route.clone(), part };
    let Some(candidate) = &route.candidate else { return stable(None) };
    let evaluation = candidate.evaluation.clone();
    let served = candidate.served.as_ref().ok().filter(|_| evaluation.is_running());
    let taken = served.filter(|_| is_taken(route, candidate, header));
    let part =
        |variant, shadowed, own_model| TrialPart { variant, evaluation, shadowed, own_model };
    match (taken, &candidate.takes) {
        (Some(chosen), Takes::Traffic) => {
            let own_model = !chosen.program.shares_lane_with(&route.program);
            Chosen { route: chosen.clone(), part: Some(part(Variant::Candidate, None, own_model)) }
        }
        (Some(_), Takes::Shadow { .. }) => {
            stable(Some(part(Variant::Stable, Some(route.clone()), false)))
        }
        (None, _) => stable(Some(part(Variant::Stable, None, false))),
    }
}

/// Whether the candidate gets the request.
fn is_taken<'h>(
    route: &Route,
    candidate: &Candidate,
    header: impl FnOnce(&str) -> Option<&'h [u8]>,
) -> bool {
    let value = candidate.sticky_header.as_deref().and_then(header);
    let place = match value {
        Some(value) => place_of(&[route.tenant.as_str(), route.pipeline.as_str()], value),
        None => candidate.evaluation.next_in_turn(),
    };
    place < candidate.share
}

/// The place of a header's value among all, from 0 to 1: another one for each pipeline, so that not
/// the same clients get every candidate.
fn place_of(pipeline: &[&str; 2], value: &[u8]) -> f64 {
    let mut hash = Sha256::new();
    for name in pipeline {
        hash.update(name);
        hash.update([0]);
    }
    hash.update(value);
    let digest = hash.finalize();
    let first = digest.iter().take(7).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    // Of 56 bits, the 53 that a number with a point has.
    (first >> 3) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use gristmill_core::Receipt;
    use gristmill_snapshot::AbortBounds;

    use super::*;

    const PIPELINE: [&str; 2] = ["acme", "digits"];

    /// The failures that are counted of a candidate whose request ends with `code`.
    fn failures(code: ErrorCode, is_hurried: bool, took: Duration) -> u64 {
        let bounds = AbortBounds {
            requests: 100,
            failure_percent: None,
            latency: None,
            difference_percent: None,
        };
        let evaluation = Arc::new(Evaluation::new(bounds, 1, |_| ()));
        let counted = Counted {
            evaluation: evaluation.clone(),
            variant: Variant::Candidate,
            own_model: false,
            is_hurried,
            patience: Duration::from_secs(5),
            is_error: AtomicBool::new(false),
        };
        let mut receipt = Receipt::open(Instant::now());
        receipt.note().outcome = Outcome::Failed(code);
        counted.record(receipt.record(), took);
        evaluation.report().candidate.failures
    }

    #[test]
    fn a_candidate_has_failed_if_it_had_the_time_and_gave_no_answer() {
        let late = |is_hurried, seconds| {
            failures(ErrorCode::DeadlineExceeded, is_hurried, Duration::from_secs(seconds))
        };
        assert_eq!((late(false, 10), late(false, 1)), (1, 1));
        assert_eq!((late(true, 4), late(true, 5)), (0, 1), "after the time that is enough");
        assert_eq!(failures(ErrorCode::PluginTrapped, true, Duration::ZERO), 1);
        assert_eq!(failures(ErrorCode::QueueFull, false, Duration::ZERO), 0);
    }

    #[test]
    fn values_are_spread_evenly_and_each_keeps_its_place() {
        let place = |user: u32| place_of(&PIPELINE, user.to_string().as_bytes());
        for share in [0.1, 0.5, 0.9] {
            let taken = (0..10_000).filter(|user| place(*user) < share).count() as f64;
            assert!((taken - 10_000.0 * share).abs() < 200.0, "{taken} of {share}");
        }
        // A change of the hash would give clients another variant at an update.
        assert_eq!((place(7) * 1e6) as u32, 609_414);
    }

    #[test]
    fn the_places_differ_from_pipeline_to_pipeline() {
        let other = ["acme", "digits2"];
        let both = (0..10_000_u32).filter(|user| {
            let user = user.to_string();
            [PIPELINE, other].iter().all(|path| place_of(path, user.as_bytes()) < 0.5)
        });
        let both = both.count();
        assert!((2300..2700).contains(&both), "{both} of 10,000 are in both halves");
        assert_ne!(place_of(&["a", "bc"], b""), place_of(&["ab", "c"], b""));
    }
}
