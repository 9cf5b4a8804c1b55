//! The origins of web pages, as browsers send them.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

/// All origins, in a list of them.
const ANY: &str = "*";

/// Maximum origins of a list.
const ORIGINS_MAX: usize = 64;

/// Maximum bytes of an origin. A host's name has up to 253.
const ORIGIN_BYTES_MAX: usize = 300;

/// Origins of web pages: a list, or all of them.
///
/// An origin is a scheme, a host, and a port unless it is the one that the scheme usually has. It
/// is in lower case, and nothing follows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Origins(Vec<String>);

/// A fault of a list of origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginFault {
    /// The place in the list, if the fault is one item's.
    pub index: Option<usize>,
    /// The fault.
    pub error: InvalidOrigin,
}

/// A text, or a list of texts, that browsers cannot send as an origin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOrigin {
    /// Not an origin.
    #[error(
        "{0:?} is not an origin: it needs a scheme and a host, and a port if it is not the usual \
         one, as https://app.example.com or http://localhost:3000 has; international names of hosts \
         are written in their form with xn--"
    )]
    NotOne(String),
    /// An origin, but in other letters than browsers send it, or with something behind it.
    #[error("{text:?} is not as browsers send it: write {right:?}")]
    Spelling {
        /// The text.
        text: String,
        /// What browsers send.
        right: String,
    },
    /// The origin of pages without one.
    #[error(
        "\"null\" is the origin of every file and every sandboxed frame, whoever wrote it: serve \
         the page over https, and name its origin"
    )]
    Null,
    /// All origins, and others besides.
    #[error("\"*\" stands for all origins: it must be alone")]
    NotAlone,
    /// Too many of them.
    #[error("{count} origins are given: the limit is {max}")]
    TooMany {
        /// Their number.
        count: usize,
        /// The limit.
        max: usize,
    },
}

impl Origins {
    /// The origins that these texts name. `*` alone stands for all.
    ///
    /// # Errors
    /// All faults.
    pub fn of(texts: Vec<String>) -> Result<Self, Vec<OriginFault>> {
        let mut faults = Vec::new();
        let count = texts.len();
        if count > ORIGINS_MAX {
            let error = InvalidOrigin::TooMany { count, max: ORIGINS_MAX };
            faults.push(OriginFault { index: None, error });
        }
        for (index, text) in texts.iter().enumerate().take(ORIGINS_MAX) {
            let checked = match text.as_str() {
                ANY if count == 1 => Ok(()),
                ANY => Err(InvalidOrigin::NotAlone),
                text => check(text),
            };
            faults.extend(checked.err().map(|error| OriginFault { index: Some(index), error }));
        }
        if faults.is_empty() { Ok(Self(texts)) } else { Err(faults) }
    }

    /// All origins.
    pub fn any() -> Self {
        Self(vec![ANY.to_owned()])
    }

    /// Their texts, or `*` for all origins.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all origins are among them.
    pub fn is_any(&self) -> bool {
        matches!(&self.0[..], [one] if one == ANY)
    }

    /// Whether this origin is among them.
    pub fn has(&self, origin: &str) -> bool {
        self.is_any() || self.0.iter().any(|listed| listed == origin)
    }

    /// Whether the origin of this URL is among them. All before its path must be the origin: what a
    /// browser would take out of it, or read as something else, matches none.
    pub fn has_url(&self, url: &str) -> bool {
        let Some(host_at) = url.find("://").map(|at| at + "://".len()) else { return false };
        let host_len = url[host_at..].find(['/', '?', '#']).unwrap_or(url.len() - host_at);
        url.bytes().all(|byte| byte.is_ascii_graphic()) && self.has(&url[..host_at + host_len])
    }
}

/// Check that browsers send exactly this text as the origin of a page.
fn check(text: &str) -> Result<(), InvalidOrigin> {
    if text == "null" {
        return Err(InvalidOrigin::Null);
    }
    let cut = || text.chars().take(ORIGIN_BYTES_MAX).collect::<String>();
    match Some(text).filter(|text| text.len() <= ORIGIN_BYTES_MAX).and_then(as_sent) {
        Some(right) if right == text => Ok(()),
        Some(right) => Err(InvalidOrigin::Spelling { text: cut(), right }),
        None => Err(InvalidOrigin::NotOne(cut())),
    }
}

/// The origin in a URL as browsers send it, if it has one.
fn as_sent(url: &str) -> Option<String> {
    let url = url.trim().to_ascii_lowercase();
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host_len = match authority.find(']') {
        Some(end) => end + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(host_len);
    let port = match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse::<u16>().ok()?)
        }
        Some(_) => return None,
        None if port.is_empty() => None,
        None => return None,
    };
    let usual = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let port = port.filter(|port| Some(*port) != usual).map(|port| format!(":{port}"));
    let host = host_as_sent(host).filter(|_| is_scheme(scheme))?;
    Some(format!("{scheme}://{host}{}", port.unwrap_or_default()))
}

fn is_scheme(text: &str) -> bool {
    let is_sign = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_sign)
}

/// The host, which is in lower case, as browsers send it.
fn host_as_sent(host: &str) -> Option<String> {
    if let Some(rest) = host.strip_prefix('[') {
        let address: Ipv6Addr = rest.strip_suffix(']')?.parse().ok()?;
        let [.., high, low] = address.segments();
        return Some(match address.to_ipv4_mapped() {
            Some(_) => format!("[::ffff:{high:x}:{low:x}]"),
            None => format!("[{address}]"),
        });
    }
    let is_sign = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_sign);
    let is_digit = |byte: u8| byte.is_ascii_digit();
    let is_hex_digit = |byte: u8| byte.is_ascii_hexdigit();
    // One more dot may stand at the end.
    let name = host.strip_suffix('.').unwrap_or(host);
    let last = name.rsplit('.').next().filter(|_| name.split('.').all(is_label))?;
    // Browsers read a name that ends with a number as an address.
    let is_address = last.bytes().all(is_digit)
        || last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(is_hex_digit));
    match is_address {
        true => name.parse::<Ipv4Addr>().ok().map(|address| address.to_string()),
        false => Some(host.to_owned()),
    }
}

#[cfg(test)]
mod tests;
