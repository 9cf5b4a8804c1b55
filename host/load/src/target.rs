//! A request to send.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use bytes::Bytes;
use gristmill_client::Tls;
use http::Request;
use http::request::Builder;
use http_body_util::Full;

/// The parts of a URL that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// How requests travel.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: String,
    /// The path with the query, beginning with a slash.
    pub path: String,
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP/1.1.
    Http,
    /// The same over TLS.
    Https,
    /// gRPC, over HTTP/2.
    Grpc,
    /// The same over TLS.
    Grpcs,
}

/// Why requests cannot be sent to a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The text is not a URL that can be used.
    #[error(
        "{0:?} is not a URL that can be used, such as http://127.0.0.1:8080/v1/demo/infer or \
         grpc://127.0.0.1:8082/MODEL"
    )]
    Url(String),
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be sent: it must be \"name: value\"")]
    Header(String),
    /// The host has no address.
    #[error("{authority} cannot be found")]
    Address {
        /// Host and port.
        authority: String,
        /// Why.
        source: std::io::Error,
    },
    /// hyper does not take the request.
    #[error("the request cannot be sent")]
    Request(#[from] http::Error),
}

impl Scheme {
    const ALL: [(&'static str, Self, u16); 4] = [
        ("http://", Self::Http, 80),
        ("https://", Self::Https, 443),
        ("grpc://", Self::Grpc, 80),
        ("grpcs://", Self::Grpcs, 443),
    ];

    /// Whether requests are calls of gRPC.
    pub fn is_grpc(self) -> bool {
        matches!(self, Self::Grpc | Self::Grpcs)
    }

    /// Whether they travel over TLS.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Grpcs)
    }
}

impl FromStr for Url {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let invalid = || TargetError::Url(text.to_owned());
        let parts = |(name, own, port)| Some((text.strip_prefix(name)?, own, port));
        let found = Scheme::ALL.into_iter().find_map(parts);
        let (rest, scheme, port) = found.ok_or_else(invalid)?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(invalid());
        }
        let authority = match authority.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
            Some(_) if !authority.ends_with(']') => return Err(invalid()),
            _ => format!("{authority}:{port}"),
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { scheme, authority, path })
    }
}

impl Url {
    /// The host alone.
    fn host(&self) -> &str {
        self.authority.rsplit_once(':').map_or(&*self.authority, |(host, _)| host)
    }

    fn address(&self) -> Result<SocketAddr, TargetError> {
        let authority = &self.authority;
        let failed = |source| TargetError::Address { authority: authority.clone(), source };
        let mut addresses = authority.to_socket_addrs().map_err(failed)?;
        addresses.next().ok_or_else(|| failed(std::io::Error::other("it has no address")))
    }
}

/// A request to send.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it goes.
    pub(crate) address: SocketAddr,
    pub(crate) way: Way,
    /// How often it is sent, in relation to the others.
    pub(crate) weight: u32,
}

/// How a request travels.
#[derive(Clone, Debug)]
pub(crate) enum Way {
    /// The head and the body, as they go over a connection of HTTP/1.1.
    Plain { bytes: Box<[u8]>, is_head: bool },
    /// By hyper.
    Hyper(Box<HyperRequest>),
}

/// A request that hyper sends.
#[derive(Clone, Debug)]
pub(crate) struct HyperRequest {
    pub(crate) is_grpc: bool,
    /// The settings of TLS, if it is used, and the host whose certificate is asked for.
    pub(crate) tls: Option<(Tls, String)>,
    pub(crate) request: Request<Full<Bytes>>,
}

