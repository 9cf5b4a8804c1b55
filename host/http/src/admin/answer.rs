//! What handlers answer, and how it leaves: JSON that ends in a newline, for those who read it in a
//! terminal.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use gristmill_control::{ControlError, Published};
use gristmill_core::ErrorCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::problem::Problem;

/// A JSON answer.
pub(super) struct Json(pub(super) Value);

/// An error of the admin plane.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Problem);

pub(super) type Outcome = Result<Json, Refused>;

/// What an answer says that is worth a line in the log.
#[derive(Clone, Debug, Default)]
pub(super) struct Noted {
    pub(super) release: Option<u64>,
    pub(super) digest: Option<String>,
}

impl IntoResponse for Json {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.0.to_string().into());
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        let digest = self.0["digest"].as_str().map(str::to_owned);
        let noted = Noted { release: self.0["release"].as_u64(), digest };
        response.extensions_mut().insert(noted);
        response
    }
}

impl Refused {
    pub(super) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        // Rendered by `AdminPlane::handle`, which knows the request's id.
        let mut response = Response::default();
        response.extensions_mut().insert(self.0);
        response
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<ControlError> for Refused {
    fn from(error: ControlError) -> Self {
        let code = error.code();
        if matches!(code, ErrorCode::Internal | ErrorCode::InsufficientStorage) {
            // The sources name files of this host: they are for the log only.
            tracing::error!(?error, "change failed");
        }
        Self::new(code, error.to_string())
    }
}

pub(super) fn published(release: Published) -> Json {
    Json(json!({ "release": release.release }))
}

/// The problem that an answer stands for: a handler's own, or what axum refused before any handler
/// saw the request.
pub(super) fn problem_of(answer: &Response) -> Option<Problem> {
    if let Some(problem) = answer.extensions().get::<Problem>() {
        return Some(problem.clone());
    }
    match answer.status() {
        status if status.is_client_error() => {
            let detail = "the path cannot be read: names are UTF-8";
            Some(Problem::new(ErrorCode::InvalidRequest, detail))
        }
        status if status.is_server_error() => {
            Some(Problem::new(ErrorCode::Internal, status.to_string()))
        }
        _ => None,
    }
}

/// The answer with its body in one piece.
pub(super) async fn whole(answer: Response) -> Result<http::Response<Bytes>, Problem> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    Ok(http::Response::from_parts(head, body.to_bytes()))
}

/// The answer as it is sent.
pub(super) fn ended(mut answer: http::Response<Bytes>) -> http::Response<Full<Bytes>> {
    // axum's, without the newline; hyper counts anew.
    answer.headers_mut().remove(CONTENT_LENGTH);
    answer.map(|body| {
        let mut text = Vec::from(body);
        if !text.is_empty() {
            text.push(b'\n');
        }
        Full::new(text.into())
    })
}

/// The status that a problem is answered with, for the log.
pub(super) fn status_of(problem: &Problem) -> StatusCode {
    crate::problem::status_of(problem.code)
}
