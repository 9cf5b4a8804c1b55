//! A request to send.

use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// The parts of a URL that a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host and port.
    pub authority: String,
    /// The path with the query, beginning with a slash.
    pub path: String,
}

/// Why requests cannot be sent to a target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The text is not a URL that can be used.
    #[error("{0:?} is not a URL of plain HTTP, such as http://127.0.0.1:8080/v1/demo/infer")]
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
}

impl FromStr for Url {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let invalid = || TargetError::Url(text.to_owned());
        let rest = text.strip_prefix("http://").ok_or_else(invalid)?;
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if authority.is_empty() || authority.contains('@') || !is_plain(rest) {
            return Err(invalid());
        }
        let authority = match authority.rsplit_once(':') {
            Some((_, port)) if port.parse::<u16>().is_ok() => authority.to_owned(),
            Some(_) if !authority.ends_with(']') => return Err(invalid()),
            _ => format!("{authority}:80"),
        };
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { authority, path })
    }
}

/// A request to send, as it goes over a connection.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it goes.
    pub(crate) address: SocketAddr,
    /// The head and the body.
    pub(crate) bytes: Box<[u8]>,
    /// How often it is sent, in relation to the others.
    pub(crate) weight: u32,
    /// Whether its answer has no body.
    pub(crate) is_head: bool,
}

impl Target {
    /// A request with these headers, each `name: value`, and this body.
    ///
    /// # Errors
    /// The host has no address, or a header cannot be sent.
    pub fn new(
        url: &Url,
        method: &str,
        headers: &[String],
        body: &[u8],
    ) -> Result<Self, TargetError> {
        let Url { authority, path } = url;
        let failed = |source| TargetError::Address { authority: authority.clone(), source };
        let mut addresses = authority.to_socket_addrs().map_err(failed)?;
        let none = || failed(std::io::Error::other("it has no address"));
        let address = addresses.next().ok_or_else(none)?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {authority}\r\n");
        let is_post = !matches!(method, "GET" | "HEAD");
        if is_post || !body.is_empty() {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        for header in headers {
            let (name, value) =
                header.split_once(':').ok_or_else(|| TargetError::Header(header.clone()))?;
            let is_name =
                |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
            let is_text = |byte: u8| byte >= b' ' && byte != 0x7f || byte == b'\t';
            if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_text) {
                return Err(TargetError::Header(header.clone()));
            }
            head.push_str(&format!("{name}: {}\r\n", value.trim()));
        }
        head.push_str("\r\n");
        let bytes = [head.as_bytes(), body].concat().into();
        Ok(Self { address, bytes, weight: 1, is_head: method == "HEAD" })
    }

    /// The same, sent so often in relation to the others; at least 1.
    pub fn weighted(self, weight: u32) -> Self {
        Self { weight: weight.max(1), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::{Target, Url};

    #[test]
    fn a_url_has_a_host_a_port_and_a_path() {
        let url = |text: &str| text.parse::<Url>().map(|url| (url.authority, url.path));
        let parts = |authority: &str, path: &str| (authority.to_owned(), path.to_owned());
        assert_eq!(url("http://h:8080/a/b?c=d#e").unwrap(), parts("h:8080", "/a/b?c=d"));
        assert_eq!(url("http://h").unwrap(), parts("h:80", "/"));
        assert_eq!(url("http://h?x").unwrap(), parts("h:80", "/?x"));
        assert_eq!(url("http://[::1]:9/").unwrap(), parts("[::1]:9", "/"));
        for bad in
            ["", "h:80/", "https://h/", "http://", "http://a@h/", "http://h:x/", "http://h/ x"]
        {
            let said = url(bad).unwrap_err().to_string();
            assert!(said.starts_with(&format!("{bad:?} is not a URL")), "{said}");
        }
    }

    #[test]
    fn a_request_is_made_once() {
        let url: Url = "http://127.0.0.1:9/x".parse().unwrap();
        let target = Target::new(&url, "POST", &["a: b".to_owned()], b"body").unwrap();
        let text = "POST /x HTTP/1.1\r\nhost: 127.0.0.1:9\r\ncontent-length: 4\r\na: b\r\n\r\nbody";
        assert_eq!(&*target.bytes, text.as_bytes());
        let bare = Target::new(&url, "GET", &[], b"").unwrap();
        assert_eq!(&*bare.bytes, b"GET /x HTTP/1.1\r\nhost: 127.0.0.1:9\r\n\r\n");
        for bad in ["a", ": b", "a b: c", "a: b\r\nc: d"] {
            let said = Target::new(&url, "GET", &[bad.to_owned()], b"").unwrap_err().to_string();
            assert!(said.contains("must be \"name: value\""), "{said}");
        }
    }
}