impl Target {
    /// A request over plain HTTP with these headers, each `name: value`, and this body.
    ///
    /// # Errors
    /// The host has no address, or a header cannot be sent.
    pub fn new(
        url: &Url,
        method: &str,
        headers: &[String],
        body: &[u8],
    ) -> Result<Self, TargetError> {
        let Url { authority, path, .. } = url;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\n");
        let is_post = !matches!(method, "GET" | "HEAD");
        if is_post || !body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for header in headers {
            let (name, value) = parts_of(header)?;
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let bytes = [head.as_bytes(), body].concat().into();
        let way = Way::Plain { bytes, is_head: method == "HEAD" };
        Ok(Self { address: url.address()?, way, weight: 1 })
    }

    /// The same over TLS with these settings.
    ///
    /// # Errors
    /// As [`Target::new`].
    pub fn https(
        url: &Url,
        method: &str,
        headers: &[String],
        body: &[u8],
        tls: Tls,
    ) -> Result<Self, TargetError> {
        let request = Request::builder().method(method).uri(&url.path);
        let request = request.header("host", &url.authority);
        let request = with_headers(request, headers)?.body(Full::new(body.to_vec().into()))?;
        Self::by_hyper(url, false, Some(tls), request)
    }

    /// A unary call of gRPC: the URL's path is the method's, and `message` is encoded.
    ///
    /// # Errors
    /// As [`Target::https`].
    pub fn grpc(
        url: &Url,
        headers: &[String],
        message: &[u8],
        tls: Option<Tls>,
    ) -> Result<Self, TargetError> {
        let scheme = if url.scheme.is_tls() { "https" } else { "http" };
        let tls = tls.map(|tls| tls.for_http2());
        let request = Request::post(format!("{scheme}://{}{}", url.authority, url.path));
        let request = request.header("content-type", "application/grpc").header("te", "trailers");
        // Not compressed, and the length.
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        let body = [&[0], &length[..], message].concat();
        let request = with_headers(request, headers)?.body(Full::new(body.into()))?;
        Self::by_hyper(url, true, tls, request)
    }

    /// The bytes of a request over plain HTTP, and whether its answer has no body.
    pub(crate) fn plain(&self) -> (&[u8], bool) {
        match &self.way {
            Way::Plain { bytes, is_head } => (bytes, *is_head),
            Way::Hyper(_) => (&[], false),
        }
    }

    fn by_hyper(
        url: &Url,
        is_grpc: bool,
        tls: Option<Tls>,
        request: Request<Full<Bytes>>,
    ) -> Result<Self, TargetError> {
        let tls = tls.map(|tls| (tls, url.host().to_owned()));
        let way = Way::Hyper(Box::new(HyperRequest { is_grpc, tls, request }));
        Ok(Self { address: url.address()?, way, weight: 1 })
    }

    /// The same, sent so often in relation to the others; at least 1.
    pub fn weighted(self, weight: u32) -> Self {
        Self { weight: weight.max(1), ..self }
    }
}

/// The name and the value of a header.
fn parts_of(header: &str) -> Result<(&str, &str), TargetError> {
    let invalid = || TargetError::Header(header.to_owned());
    let (name, value) = header.split_once(':').ok_or_else(invalid)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    let is_text = |byte: u8| byte >= b' ' && byte != 0x7f || byte == b'\t';
    if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_text) {
        return Err(invalid());
    }
    Ok((name, value.trim()))
}

fn with_headers(mut request: Builder, headers: &[String]) -> Result<Builder, TargetError> {
    for header in headers {
        let (name, value) = parts_of(header)?;
        request = request.header(name, value);
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::{Scheme, Target, Url, Way};

    #[test]
    fn a_url_has_a_scheme_a_host_a_port_and_a_path() {
        let url = |text: &str| text.parse::<Url>().unwrap();
        let parts = |scheme, authority: &str, path: &str| Url {
            scheme,
            authority: authority.to_owned(),
            path: path.to_owned(),
        };
        assert_eq!(url("http://h:8080/a/b?c=d#e"), parts(Scheme::Http, "h:8080", "/a/b?c=d"));
        assert_eq!(url("http://h"), parts(Scheme::Http, "h:80", "/"));
        assert_eq!(url("http://h?x"), parts(Scheme::Http, "h:80", "/?x"));
        assert_eq!(url("http://[::1]:9/"), parts(Scheme::Http, "[::1]:9", "/"));
        assert_eq!(url("https://h/x"), parts(Scheme::Https, "h:443", "/x"));
        assert_eq!(url("grpc://h:8082/m"), parts(Scheme::Grpc, "h:8082", "/m"));
        assert_eq!(url("grpcs://[::1]").host(), "[::1]");
        for bad in ["", "h:80/", "ftp://h/", "http://", "http://a@h/", "http://h:x/", "http://h/ x"]
        {
            let said = bad.parse::<Url>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("{bad:?} is not a URL")), "{said}");
        }
    }

    #[test]
    fn a_request_is_made_once() {
        let url: Url = "http://127.0.0.1:9/x".parse().unwrap();
        let bytes = |target: Target| match target.way {
            Way::Plain { bytes, .. } => String::from_utf8(bytes.into()).unwrap(),
            Way::Hyper(other) => panic!("{other:?}"),
        };
        let target = Target::new(&url, "POST", &["a: b".to_owned()], b"body").unwrap();
        let text = "POST /x HTTP/1.1\r\nhost: 127.0.0.1:9\r\ncontent-length: 4\r\na: b\r\n\r\nbody";
        assert_eq!(bytes(target), text);
        let bare = Target::new(&url, "GET", &[], b"").unwrap();
        assert_eq!(bytes(bare), "GET /x HTTP/1.1\r\nhost: 127.0.0.1:9\r\n\r\n");
        for bad in ["a", ": b", "a b: c", "a: b\r\nc: d"] {
            let said = Target::new(&url, "GET", &[bad.to_owned()], b"").unwrap_err().to_string();
            assert!(said.contains("must be \"name: value\""), "{said}");
        }
    }
}
