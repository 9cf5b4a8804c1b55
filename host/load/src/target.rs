//! A request to send.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use bytes::Bytes;
use gristmill_client::Tls;
use http::Request;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TE};
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
        let parts = |(name, scheme, port)| Some((text.strip_prefix(name)?, scheme, port));
        let url = Scheme::ALL.into_iter().find_map(parts);
        let (rest, scheme, port) = url.ok_or_else(invalid)?;
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
pub struct LoadTarget {
    pub(crate) destination: Destination,
    /// It is made once; its clones share all texts and the body.
    pub(crate) request: Request<Full<Bytes>>,
    /// How often it is sent, in relation to the others.
    pub(crate) weight: u32,
}

/// Where a connection leads.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) address: SocketAddr,
    /// The host whose certificate is asked for.
    pub(crate) host: String,
    /// gRPC travels over HTTP/2, all else over HTTP/1.1.
    pub(crate) is_grpc: bool,
    /// The settings of TLS, if it is used; the same for all targets.
    pub(crate) tls: Option<Tls>,
}

impl Destination {
    /// Whether a connection to one is a connection to the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let is_tls = self.tls.is_some();
        self.address == other.address
            && self.is_grpc == other.is_grpc
            && is_tls == other.tls.is_some()
            && (!is_tls || self.host == other.host)
    }
}

impl LoadTarget {
    /// A request with these headers, each `name: value`, and this body. Of gRPC it is a unary call:
    /// the URL's path is the method's, the body is the encoded message, and `method` is not used.
    ///
    /// # Errors
    /// The host has no address, or the request cannot be sent.
    pub fn new(
        url: &Url,
        method: &str,
        headers: &[String],
        body: &[u8],
    ) -> Result<Self, TargetError> {
        let Url { scheme, authority, path } = url;
        let is_grpc = scheme.is_grpc();
        let has_length = !matches!(method, "GET" | "HEAD") || !body.is_empty();
        let mut request = Request::builder();
        if is_grpc {
            let scheme = if scheme.is_tls() { "https" } else { "http" };
            request = request.method("POST").uri(format!("{scheme}://{authority}{path}"));
            request = request.header(CONTENT_TYPE, "application/grpc").header(TE, "trailers");
        } else {
            request = request.method(method).uri(path).header(HOST, authority);
            if has_length {
                request = request.header(CONTENT_LENGTH, body.len());
            }
        }
        for header in headers {
            let (name, value) = parts_of(header)?;
            request = request.header(name, value);
        }
        let body = if is_grpc { message(body) } else { Bytes::copy_from_slice(body) };
        let (address, host) = (url.address()?, url.host().to_owned());
        let destination = Destination { address, host, is_grpc, tls: None };
        Ok(Self { destination, request: request.body(Full::new(body))?, weight: 1 })
    }

    /// The same over TLS with these settings, which a URL of `https://` or `grpcs://` needs.
    pub fn with_tls(mut self, tls: &Tls) -> Self {
        let is_grpc = self.destination.is_grpc;
        self.destination.tls = Some(if is_grpc { tls.for_http2() } else { tls.clone() });
        self
    }

    /// The same, sent so often in relation to the others; at least 1.
    pub fn weighted(self, weight: u32) -> Self {
        Self { weight: weight.max(1), ..self }
    }
}

/// A message as gRPC sends it: not compressed, after its length.
fn message(encoded: &[u8]) -> Bytes {
    let length = u32::try_from(encoded.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&[0], &length[..], encoded].concat().into()
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

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::{LoadTarget, Scheme, Url};

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
            let error = bad.parse::<Url>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{bad:?} is not a URL")), "{error}");
        }
    }

    /// The head and the body of a target's request, as text.
    fn text(target: LoadTarget) -> String {
        let (head, body) = target.request.into_parts();
        let mut text = format!("{} {}\n", head.method, head.uri);
        for (name, value) in &head.headers {
            text += &format!("{name}: {}\n", value.to_str().unwrap());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(body.collect()).unwrap().to_bytes();
        text + str::from_utf8(&body).unwrap()
    }

    #[test]
    fn a_request_is_made_once() {
        let url: Url = "http://127.0.0.1:9/x".parse().unwrap();
        let target = |method, headers: &[&str], body: &str| {
            let headers: Vec<_> = headers.iter().map(|header| (*header).to_owned()).collect();
            LoadTarget::new(&url, method, &headers, body.as_bytes())
        };
        let all = "POST /x\nhost: 127.0.0.1:9\ncontent-length: 4\na: b\nbody";
        assert_eq!(text(target("POST", &["A: b"], "body").unwrap()), all);
        let empty = "POST /x\nhost: 127.0.0.1:9\ncontent-length: 0\n";
        assert_eq!(text(target("POST", &[], "").unwrap()), empty);
        assert_eq!(text(target("GET", &[], "").unwrap()), "GET /x\nhost: 127.0.0.1:9\n");
        for bad in ["a", ": b", "a b: c", "a: b\r\nc: d"] {
            let error = target("GET", &[bad], "").unwrap_err().to_string();
            assert!(error.contains("must be \"name: value\""), "{error}");
        }
    }

    #[test]
    fn a_call_of_grpc_is_a_message_after_its_length() {
        let url: Url = "grpc://127.0.0.1:9/s/m".parse().unwrap();
        let call = LoadTarget::new(&url, "GET", &["a: b".to_owned()], b"body").unwrap();
        let all = "POST http://127.0.0.1:9/s/m\ncontent-type: application/grpc\nte: trailers\n\
                   a: b\n\0\0\0\0\u{4}body";
        assert_eq!(text(call), all);
    }
}
