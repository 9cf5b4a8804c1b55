//! Small answers that several edges give.

use bytes::Bytes;
use gristmill_serve::{Gate, Key};
use gristmill_snapshot::Snapshot;
use gristmill_transport::body::{Answer, ResponseBody, answer_of};
use gristmill_transport::credentials;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

/// An answer of this type with this body.
pub(crate) fn answer(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = answer_of(ResponseBody::from(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

/// A JSON document as an answer.
pub(crate) fn json(document: &impl Serialize) -> Answer {
    answer("application/json", serde_json::to_vec(document).unwrap_or_default())
}

/// A number as a header's value. The conversion of `http` allocates twice.
pub(crate) fn number(number: u64) -> Option<HeaderValue> {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).ok()
}

/// The answer that says that the server is alive.
pub(crate) fn live() -> Answer {
    answer("text/plain", Bytes::from_static(b"live"))
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(ResponseBody::default());
    *answer.status_mut() = status;
    answer
}

/// The API key of a request, if it has credentials.
pub(crate) fn key_of(headers: &HeaderMap, gate: &Gate, snapshot: &Snapshot) -> Option<Key> {
    credentials::bearer(headers).map(|token| gate.key(snapshot, token))
}
