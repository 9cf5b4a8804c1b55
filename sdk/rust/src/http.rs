//! Requests to other services over HTTP. The feature `http` turns this on.
//!
//! ```no_run
//! # use gristmill_plugin::http::{self, HttpRequest};
//! # use gristmill_plugin::Failure;
//! # fn example(user: u64) -> Result<Vec<f32>, Failure> {
//! let rates = http::get("https://api.example.com/rates")?.ok()?;
//!
//! let profile = HttpRequest::post("https://api.example.com/profiles").json(&[user])?.send()?;
//! if profile.status == 404 {
//!     return Ok(Vec::new());
//! }
//! Ok(profile.ok()?.json()?)
//! # }
//! ```
//!
//! The tenant's document grants each service, as in
//! `"http": [{"scheme": "https", "host": "api.example.com"}]`. Without that, a request ends in
//! [`HttpError::NotGranted`]. A call sends at most 64 requests; bodies have at most 16 MiB each
//! way. A redirect is an answer as any other: nothing follows it. While a call waits for an answer
//! it uses no CPU time. Write a [`Handler`](crate::Handler) for it: a pair's call keeps its place
//! among the tenant's calls meanwhile.
//!
//! In a trial, such as a sample or a shadow, only GET and HEAD are sent.
//!
//! In tests [`testing::service`](crate::testing::service) stands in for a service.

#[cfg(target_arch = "wasm32")]
mod wasi;

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

#[cfg(target_arch = "wasm32")]
use self::wasi as host;
use crate::Failure;
#[cfg(not(target_arch = "wasm32"))]
use crate::reference::http as host;

/// A request to another service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// `https://HOST[:PORT][/PATH][?QUERY]`, or with `http://`.
    pub url: String,
    /// Names and values. `host` and those of the connection are the server's own affair.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body; empty if it has none.
    pub body: Vec<u8>,
    /// The time for the connection, for the head of the answer, and between two parts of its body.
    /// Without one, all ends at the deadline of the plugin's own request.
    pub timeout: Option<Duration>,
}

/// The answer of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpResponse {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body, as it came: the host decompresses nothing.
    pub body: Vec<u8>,
}

/// Why there is no answer, or none that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpError {
    /// The tenant's document does not grant the service, or its host has an address that is not
    /// public and that the grant does not name. The plugin's log says what would grant it.
    NotGranted(String),
    /// The request cannot be sent as it is.
    InvalidArgument(String),
    /// The service gave no answer, not the whole one, or one that is too large.
    Unavailable(String),
    /// The answer is not what the plugin wants: its status or its content.
    Unexpected(String),
}

/// Ask for a URL.
///
/// # Errors
/// Why there is no answer. A status such as 404 is an answer.
pub fn get(url: &str) -> Result<HttpResponse, HttpError> {
    HttpRequest::get(url).send()
}

impl HttpRequest {
    /// A request with this method.
    pub fn new(method: &str, url: &str) -> Self {
        let (method, url) = (method.to_owned(), url.to_owned());
        Self { method, url, headers: Vec::new(), body: Vec::new(), timeout: None }
    }

    /// A request with the method GET.
    pub fn get(url: &str) -> Self {
        Self::new("GET", url)
    }

    /// A request with the method POST.
    pub fn post(url: &str) -> Self {
        Self::new("POST", url)
    }

    /// With one more header.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// With this body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// With this value as its body, and `content-type: application/json`.
    ///
    /// # Errors
    /// The value cannot be written as JSON.
    pub fn json(self, value: &(impl Serialize + ?Sized)) -> Result<Self, HttpError> {
        let body = serde_json::to_vec(value);
        let body = body.map_err(|error| HttpError::InvalidArgument(error.to_string()))?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// With this time for the connection, for the head of the answer, and between two parts of its
    /// body.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Send it, and wait for the whole answer.
    ///
    /// # Errors
    /// Why there is no answer. A status such as 404 is an answer.
    pub fn send(&self) -> Result<HttpResponse, HttpError> {
        host::send(self, &UrlParts::of(&self.url)?)
    }
}

/// The parts of a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UrlParts<'a> {
    pub(crate) is_tls: bool,
    pub(crate) authority: &'a str,
    /// With the query, without the fragment.
    pub(crate) path: String,
}

