//! The parts of a request that a plugin sees.

use bytes::Bytes;
use gristmill_sandbox::Request;
use gristmill_transport::Problem;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http::request::Parts;

use super::form;

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

/// A media type in lower case, without its parameters.
pub fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_lowercase()
}

/// The parameters of a query string, in order.
pub fn query(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
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

    #[test]
    fn queries_are_decoded() {
        let expected = [("a", "1 2"), ("b", "ä/"), ("c", ""), ("d", "%zz")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(query("a=1+2&b=%C3%A4%2f&&c&d=%zz"), expected);
    }

    #[test]
    fn a_media_type_has_no_parameters() {
        assert_eq!(media_type("Application/JSON ; charset=utf-8"), "application/json");
    }
}
