//! The address of a plane: an `https` or `http` URL. Without a scheme it is `http`.

use std::fmt;
use std::str::FromStr;

use http::Uri;

/// The address of one plane of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    scheme: Scheme,
    host: String,
    authority: String,
    target: String,
    prefix: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// Why a text is not the address of a plane.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is not a URL.
    #[error("{0}")]
    Url(#[from] http::uri::InvalidUri),
    /// A URL without a host.
    #[error("it names no host")]
    NoHost,
    /// A scheme other than those of HTTP.
    #[error("the scheme is {0:?}, not https or http")]
    Scheme(String),
    /// A number without a host. The system would read it as an IPv4 address: 8081 as 0.0.31.145.
    #[error("it is a number alone")]
    NumberAlone,
    /// A URL with a query.
    #[error("it has a query")]
    Query,
}

impl Address {
    /// Whether connections use TLS.
    pub fn is_https(&self) -> bool {
        self.scheme == Scheme::Https
    }

    /// The host alone.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Host and port as they were given.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// Host and port to connect to.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The path of the URL, which is put before each request's path. It is empty or begins with a
    /// slash.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let url = match text.trim() {
            text if text.contains("://") => text.to_owned(),
            text => format!("http://{text}"),
        };
        let uri: Uri = url.parse()?;
        let (Some(scheme), Some(host), Some(authority)) =
            (uri.scheme_str(), uri.host(), uri.authority())
        else {
            return Err(AddressError::NoHost);
        };
        let scheme = match scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(AddressError::Scheme(other.to_owned())),
        };
        if host.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AddressError::NumberAlone);
        }
        if uri.query().is_some() {
            return Err(AddressError::Query);
        }
        Ok(Self {
            scheme,
            host: host.to_owned(),
            authority: authority.to_string(),
            target: format!("{host}:{}", uri.port_u16().unwrap_or(scheme.default_port())),
            prefix: uri.path().trim_end_matches('/').to_owned(),
        })
    }
}

/// The URL, without a slash at its end.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.name(), self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, AddressError};

    #[test]
    fn the_scheme_the_port_and_a_last_slash_may_be_left_out() {
        for (text, url, target) in [
            ("127.0.0.1:8081", "http://127.0.0.1:8081", "127.0.0.1:8081"),
            ("localhost:8081/", "http://localhost:8081", "localhost:8081"),
            ("http://[::1]:8081", "http://[::1]:8081", "[::1]:8081"),
            (" gristmill.example ", "http://gristmill.example", "gristmill.example:80"),
            ("http://a/behind/a/proxy/", "http://a/behind/a/proxy", "a:80"),
            ("https://gristmill.example", "https://gristmill.example", "gristmill.example:443"),
            ("https://[::1]:8081/", "https://[::1]:8081", "[::1]:8081"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), address.target()), (url, target));
        }
    }

    #[test]
    fn other_schemes_are_refused_by_name() {
        let refused = "ftp://gristmill.example".parse::<Address>().unwrap_err();
        assert!(matches!(&refused, AddressError::Scheme(scheme) if scheme == "ftp"), "{refused}");
    }
}