impl<'a> UrlParts<'a> {
    fn of(url: &'a str) -> Result<Self, HttpError> {
        let invalid = || HttpError::InvalidArgument(format!("{url:?} is not a URL of HTTP"));
        let (scheme, rest) = url.split_once("://").ok_or_else(invalid)?;
        let is_tls = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => true,
            _ if scheme.eq_ignore_ascii_case("http") => false,
            _ => return Err(invalid()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.is_empty() {
            return Err(invalid());
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_tls, authority, path })
    }
}

impl HttpResponse {
    /// The answer, if its status is 200 to 299.
    ///
    /// # Errors
    /// [`HttpError::Unexpected`] with the status.
    pub fn ok(self) -> Result<Self, HttpError> {
        match self.status {
            200..=299 => Ok(self),
            status => Err(HttpError::Unexpected(format!("the service answered {status}"))),
        }
    }

    /// The first value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        named.next().and_then(|(_, value)| str::from_utf8(value).ok())
    }

    /// The body as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self) -> Result<&str, HttpError> {
        str::from_utf8(&self.body).map_err(|error| HttpError::Unexpected(error.to_string()))
    }

    /// The value that the body has as JSON.
    ///
    /// # Errors
    /// It is not JSON, or not of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HttpError> {
        serde_json::from_slice(&self.body).map_err(|error| {
            HttpError::Unexpected(format!("the service's answer does not fit: {error}"))
        })
    }
}

impl HttpError {
    /// What is missing or wrong.
    pub fn text(&self) -> &str {
        match self {
            Self::NotGranted(text)
            | Self::InvalidArgument(text)
            | Self::Unavailable(text)
            | Self::Unexpected(text) => text,
        }
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for HttpError {}

/// A service that gives no answer is not the client's fault.
impl From<HttpError> for Failure {
    fn from(error: HttpError) -> Self {
        Self::Internal(error.text().to_owned())
    }
}

impl From<HttpError> for crate::HandleError {
    fn from(error: HttpError) -> Self {
        Self::Failure(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_url_has_its_parts() {
        for (url, is_tls, authority, path) in [
            ("https://a.example", true, "a.example", "/"),
            ("HTTP://a.example:8080/x/y?z=1#f", false, "a.example:8080", "/x/y?z=1"),
            ("https://a.example?q", true, "a.example", "/?q"),
        ] {
            let path = path.to_owned();
            assert_eq!(UrlParts::of(url), Ok(UrlParts { is_tls, authority, path }), "{url}");
        }
        for url in ["a.example", "ftp://a.example", "https://", "https:///x"] {
            assert!(matches!(UrlParts::of(url), Err(HttpError::InvalidArgument(_))), "{url}");
        }
    }

    #[test]
    fn a_service_of_a_test_answers() {
        let service = testing::service("https://api.example.com", |request| HttpResponse {
            status: if request.method == "POST" { 201 } else { 404 },
            headers: vec![("content-type".into(), b"application/json".into())],
            body: request.body.clone(),
        });
        let created = HttpRequest::post("https://api.example.com/x").json(&[1, 2]).unwrap();
        let created = created.send().unwrap().ok().unwrap();
        assert_eq!(created.json::<Vec<u32>>(), Ok(vec![1, 2]));
        assert_eq!(created.header("Content-Type"), Some("application/json"));
        let missing = get("https://api.example.com/y").unwrap();
        let refused = HttpError::Unexpected("the service answered 404".into());
        assert_eq!(missing.ok(), Err(refused.clone()));
        assert_eq!(Failure::from(refused), Failure::internal("the service answered 404"));
        let refused = get("http://api.example.com/y").unwrap_err();
        assert!(matches!(&refused, HttpError::NotGranted(text) if text.contains("service")));
        drop(service);
        assert!(matches!(get("https://api.example.com/y"), Err(HttpError::NotGranted(_))));
    }
}
