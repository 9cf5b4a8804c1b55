//! Real requests of a pipeline that are kept with their answers, so that people can make samples of
//! them. A pipeline keeps none unless its document says so.
//!
//! Invariants:
//! - what is kept is bounded, counts against its tenant's budget, and is in memory only;
//! - the values of the headers that the document names are not kept.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use bytes::Bytes;
use gristmill_core::{ByteBudget, ErrorCode, HeldBytes};
use gristmill_sandbox::{Request, Response};
use parking_lot::Mutex;

use crate::evaluation::in_turn;

/// The largest body of a request or an answer that is kept.
const BODY_BYTES_MAX: usize = 64 << 10;

/// What stands in place of the value of a header.
const REDACTED: &str = "redacted";

/// The requests of a pipeline that are kept.
pub struct Capture {
    share: f64,
    most: usize,
    /// The names of headers, in lower case.
    redacted: Vec<String>,
    budget: Arc<ByteBudget>,
    /// The requests that were asked about.
    asked: AtomicU64,
    kept: Mutex<VecDeque<Captured>>,
}

/// A request with its answer.
#[derive(Clone, Debug)]
pub struct Captured {
    /// When it was answered.
    pub at: SystemTime,
    /// Its id.
    pub request_id: Arc<str>,
    /// The request, without parts of a form.
    pub request: Request,
    /// What the client got.
    pub answer: CapturedAnswer,
    _held: Arc<HeldBytes>,
}

/// The answer that a client got.
#[derive(Clone, Debug)]
pub enum CapturedAnswer {
    /// The plugin's response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The content type; it may be empty.
        content_type: String,
        /// The body.
        body: Bytes,
    },
    /// There was no response, for this reason.
    Failed(ErrorCode),
}

/// A request that will be kept when it is answered.
pub struct Capturing {
    to: Arc<Capture>,
    request_id: Arc<str>,
    request: Request,
    held: HeldBytes,
}

impl Capture {
    /// Keep the last `most` of this share of the requests, from 0 to 1, without the values of the
    /// headers `redacted`. What is kept counts against `budget`.
    pub fn new(share: f64, most: usize, redacted: Vec<String>, budget: Arc<ByteBudget>) -> Self {
        let (asked, kept) = (AtomicU64::new(0), Mutex::default());
        Self { share, most, redacted, budget, asked, kept }
    }

    /// Keep the request, if it is its turn and if it is small enough. Requests with parts of a form
    /// are not kept.
    pub fn begin(self: &Arc<Self>, request: &Request, id: &Arc<str>) -> Option<Capturing> {
        let is_its_turn = in_turn(self.asked.fetch_add(1, Ordering::Relaxed)) < self.share;
        let fits = request.parts.is_empty() && request.body.len() <= BODY_BYTES_MAX;
        if !is_its_turn || !fits || self.budget.is_half_used() {
            return None;
        }
        let value = |name: &str, value: &str| match self
            .redacted
            .iter()
            .any(|redacted_name| redacted_name == name)
        {
            true => REDACTED.to_owned(),
            false => value.to_owned(),
        };
        let headers = request.headers.iter();
        let headers: Vec<_> =
            headers.map(|(name, sent)| (name.clone(), value(name, sent))).collect();
        let mut request = Request { headers, ..request.clone() };
        let held = self.budget.hold(0);
        held.try_add(request.bytes()).ok()?;
        // The body can be a small part of a large buffer.
        request.body = Bytes::copy_from_slice(&request.body);
        Some(Capturing { to: self.clone(), request_id: id.clone(), request, held })
    }

    /// The requests that are kept, the newest at the end.
    pub fn kept(&self) -> Vec<Captured> {
        self.kept.lock().iter().cloned().collect()
    }
}

impl Capturing {
    /// Keep the request with this answer, unless the answer is too large.
    pub fn answered(self, answer: Result<&Response, ErrorCode>) {
        let answer = match answer {
            Ok(Response { status, content_type, body, .. }) => {
                if body.len() > BODY_BYTES_MAX || self.held.try_add(body.len()).is_err() {
                    return;
                }
                let body = Bytes::copy_from_slice(body);
                CapturedAnswer::Response {
                    status: *status,
                    content_type: content_type.clone(),
                    body,
                }
            }
            Err(code) => CapturedAnswer::Failed(code),
        };
        let Self { to, request_id, request, held } = self;
        let at = SystemTime::now();
        let captured = Captured { at, request_id, request, answer, _held: Arc::new(held) };
        let mut kept = to.kept.lock();
        let oldest = if kept.len() == to.most { kept.pop_front() } else { None };
        kept.push_back(captured);
        drop(kept);
        drop(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture(share: f64, budget: &Arc<ByteBudget>) -> Arc<Capture> {
        Arc::new(Capture::new(share, 3, vec!["x-user".into()], budget.clone()))
    }

    fn request(body: &str) -> Request {
        let headers = ["x-user", "x-trace"].map(|name| (name.to_owned(), "7".to_owned()));
        Request { headers: headers.into(), body: body.to_owned().into(), ..Request::default() }
    }

    fn response(body: usize) -> Response {
        let (content_type, headers) = ("text/plain".into(), Vec::new());
        Response { status: 200, content_type, headers, body: vec![b'x'; body] }
    }

    #[test]
    fn the_last_requests_are_kept_without_what_is_redacted() {
        let budget = ByteBudget::new(1 << 20);
        let capture = capture(1.0, &budget);
        for number in 0..5 {
            let id = number.to_string().into();
            let capturing = capture.begin(&request("body"), &id).unwrap();
            capturing.answered(Ok(&response(7)));
        }
        let kept = capture.kept();
        let ids: Vec<_> = kept.iter().map(|one| &*one.request_id).collect();
        assert_eq!(ids, ["2", "3", "4"]);
        let values: Vec<_> = kept[0].request.headers.iter().map(|(_, value)| &**value).collect();
        assert_eq!(values, ["redacted", "7"]);
        let each = budget.held() / 3;
        assert!(each > 11, "{each}");
        drop(kept);
        drop(capture);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn what_is_too_large_or_has_no_room_is_not_kept() {
        let budget = ByteBudget::new(200 << 10);
        let capture = capture(1.0, &budget);
        let id: Arc<str> = "id".into();
        assert!(capture.begin(&request(&"x".repeat(BODY_BYTES_MAX + 1)), &id).is_none());
        let capturing = capture.begin(&request("body"), &id).unwrap();
        capturing.answered(Ok(&response(BODY_BYTES_MAX + 1)));
        let held = budget.hold(150 << 10);
        assert!(capture.begin(&request("body"), &id).is_none());
        drop(held);
        assert!(capture.kept().is_empty() && budget.held() == 0);
        let failed = capture.begin(&request("body"), &id).unwrap();
        failed.answered(Err(ErrorCode::PluginTrapped));
        assert_eq!(capture.kept().len(), 1);
    }

    #[test]
    fn a_share_of_the_requests_is_kept() {
        let budget = ByteBudget::new(1 << 20);
        let capture = capture(0.25, &budget);
        let kept = (0..100).filter(|_| capture.begin(&request(""), &"id".into()).is_some());
        assert!((23..=27).contains(&kept.count()));
    }
}
