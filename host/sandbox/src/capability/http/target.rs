//! Where a request goes.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use gristmill_core::Scheme;
use http::uri::Authority;

use crate::stores::shown;

/// The place to which a connection is made.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::capability) struct OutgoingTarget {
    scheme: Scheme,
    /// In lower case.
    host: String,
    port: u16,
}

impl OutgoingTarget {
    /// The place that a URL of this scheme names. None if that is no host.
    pub(in crate::capability) fn at(scheme: Scheme, authority: &str) -> Option<Self> {
        let authority = Authority::from_str(authority).ok()?;
        let host = authority.host();
        // What stands before an `@` is no part of the host, and has no place in the header `host`.
        let port = match authority.as_str().strip_prefix(host)? {
            "" => scheme.usual_port(),
            rest => rest.strip_prefix(':').filter(|port| !port.starts_with('+'))?.parse().ok()?,
        };
        // An address of IPv6 has many spellings.
        let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(address) => format!("[{}]", Ipv6Addr::from_str(address).ok()?),
            None => host.to_ascii_lowercase(),
        };
        (!host.is_empty()).then_some(Self { scheme, host, port })
    }

    /// Its scheme, its host and its port.
    pub(in crate::capability) fn parts(&self) -> (Scheme, &str, u16) {
        (self.scheme, &self.host, self.port)
    }

    /// The grant that would allow it.
    pub(in crate::capability) fn grant(&self) -> String {
        let Self { scheme, host, port } = self;
        let (scheme, host) = (scheme.name(), shown(host));
        format!(
            "{{\"scheme\": \"{scheme}\", \"host\": {host:?}, \"port\": {port}}} under \"http\" in \
             the tenant's document"
        )
    }
}

impl fmt::Display for OutgoingTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme.name(), shown(&self.host), self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_the_host_that_a_connection_is_made_to() {
        for (authority, expected) in [
            ("a.example", Some("https://a.example:443")),
            ("A.Example:8443", Some("https://a.example:8443")),
            ("10.0.0.7:80", Some("https://10.0.0.7:80")),
            ("[0:0::1]:80", Some("https://[::1]:80")),
            ("", None),
            (":80", None),
            ("a.example:", None),
            ("a.example:99999", None),
            ("a.example:x", None),
            ("a.example:+80", None),
            ("a.example@b.example", None),
            ("u:p@b.example:80", None),
            ("[::1", None),
            ("[fe80::1%25eth0]", None),
            ("a.example/path", None),
        ] {
            let target = OutgoingTarget::at(Scheme::Https, authority);
            let told_target = target.as_ref().map(ToString::to_string);
            assert_eq!(told_target.as_deref(), expected, "{authority}");
        }
        let target = OutgoingTarget::at(Scheme::Http, "a.example").unwrap();
        assert_eq!(target.parts(), (Scheme::Http, "a.example", 80));
        let grant = r#"{"scheme": "http", "host": "a.example", "port": 80} under "http""#;
        assert!(target.grant().starts_with(grant), "{}", target.grant());
    }
}
