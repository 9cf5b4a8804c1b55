//! What a client sees of a plugin's response.

use bytes::Bytes;
use gristmill_core::ErrorCode;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use crate::body::{Answer, ResponseBody};
use crate::problem::Problem;

/// The plugin's response with the headers it may set.
pub(super) fn from_plugin(
    status: u16,
    content_type: &str,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
) -> Result<Answer, Problem> {
    let unusable = |what: String| {
        Problem::new(
            ErrorCode::PluginInvalidOutput,
            format!("post: plugin's answer cannot be used: {what}"),
        )
    };
    let mut answer = Response::new(ResponseBody::from(Bytes::from(body)));
    *answer.status_mut() =
        StatusCode::from_u16(status).map_err(|_| unusable(format!("status {status}")))?;
    let content_type = HeaderValue::from_str(content_type)
        .map_err(|_| unusable(format!("content type {content_type:?}")))?;
    answer.headers_mut().insert(CONTENT_TYPE, content_type);
    for (name, value) in headers {
        if !settable(&name) {
            continue;
        }
        let header = HeaderName::try_from(&name).ok().zip(HeaderValue::try_from(&value).ok());
        let (name, value) = header.ok_or_else(|| unusable(format!("header {name:?}")))?;
        answer.headers_mut().append(name, value);
    }
    Ok(answer)
}

fn settable(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let own = name.starts_with("x-") && name != "x-request-id";
    own || matches!(name.as_str(), "cache-control" | "content-language" | "content-disposition")
}
