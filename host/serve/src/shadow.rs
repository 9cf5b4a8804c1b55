//! A shadow: the candidate of a pipeline runs a request once the client has its answer. Its own
//! answer is compared with that of the client, and dropped.
//!
//! Its plugin calls run on the threads for long calls, in few places, with memory, rows and
//! CPU time of their own. If no place is free, the shadow does not run. At the model its rows
//! wait among those of the tenant's requests, in the last level if there are several.
//!
//! Invariant: a shadow changes nothing about the answer that its request's client gets. The memory
//! of the comparison is counted before it is made.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use gristmill_core::{ClientError, Deadline, ErrorCode, HeldBytes, Receipt};
use gristmill_sandbox::{Request, Response, RunCount};
use gristmill_snapshot::{Comparison, Evaluation, Mismatches, Route, Takes};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::pipeline::{InferError, PipelineAnswer, Work, request_span};
use crate::variant::{Counted, Variant};

/// The largest answer of a client that is kept for the comparison.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// The largest answers that are compared as JSON. As documents they take up to [`JSON_MEMORY`]
/// times their bytes.
const JSON_BYTES_MAX: usize = 64 << 10;
const JSON_MEMORY: usize = 100;

/// A request that a shadow will run.
pub(crate) struct Shadow {
    /// The pipeline that its client asked for.
    of: Arc<Route>,
    request: Request,
    request_id: Arc<str>,
    held: HeldBytes,
}

/// A shadow that runs.
struct Running {
    /// The candidate's way of the request.
    route: Arc<Route>,
    evaluation: Arc<Evaluation>,
    tolerance: f64,
    request: Request,
    request_id: Arc<str>,
    held: HeldBytes,
    _places: [OwnedSemaphorePermit; 2],
}

/// The answer that a client got.
enum Expected {
    Response { status: u16, content_type: String, body: Vec<u8> },
    Failed(ErrorCode),
}

impl Shadow {
    /// The shadow of a request to `route`. None if there is no memory for it.
    pub(crate) fn of(route: &Arc<Route>, request: &Request, id: &Arc<str>) -> Option<Self> {
        let candidate = route.candidate.as_ref()?;
        let shadow_route = candidate.served.as_ref().ok()?;
        // The request's body also stays with the tenant's own memory until the shadow has ended.
        let held = shadow_route.quota.bytes.hold(0);
        let has_room = !route.quota.bytes.is_half_used();
        if !has_room || held.try_add(request.bytes()).is_err() {
            candidate.evaluation.note_skipped();
            return None;
        }
        let (request, request_id) = (request.clone(), id.clone());
        Some(Self { of: route.clone(), request, request_id, held })
    }

    /// Run the request, whose client gets `outcome`, if there is a place. Returns at once.
    pub(crate) fn start(self, outcome: &Result<Response, InferError>) {
        let Some(candidate) = &self.of.candidate else { return };
        let evaluation = candidate.evaluation.clone();
        let expected = match outcome {
            Ok(response) => self.held_copy(response),
            Err(error) if says_nothing(error.code()) => None,
            // The shadow may run when what was missing is there again.
            Err(error) if error.code() == ErrorCode::Unavailable => None,
            Err(error) => Some(Expected::Failed(error.code())),
        };
        let begun = expected.and_then(|expected| {
            let route = candidate.served.as_ref().ok()?.clone();
            let Takes::Shadow { tenant_permits, all_permits, tolerance } = &candidate.takes else {
                return None;
            };
            let tenant_permits = tenant_permits.clone().try_acquire_owned().ok()?;
            let places = [tenant_permits, all_permits.clone().try_acquire_owned().ok()?];
            route.quota.calls.cpu().check(Instant::now()).ok()?;
            Some((expected, route, *tolerance, places))
        });
        let Some((expected, route, tolerance, _places)) = begun else {
            return evaluation.note_skipped();
        };
        let Self { request, request_id, held, .. } = self;
        let span = request_span(&route, &request_id, Some(Variant::Candidate.as_str()), None);
        let running = Running { route, evaluation, tolerance, request, request_id, held, _places };
        tokio::spawn(running.run(expected).instrument(span));
    }

    /// A copy of the answer, for the comparison. None if it is too large.
    fn held_copy(&self, response: &Response) -> Option<Expected> {
        let Response { status, content_type, body, .. } = response;
        let bytes = body.len() + content_type.len();
        let fits = bytes <= ANSWER_BYTES_MAX && self.held.try_add(bytes).is_ok();
        fits.then(|| Expected::Response {
            status: *status,
            content_type: content_type.clone(),
            body: body.clone(),
        })
    }
}

