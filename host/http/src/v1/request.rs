//! The parts of a request that a plugin sees.

use bytes::Bytes;
use gristmill_sandbox::Request;
use gristmill_transport::Problem;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use super::form;
use crate::inference::{media_type, query};

/// The request for the preprocessor.
///
/// # Errors
/// The body is said to be a form, but cannot be read as one.
pub async fn request_for_plugin(head: &Parts, body: Bytes) -> Result<Request, Problem> {
    let full_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let content_type = full_type.map(media_type);
    let (body, parts) = match full_type {
        Some(full) if content_type.as_deref() == Some("multipart/form-data") => {
            (Bytes::new(), form::split(full, body).await?)
        }
        _ => (body, Vec::new()),
    };
    Ok(Request {
        content_type,
        headers: visible(&head.headers),
        query: query(head.uri.query().unwrap_or_default()),
        body,
        parts,
    })
}

/// The headers that a plugin may see.
fn visible(headers: &HeaderMap) -> Vec<(String, String)> {
    let visible = headers.iter().filter(|(name, _)| Request::shows_header(name.as_str()));
    visible
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_for_plugins() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer secret".parse().unwrap());
        headers.insert("cookie", "a=b".parse().unwrap());
        headers.insert("x-trace", "1".parse().unwrap());
        assert_eq!(visible(&headers), [("x-trace".to_owned(), "1".to_owned())]);
    }
}
