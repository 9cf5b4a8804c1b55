//! Errors as clients see them: RFC 9457 problem documents.
//!
//! Invariant: one function maps the codes of errors to the statuses of HTTP ([`status_of`]).

use std::fmt::{self, Write};

use bytes::Bytes;
use gristmill_core::{ClientError, ErrorCode};
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::{Map, Value};

/// The longest text of an error.
const DETAIL_BYTES_MAX: usize = 8 << 10;

/// The member with all faults of the request's document.
const ERRORS: &str = "errors";

/// An error as a client sees it.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The stable code. It decides the status.
    pub code: ErrorCode,
    /// The text for the client.
    pub detail: String,
    /// The time after which to try again, in seconds. It is sent with the statuses 429 and 503.
    pub retry_after_s: u64,
    /// The header `Allow`, if the path does not take the request's method.
    pub allowed: Option<HeaderValue>,
    /// Further members of the document. gRPC does not have them.
    pub members: Map<String, Value>,
    /// Whether it tells that a secret of the request is somebody else's.
    pub meets_secret: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(flatten)]
    members: &'a Map<String, Value>,
}

impl Problem {
    /// An error with this text. It is cut to 8 KiB, because it may contain text of the client.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        detail.truncate(detail.floor_char_boundary(DETAIL_BYTES_MAX));
        let (allowed, members) = (None, Map::new());
        Self { code, detail, retry_after_s: 1, allowed, members, meets_secret: false }
    }

    /// Add the headers of an error: when to retry, how to authenticate, which methods the path
    /// takes.
    pub fn add_headers(&self, status: StatusCode, headers: &mut HeaderMap) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(RETRY_AFTER, self.retry_after_s.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers.extend(self.allowed.clone().map(|allowed| (ALLOW, allowed)));
    }

    /// The answer as a problem document.
    pub fn into_response(self, request_id: &str) -> Response<Bytes> {
        let status = status_of(self.code);
        let code = self.code.as_str();
        let document = Document {
            r#type: format!("urn:gristmill:error:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: &self.detail,
            code,
            request_id,
            members: &self.members,
        };
        let body = serde_json::to_vec(&document).unwrap_or_default();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        self.add_headers(status, headers);
        response
    }
}

/// A writer that cuts a text to the length of a problem's detail.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let kept = text.floor_char_boundary(DETAIL_BYTES_MAX - self.0.len());
        self.0.push_str(&text[..kept]);
        if kept == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

impl<E: ClientError> From<E> for Problem {
    /// Uses the error's own text. A long text is cut while it is formatted: some texts contain many
    /// names and shapes of a plugin.
    fn from(error: E) -> Self {
        let mut detail = Bounded(String::new());
        let _ = write!(detail, "{error}");
        let mut problem = Self::new(error.code(), detail.0);
        if let Some(wait) = error.retry_after() {
            let part = u64::from(wait.subsec_nanos() > 0);
            problem.retry_after_s = (wait.as_secs() + part).max(1);
        }
        problem.meets_secret = error.meets_secret();
        let faults = error.faults();
        if !faults.is_empty() {
            let faults = serde_json::to_value(faults).unwrap_or_default();
            problem.members.insert(ERRORS.into(), faults);
        }
        problem
    }
}

/// An error code, for documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCodeRow {
    /// The HTTP status of `/v1` and of the admin plane.
    pub status: u16,
    /// The code as clients see it.
    pub code: &'static str,
    /// A sentence.
    pub meaning: &'static str,
}

/// Every error code, by status.
pub fn error_codes() -> Vec<ErrorCodeRow> {
    let row = |code: &ErrorCode| {
        let (status, meaning) = (status_of(*code).as_u16(), code.meaning());
        ErrorCodeRow { status, code: code.as_str(), meaning }
    };
    let mut rows: Vec<_> = ErrorCode::ALL.iter().map(row).collect();
    rows.sort_by_key(|row| row.status);
    rows
}

/// The one mapping from codes to statuses.
pub fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidRequest => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorCode::NotFound | ErrorCode::TenantNotFound | ErrorCode::PipelineNotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorCode::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Unprocessable
        | ErrorCode::InvalidPlugin
        | ErrorCode::UnsignedPlugin
        | ErrorCode::InvalidModel
        | ErrorCode::SampleFailed => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::PluginFailed
        | ErrorCode::PluginTrapped
        | ErrorCode::PluginOutOfMemory
        | ErrorCode::PluginInvalidOutput
        | ErrorCode::ModelFailed
        | ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::QueueFull
        | ErrorCode::TenantBusy
        | ErrorCode::QuotaExceeded
        | ErrorCode::TooManyFailures
        | ErrorCode::TokenBusy
        | ErrorCode::TooManyReleases => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::PluginTimeout | ErrorCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::Unavailable | ErrorCode::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::DocumentFault;

    use super::*;

    #[test]
    fn every_code_is_listed_once() {
        let rows = error_codes();
        assert_eq!(rows.len(), ErrorCode::ALL.len());
        assert!(rows.is_sorted_by_key(|row| row.status));
        let mut codes: Vec<_> = rows.iter().map(|row| row.code).collect();
        codes.sort_unstable();
        assert!(codes.is_sorted_by(|one, next| one < next), "{codes:?}");
        for row in rows {
            assert!((400..=599).contains(&row.status) && row.meaning.ends_with('.'), "{row:?}");
        }
    }

    #[test]
    fn the_faults_of_a_document_are_a_member() {
        #[derive(Debug)]
        struct Faulty(usize);
        impl fmt::Display for Faulty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("no")
            }
        }
        impl std::error::Error for Faulty {}
        impl ClientError for Faulty {
            fn code(&self) -> ErrorCode {
                ErrorCode::Unprocessable
            }
            fn faults(&self) -> Vec<DocumentFault> {
                vec![DocumentFault { pointer: "/a".into(), detail: "a: no".into() }; self.0]
            }
        }
        let body = Problem::from(Faulty(1)).into_response("id").into_body();
        let document: Value = serde_json::from_slice(&body).unwrap();
        let expected = serde_json::json!([{ "pointer": "/a", "detail": "a: no" }]);
        assert_eq!(document["errors"], expected);
        assert!(Problem::from(Faulty(0)).members.is_empty());
    }

    #[test]
    fn a_text_is_cut_while_it_is_formatted() {
        /// Its text would never end.
        #[derive(Debug)]
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("äö")?;
                }
            }
        }
        impl std::error::Error for Endless {}
        impl ClientError for Endless {
            fn code(&self) -> ErrorCode {
                ErrorCode::Internal
            }
        }
        assert_eq!(Problem::from(Endless).detail.len(), DETAIL_BYTES_MAX);
    }
}
