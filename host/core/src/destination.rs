//! Where the plugins of a tenant may send HTTP requests: the destinations that its document grants.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::serde_as_text::serde_as_text;

/// Maximum bytes of a host's name.
const HOST_BYTES_MAX: usize = 253;

/// Maximum bytes of a part between two dots.
const LABEL_BYTES_MAX: usize = 63;

/// What a pattern of hosts begins with that stands for all names below one.
const BELOW: &str = "*.";

/// The shortest prefix of a range of addresses, in bits. `10.0.0.0/8` and `fc00::/7` are the
/// largest private networks.
const IPV4_BITS_MIN: u8 = 8;
const IPV6_BITS_MIN: u8 = 7;

/// How a request travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// Unencrypted.
    Http,
    /// With TLS.
    Https,
}

/// A destination of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    /// How requests travel.
    pub scheme: Scheme,
    /// The host, or the hosts.
    pub host: HostPattern,
    /// The port.
    pub port: u16,
    /// Ranges of addresses that its host may have, although they are not public.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressRange>,
}

/// The name of a host or its address, or with `*.` before a name all names below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(Box<str>);

/// A range of addresses, such as `10.0.0.0/8`. A range of one address is written as the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHost {
    /// It is not a name.
    #[error(
        "{0:?} is not a host: must be a name in lower case such as api.example.com, *.example.com \
         for all names below it, an address such as 10.0.0.7, or [2001:db8::7]; international names \
         are written in their form with xn--"
    )]
    NotOne(String),
    /// It has more than a host.
    #[error(
        "{0:?} has more than a host: the scheme and the port have keys of their own, and paths \
             are not granted apart"
    )]
    WithMore(String),
    /// A star in another place than the beginning, or alone.
    #[error(
        "{0:?}: a star stands only at the beginning, before a dot and a name, as in \
             *.example.com"
    )]
    Star(String),
}

/// A text that names no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRange {
    /// It is not a range.
    #[error("{0:?} is not a range of addresses: must be one such as 10.0.0.0/8, or an address")]
    NotOne(String),
    /// The address has bits behind the prefix.
    #[error("{text:?} begins before this address: write {right:?}")]
    Begins {
        /// The text.
        text: String,
        /// The range.
        right: String,
    },
    /// It has too many addresses.
    #[error(
        "{0:?} has too many addresses: the shortest prefixes are /{IPV4_BITS_MIN}, and \
         /{IPV6_BITS_MIN} of IPv6"
    )]
    TooWide(String),
    /// A range of IPv4 in a form of IPv6.
    #[error("{0:?} has addresses of IPv4: write them as 10.0.0.0/8")]
    Mapped(String),
}

impl Scheme {
    /// Its names in documents.
    pub const NAMES: [(&'static str, Self); 2] = [("http", Self::Http), ("https", Self::Https)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port if none is given.
    pub fn usual_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Destination {
    /// Whether it is this one. The host is in lower case.
    pub fn is(&self, scheme: Scheme, host: &str, port: u16) -> bool {
        (self.scheme, self.port) == (scheme, port) && self.host.has(host)
    }
}

impl HostPattern {
    /// Whether this host, in lower case, is one of them.
    pub fn has(&self, host: &str) -> bool {
        match self.0.strip_prefix(BELOW) {
            None => *self.0 == *host,
            Some(above) => {
                let before = host.strip_suffix(above).and_then(|rest| rest.strip_suffix('.'));
                before.is_some_and(|name| !name.is_empty())
            }
        }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let cut = || text.chars().take(HOST_BYTES_MAX).collect::<String>();
        if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Ipv6Addr = address.parse().map_err(|_| InvalidHost::NotOne(cut()))?;
            return Ok(Self(format!("[{address}]").into()));
        }
        if text.contains(['/', ':', '@', '?', '#']) {
            return Err(InvalidHost::WithMore(cut()));
        }
        let name = text.strip_prefix(BELOW).unwrap_or(text);
        if name.contains('*') {
            return Err(InvalidHost::Star(cut()));
        }
        let is_address = name.parse::<Ipv4Addr>().is_ok();
        let is_pattern = name.len() < text.len();
        match if is_address { !is_pattern } else { is_name(name) } {
            true => Ok(Self(text.into())),
            false => Err(InvalidHost::NotOne(cut())),
        }
    }
}

/// Whether this is a host's name. One whose last part is a number is read as an address.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let letters =
            label.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
        letters && (1..=LABEL_BYTES_MAX).contains(&label.len())
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= HOST_BYTES_MAX && text.split('.').all(is_label) && !is_number
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

serde_as_text!(HostPattern);

impl AddressRange {
    /// Whether it has this address.
    pub fn has(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                first_of(address, self.bits) == self.first
            }
            _ => false,
        }
    }

    /// Whether it has only one address.
    pub fn is_one(&self) -> bool {
        self.bits == bits_of(self.first)
    }
}

/// The bits of an address of this kind.
fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The first address with the same prefix of so many bits.
fn first_of(address: IpAddr, bits: u8) -> IpAddr {
    let behind = u32::from(bits_of(address).saturating_sub(bits));
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(behind).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(behind).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl FromStr for AddressRange {
    type Err = InvalidRange;

    fn from_str(text: &str) -> Result<Self, InvalidRange> {
        let cut = || text.chars().take(HOST_BYTES_MAX).collect::<String>();
        let not_one = || InvalidRange::NotOne(cut());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| not_one())?;
        let most = bits_of(address);
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(not_one)?,
            None => most,
        };
        if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err(InvalidRange::Mapped(cut()));
        }
        let least = if address.is_ipv4() { IPV4_BITS_MIN } else { IPV6_BITS_MIN };
        if bits < least {
            return Err(InvalidRange::TooWide(cut()));
        }
        let range = Self { first: first_of(address, bits), bits };
        match range.first == address {
            true => Ok(range),
            false => Err(InvalidRange::Begins { text: cut(), right: range.to_string() }),
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_one() {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}/{}", self.first, self.bits),
        }
    }
}

serde_as_text!(AddressRange);

#[cfg(test)]
mod tests;
