//! The answer of a resource: a JSON document.

use bytes::Bytes;
use gristmill_control::Published;
use gristmill_core::{Digest, ErrorCode};
use gristmill_transport::Problem;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};
use serde::Serialize;

/// The outcome of a request to a resource.
pub(crate) type Outcome = Result<Answer, Problem>;

/// A JSON document, and the parts of it that the log names.
pub(crate) struct Answer {
    pub(crate) body: Vec<u8>,
    pub(crate) noted: Noted,
}

/// The parts of an answer that the log names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    pub(crate) release: Option<u64>,
    pub(crate) digest: Option<Digest>,
}

/// The answer to a change.
#[derive(Serialize)]
pub(crate) struct Released {
    pub(crate) release: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<Digest>,
}

impl Answer {
    /// An answer without parts for the log.
    pub(crate) fn of(document: &impl Serialize) -> Outcome {
        Self::noted(document, Noted::default())
    }

    /// An answer. The log names the parts in `noted`.
    pub(crate) fn noted(document: &impl Serialize, noted: Noted) -> Outcome {
        let body = serde_json::to_vec(document);
        let body = body.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
        Ok(Self { body, noted })
    }

    /// The answer to a change that made a release. If the change put a file, `digest` is the
    /// file's.
    pub(crate) fn released(published: Published, digest: Option<Digest>) -> Outcome {
        let release = published.release;
        Self::noted(&Released { release, digest }, Noted { release: Some(release), digest })
    }

    /// The HTTP response.
    pub(crate) fn into_response(self) -> Response<Bytes> {
        let mut response = Response::new(Bytes::from(self.body));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}
