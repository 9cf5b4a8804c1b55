//! A request of a plugin, checked.

use std::time::Duration;

use bytes::Bytes;
use gristmill_core::Scheme;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use wasmtime_wasi_http::DEFAULT_FORBIDDEN_HEADERS;

use super::bindings::wit;
use super::target::OutgoingTarget;
use crate::outgoing::{OUTGOING_BODY_BYTES_MAX, OutgoingBody};
use crate::stores::shown;

/// Maximum bytes of the method, the URL and the headers.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Maximum headers.
const FIELDS_MAX: usize = 100;

/// A request that can be sent.
pub(super) struct CheckedRequest {
    pub(super) target: OutgoingTarget,
    /// Whether its method may change something.
    pub(super) changes: bool,
    /// The time for all of it.
    pub(super) time: Option<Duration>,
    pub(super) request: Request<OutgoingBody>,
}

/// The bytes of the method, the URL and the headers.
pub(super) fn head_bytes(request: &wit::HttpRequest) -> usize {
    let fields = request.headers.iter().map(|field| field.name.len() + field.value.len());
    request.method.len() + request.url.len() + fields.sum::<usize>()
}

/// Whether a header is of the connection, which is the host's own affair.
pub(super) fn is_of_connection(name: &HeaderName) -> bool {
    DEFAULT_FORBIDDEN_HEADERS.contains(name)
}

impl CheckedRequest {
    /// The request with this body.
    ///
    /// # Errors
    /// It cannot be sent like this.
    pub(super) fn of(request: &wit::HttpRequest, body: Bytes) -> Result<Self, wit::HttpError> {
        check_size(request, &body)?;
        let method = method_of(&request.method)?;
        let (uri, target) = place_of(&request.url)?;
        let changes = !matches!(method, Method::GET | Method::HEAD);
        let time = request.timeout_ms.map(Duration::from_millis);
        let headers = headers_of(&request.headers, &uri)?;
        let body: OutgoingBody = Full::new(body).map_err(|error| match error {}).boxed_unsync();
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(Self { target, changes, time, request })
    }
}

fn check_size(request: &wit::HttpRequest, body: &Bytes) -> Result<(), wit::HttpError> {
    let (bytes, fields) = (head_bytes(request), request.headers.len());
    if bytes > HEAD_BYTES_MAX {
        return Err(too_large(format!(
            "the URL and the headers have {bytes} bytes: the limit is {HEAD_BYTES_MAX}"
        )));
    }
    if fields > FIELDS_MAX {
        return Err(too_large(format!("there are {fields} headers: the limit is {FIELDS_MAX}")));
    }
    if body.len() > OUTGOING_BODY_BYTES_MAX {
        let bytes = body.len();
        return Err(too_large(format!(
            "the request's body has {bytes} bytes: the limit is {OUTGOING_BODY_BYTES_MAX}"
        )));
    }
    Ok(())
}

fn method_of(name: &str) -> Result<Method, wit::HttpError> {
    match Method::from_bytes(name.as_bytes()) {
        Ok(method) if method != Method::CONNECT => Ok(method),
        _ => Err(invalid(format!("the method {:?} cannot be sent", shown(name)))),
    }
}

/// The URI that a URL names, and the place that a connection is made to.
fn place_of(url: &str) -> Result<(Uri, OutgoingTarget), wit::HttpError> {
    let wrong = |why: &str| invalid(format!("the URL {:?} {why}", shown(url)));
    if !url.is_ascii() {
        return Err(wrong("has characters that are not ASCII: write them as %XX"));
    }
    let url = url.split('#').next().unwrap_or_default();
    let uri = url.parse::<Uri>().map_err(|error| wrong(&format!("cannot be read: {error}")))?;
    let scheme = match uri.scheme_str() {
        Some(scheme) if scheme.eq_ignore_ascii_case(Scheme::Https.name()) => Scheme::Https,
        Some(scheme) if scheme.eq_ignore_ascii_case(Scheme::Http.name()) => Scheme::Http,
        _ => return Err(wrong("does not begin with https:// or http://")),
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        // Without the URL, which has the password.
        return Err(invalid(
            "the URL has a name or a password before its host: send them in the header \
             \"authorization\""
                .to_owned(),
        ));
    }
    let target = OutgoingTarget::at(scheme, authority);
    let target = target.ok_or_else(|| wrong("names no host, or a port that is none"))?;
    Ok((uri, target))
}