impl Running {
    async fn run(self, expected: Expected) {
        let Self { route, evaluation, tolerance, request, request_id, held, _places } = self;
        let (arrived, timeout) = (Instant::now(), route.limits.timeout);
        let counted = Arc::new(Counted {
            evaluation: evaluation.clone(),
            variant: Variant::Candidate,
            own_model: false,
            // It waits behind the requests of clients, so that it is late says nothing about it.
            is_hurried: true,
            patience: Duration::MAX,
            is_error: AtomicBool::new(false),
        });
        let mut receipt = Receipt::open(arrived);
        receipt.charge_to(counted.clone());
        let deadline = Deadline::at(arrived + timeout);
        let work = Work { is_trial: true, ..Work::new(route, request_id, deadline) };
        let runs = RunCount::default();
        let PipelineAnswer { outcome, .. } = work.run(request, &runs, &mut receipt).await;
        counted.note(&outcome);
        match &outcome {
            Ok(response) => receipt.answered(response.body.len()),
            Err(error) => receipt.failed(error.code(), 0),
        };
        let memory = expected.memory(&outcome);
        match outcome {
            Err(error) if says_nothing(error.code()) => evaluation.note_skipped(),
            Ok(_) if held.try_add(memory).is_err() => evaluation.note_skipped(),
            found => {
                let comparison = expected.compare(found, tolerance);
                evaluation.note_comparison(&work.context.request_id, comparison);
            }
        }
        // The places last: until then the shadow counts.
        drop((work, held, _places));
    }
}

/// Whether a failure shows only that the host is busy, and nothing about the variant.
fn says_nothing(code: ErrorCode) -> bool {
    code.is_busy() || code == ErrorCode::DeadlineExceeded
}

impl Expected {
    /// The memory that the comparison takes besides the expected answer's bytes.
    fn memory(&self, found: &Result<Response, InferError>) -> usize {
        match (self, found) {
            (Self::Response { body, .. }, Ok(answer)) => {
                let found = answer.body.len();
                let is_json = body.len().max(found) <= JSON_BYTES_MAX;
                let documents = if is_json { JSON_MEMORY * (body.len() + found) } else { 0 };
                found + answer.content_type.len() + documents
            }
            _ => 0,
        }
    }

    /// How the shadow's answer differs.
    fn compare(self, found: Result<Response, InferError>, tolerance: f64) -> Comparison {
        let mut mismatches = Mismatches::default();
        match (self, found) {
            (Self::Failed(expected), Err(found)) => {
                let found = found.code();
                if expected != found {
                    mismatches.add("code", expected.as_str(), found.as_str());
                }
            }
            (Self::Failed(expected), Ok(_)) => {
                mismatches.add("code", expected.as_str(), "an answer");
            }
            (Self::Response { .. }, Err(found)) => {
                mismatches.add("code", "an answer", found.code().as_str());
            }
            (Self::Response { status, content_type, body }, Ok(found)) => {
                if status != found.status {
                    mismatches.add("status", status.to_string(), found.status.to_string());
                }
                if content_type != found.content_type {
                    mismatches.add("content_type", content_type, &*found.content_type);
                }
                compare_bodies(&body, &found.body, tolerance, &mut mismatches);
            }
        }
        match mismatches.is_empty() {
            true => Comparison::Same,
            false => Comparison::Different(mismatches),
        }
    }
}

/// Two short documents of JSON are compared value by value, other bodies as they are.
fn compare_bodies(expected: &[u8], found: &[u8], tolerance: f64, mismatches: &mut Mismatches) {
    if expected == found {
        return;
    }
    let json = |body: &[u8]| serde_json::from_slice::<Value>(body).ok();
    let is_short = expected.len().max(found.len()) <= JSON_BYTES_MAX;
    let both = is_short.then(|| json(expected).zip(json(found))).flatten();
    match both {
        Some((expected, found)) => mismatches.add_json(&expected, &found, tolerance),
        None => {
            let bytes = |body: &[u8]| format!("{} bytes", body.len());
            let found = match expected.len() == found.len() {
                true => format!("{}, others", bytes(found)),
                false => bytes(found),
            };
            mismatches.add("body", bytes(expected), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: &str) -> Response {
        let (content_type, headers) = ("application/json".into(), Vec::new());
        Response { status, content_type, headers, body: body.into() }
    }

    fn differences(expected: &str, found: Result<Response, InferError>) -> Vec<String> {
        let Response { status, content_type, body, .. } = response(200, expected);
        let expected = Expected::Response { status, content_type, body };
        match expected.compare(found, 0.01) {
            Comparison::Same => Vec::new(),
            Comparison::Different(mismatches) => {
                mismatches.first.iter().map(ToString::to_string).collect()
            }
        }
    }

    #[test]
    fn answers_are_the_same_within_the_tolerance() {
        assert!(differences("{\"a\":1.0}", Ok(response(200, "{ \"a\": 1.001 }"))).is_empty());
        assert!(differences("text", Ok(response(200, "text"))).is_empty());
        assert_eq!(
            differences("{\"a\":1.0}", Ok(response(500, "{\"a\":2.0}"))),
            ["status: expected 200, found 500", "$.a: expected 1.0, found 2.0"]
        );
        assert_eq!(
            differences("text", Ok(response(200, "tent"))),
            ["body: expected 4 bytes, found 4 bytes, others"]
        );
    }

    #[test]
    fn a_failure_is_the_same_as_one_with_its_code() {
        let late = || InferError::DeadlineExceeded(Duration::ZERO);
        assert_eq!(
            differences("{}", Err(late())),
            ["code: expected an answer, found deadline_exceeded"]
        );
        let failed = || Expected::Failed(ErrorCode::DeadlineExceeded);
        assert!(matches!(failed().compare(Err(late()), 0.0), Comparison::Same));
        let answered = failed().compare(Ok(response(200, "{}")), 0.0);
        assert!(matches!(answered, Comparison::Different(_)));
    }
}
