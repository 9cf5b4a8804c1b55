//! A shadow: the candidate of a pipeline runs a request once the client has its answer. Its own
//! answer is compared with that of the client, and dropped.
//!
//! A shadow has nothing of its client's request to take away: its plugin calls run on the threads
//! for long calls, in few places, with memory, rows and processor time of their own, and its rows
//! are queued behind those of clients. If there is no place for it, it does not run.

use std::sync::Arc;
use std::time::Instant;

use gristmill_compare::Mismatches;
use gristmill_core::{ClientError, Deadline, ErrorCode, HeldBytes, Receipt};
use gristmill_sandbox::{Request, Response};
use gristmill_snapshot::{Comparison, Evaluation, Route, Takes};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument;

use crate::pipeline::{InferError, PipelineAnswer, Queueing, Work, request_span};
use crate::variant::{Counted, Variant, is_busy};

/// The largest answer that is compared.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The largest answer that is compared on a serving thread.
const QUICK_BYTES_MAX: usize = 16 << 10;

/// A request that a shadow will run.
pub(crate) struct Shadow {
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
    /// The shadow of a request to `route`. None if it cannot run now.
    pub(crate) fn of(route: &Route, work: &Work) -> Option<Self> {
        let candidate = route.candidate.as_ref()?.as_ref().ok()?;
        let Takes::Shadow { own, all, tolerance } = &candidate.takes else { return None };
        let evaluation = candidate.evaluation.clone();
        let begun = || {
            let own = own.clone().try_acquire_owned().ok()?;
            let places = [own, all.clone().try_acquire_owned().ok()?];
            let quota = &candidate.route.quota;
            quota.calls.cpu().check(Instant::now()).ok()?;
            // The request's memory stays with the tenant's own until the shadow has ended.
            if route.quota.bytes.is_half_used() {
                return None;
            }
            let held = quota.bytes.hold(0);
            held.try_add(bytes_of(&work.request)).ok()?;
            Some((places, held))
        };
        let Some((_places, held)) = begun() else {
            evaluation.note_skipped();
            return None;
        };
        Some(Self {
            route: candidate.route.clone(),
            evaluation,
            tolerance: *tolerance,
            request: work.request.clone(),
            request_id: work.request_id.clone(),
            held,
            _places,
        })
    }

    /// Run the request, whose client gets `outcome`. Returns at once.
    pub(crate) fn start(self, outcome: &Result<Response, InferError>) {
        let expected = match outcome {
            Ok(response) => self.held_copy(response),
            Err(error) if is_busy(error.code()) => None,
            Err(error) => Some(Expected::Failed(error.code())),
        };
        let Some(expected) = expected else { return self.evaluation.note_skipped() };
        let span = request_span(&self.route, &self.request_id, Some(Variant::Candidate.as_str()));
        tokio::spawn(self.run(expected).instrument(span));
    }

    /// A copy of the answer, for the comparison. None if it is too large.
    fn held_copy(&self, response: &Response) -> Option<Expected> {
        let Response { status, content_type, body, .. } = response;
        let fits = body.len() <= ANSWER_BYTES_MAX && self.held.try_add(body.len()).is_ok();
        fits.then(|| Expected::Response {
            status: *status,
            content_type: content_type.clone(),
            body: body.clone(),
        })
    }

    async fn run(self, expected: Expected) {
        let Self { route, evaluation, tolerance, request, request_id, held, _places } = self;
        let counted = Counted::new(evaluation.clone(), Variant::Candidate);
        let arrived = Instant::now();
        let mut receipt = Receipt::open(arrived);
        receipt.charge_to(counted.clone());
        let work = Work {
            deadline: Deadline::at(arrived + route.limits.timeout),
            route,
            request,
            request_id: request_id.clone(),
            queueing: Queueing::default(),
            is_trial: true,
            receipt,
        };
        let PipelineAnswer { outcome, receipt, .. } = work.run().await;
        counted.note(&outcome);
        match &outcome {
            Ok(response) => receipt.answered(response.body.len()),
            Err(error) => receipt.failed(error.code()),
        };
        let found = match outcome {
            Err(error) if is_busy(error.code()) => return evaluation.note_skipped(),
            Ok(response) if held.try_add(response.body.len()).is_err() => {
                return evaluation.note_skipped();
            }
            found => found,
        };
        let is_quick = found.as_ref().map_or(0, |response| response.body.len()) <= QUICK_BYTES_MAX
            && expected.bytes() <= QUICK_BYTES_MAX;
        let compared = match is_quick {
            true => Ok(expected.compare(found, tolerance)),
            false => tokio::task::spawn_blocking(move || expected.compare(found, tolerance)).await,
        };
        match compared {
            Ok(comparison) => evaluation.note_comparison(&request_id, comparison),
            Err(error) => tracing::error!(%error, "answers cannot be compared"),
        }
        drop((held, _places));
    }
}

/// The bytes of a request that a shadow keeps.
fn bytes_of(request: &Request) -> usize {
    let pairs = request.headers.iter().chain(&request.query);
    let pairs: usize = pairs.map(|(name, value)| name.len() + value.len()).sum();
    let parts: usize = request.parts.iter().map(|part| part.body.len()).sum();
    request.body.len() + parts + pairs
}

impl Expected {
    fn bytes(&self) -> usize {
        match self {
            Self::Response { body, .. } => body.len(),
            Self::Failed(_) => 0,
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

/// Two documents of JSON are compared value by value, other bodies as they are.
fn compare_bodies(expected: &[u8], found: &[u8], tolerance: f64, mismatches: &mut Mismatches) {
    if expected == found {
        return;
    }
    let json = |body: &[u8]| serde_json::from_slice::<Value>(body).ok();
    let is_short = expected.len().max(found.len()) <= ANSWER_BYTES_MAX;
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
        let late = || InferError::DeadlineExceeded(std::time::Duration::ZERO);
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