/// The headers, with that of the host.
fn headers_of(fields: &[wit::Field], uri: &Uri) -> Result<HeaderMap, wit::HttpError> {
    let mut headers = HeaderMap::with_capacity(fields.len() + 1);
    for wit::Field { name, value } in fields {
        let wrong = |why: &str| invalid(format!("the header {:?} {why}", shown(name)));
        let named = HeaderName::from_bytes(name.as_bytes());
        let named = named.map_err(|_| wrong("has a name that cannot be sent"))?;
        if is_of_connection(&named) || named == header::CONTENT_LENGTH {
            return Err(wrong("is one that the host sets itself"));
        }
        let value = HeaderValue::from_bytes(value.as_bytes());
        headers.append(named, value.map_err(|_| wrong("has a value that cannot be sent"))?);
    }
    // The authority was read as one, so it is a value, too.
    let host = uri.authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    headers.extend(host.map(|host| (header::HOST, host)));
    Ok(headers)
}

fn invalid(text: String) -> wit::HttpError {
    wit::HttpError::InvalidArgument(text)
}

fn too_large(text: String) -> wit::HttpError {
    wit::HttpError::TooLarge(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, url: &str, headers: &[(&str, &str)]) -> wit::HttpRequest {
        let field = |(name, value): &(&str, &str)| wit::Field {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let (method, url) = (method.to_owned(), url.to_owned());
        let headers = headers.iter().map(field).collect();
        wit::HttpRequest { method, url, headers, body: None, timeout_ms: None }
    }

    fn asked(request: &wit::HttpRequest) -> Result<CheckedRequest, wit::HttpError> {
        CheckedRequest::of(request, Bytes::new())
    }

    #[test]
    fn a_request_has_the_host_and_the_path_of_its_url() {
        let request = of("GET", "HTTPS://A.example:8443/x/y?z=%201#part", &[("X-Own", "7")]);
        let CheckedRequest { target, changes, request, .. } = asked(&request).unwrap();
        assert_eq!((target.to_string().as_str(), changes), ("https://a.example:8443", false));
        assert_eq!((request.uri().path(), request.uri().query()), ("/x/y", Some("z=%201")));
        let of_header = |name: &str| request.headers().get(name).unwrap().to_str().unwrap();
        assert_eq!((of_header("x-own"), of_header("host")), ("7", "A.example:8443"));
        let request = asked(&of("POST", "http://[::1]?q", &[])).unwrap();
        assert_eq!(request.target.to_string(), "http://[::1]:80");
        assert!(request.changes);
        let uri = request.request.uri();
        assert_eq!((uri.path(), uri.query()), ("/", Some("q")));
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        let url = "https://a.example/";
        for (request, named) in [
            (of("CONNECT", url, &[]), "CONNECT"),
            (of("GET /x", url, &[]), "GET /x"),
            (of("", url, &[]), "method"),
            (of("GET", "a.example", &[]), "https://"),
            (of("GET", "/path", &[]), "https://"),
            (of("GET", "ftp://a.example", &[]), "https://"),
            (of("GET", "https://", &[]), "URL"),
            (of("GET", "https:///x", &[]), "URL"),
            (of("GET", "https://a.example/a b", &[]), "cannot be read"),
            (of("GET", "https://a.example/ä", &[]), "%XX"),
            (of("GET", "https://a.example\r\nx: y/", &[]), "cannot be read"),
            (of("GET", "https://u:p@a.example/", &[]), "header \"authorization\""),
            (of("GET", "https://a.example:443@b.example/", &[]), "header \"authorization\""),
            (of("GET", "https://a.example\\@b.example/", &[]), "cannot be read"),
            (of("GET", "https://a.example:99999/", &[]), "URL"),
            (of("GET", url, &[("Host", "b.example")]), "sets itself"),
            (of("GET", url, &[("content-length", "7")]), "sets itself"),
            (of("GET", url, &[("Transfer-Encoding", "chunked")]), "sets itself"),
            (of("GET", url, &[("a b", "c")]), "name"),
            (of("GET", url, &[("a", "b\r\nc: d")]), "value"),
        ] {
            let error = asked(&request).err();
            let is_told = matches!(&error, Some(wit::HttpError::InvalidArgument(text))
                if text.contains(named));
            assert!(is_told, "{request:?}: {error:?}");
        }
    }

    #[test]
    fn a_request_has_bounds() {
        let url = "https://a.example/";
        let many = vec![("a", "b"); FIELDS_MAX + 1];
        let long = "x".repeat(HEAD_BYTES_MAX);
        for request in [
            of("GET", url, &many),
            of("GET", url, &[("a", long.as_str())]),
            of("GET", &format!("{url}{long}"), &[]),
            of(&long, url, &[]),
        ] {
            assert!(matches!(asked(&request), Err(wit::HttpError::TooLarge(_))));
        }
        let large = Bytes::from(vec![0; OUTGOING_BODY_BYTES_MAX + 1]);
        let refused = CheckedRequest::of(&of("PUT", url, &[]), large);
        assert!(matches!(refused, Err(wit::HttpError::TooLarge(_))));
    }
}
