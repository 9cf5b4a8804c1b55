//! Errors as clients see them: RFC 9457 problem documents.

use bytes::Bytes;
use gristmill_batch::SubmitError;
use gristmill_core::{ErrorCode, OverBudget};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

/// The longest text of an error.
const DETAIL_BYTES_MAX: usize = 8 << 10;

/// An error on its way to a client.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) code: ErrorCode,
    pub(crate) detail: String,
    /// When to try again, in seconds; sent with the statuses that say so.
    pub(crate) retry_after_s: u64,
}

#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    code: &'a str,
    request_id: &'a str,
}

impl Problem {
    pub(crate) fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        // It may hold what the client sent.
        detail.truncate(detail.floor_char_boundary(DETAIL_BYTES_MAX));
        Self { code, detail, retry_after_s: 1 }
    }

    /// With when to try again, where a model's refusal says so.
    pub(crate) fn retried_after(mut self, error: &SubmitError) -> Self {
        if let SubmitError::TooBusy { expected } = error {
            self.retry_after_s = expected.as_secs() + 1;
        }
        self
    }

    /// What clients need beside the text: when to come back, how to log in.
    pub(crate) fn add_headers(&self, status: StatusCode, headers: &mut HeaderMap) {
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(RETRY_AFTER, self.retry_after_s.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response<Bytes> {
        let status = status_of(self.code);
        let code = self.code.as_str();
        let document = Document {
            r#type: format!("urn:gristmill:error:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: &self.detail,
            code,
            request_id,
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

impl From<OverBudget> for Problem {
    fn from(error: OverBudget) -> Self {
        Self::new(ErrorCode::TenantBusy, error.to_string())
    }
}

/// The one mapping from codes to statuses.
pub(crate) fn status_of(code: ErrorCode) -> StatusCode {
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
        ErrorCode::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::Unprocessable | ErrorCode::InvalidPlugin | ErrorCode::InvalidModel => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        ErrorCode::PluginFailed
        | ErrorCode::PluginTrapped
        | ErrorCode::PluginOutOfMemory
        | ErrorCode::PluginInvalidOutput
        | ErrorCode::ModelFailed
        | ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::QueueFull | ErrorCode::TenantBusy => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::InsufficientStorage => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::PluginTimeout | ErrorCode::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        ErrorCode::Unavailable | ErrorCode::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
    }
}
