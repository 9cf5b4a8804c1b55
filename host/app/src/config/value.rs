//! The types of settings: how a text becomes a value, and in which range it must be.

use std::fmt::Display;
use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use gristmill_core::{Name, Origins};
use gristmill_log::LogFormat;
use gristmill_otlp::OtlpProtocol;
use gristmill_store::{StoreUrl, StoreUrlError};

use super::setting::Setting;

/// Why a text is not a value.
pub(crate) enum Refusal {
    /// The reason follows the value in the message.
    Value(String),
    /// The value is a secret: the message does not repeat it.
    Secret(&'static str),
}

/// The [kind](Value::KIND) of texts that are separated by commas. The file may have them as a list.
pub(crate) const LIST: &str = "text or a list of texts";

/// A type of settings.
pub(crate) trait Value: Sized {
    /// The kind of value that the file must have, with its article.
    const KIND: &'static str = "text";

    /// The value of `text`.
    fn parse(text: &str, setting: &Setting) -> Result<Self, Refusal>;
}

/// Which values a setting takes.
pub(crate) trait Rule<T> {
    /// The range, if `value` is not in it.
    fn broken_by(&self, value: &T) -> Option<String>;
}

/// Every value of the type.
pub(crate) struct Any;

impl<T> Rule<T> for Any {
    fn broken_by(&self, _: &T) -> Option<String> {
        None
    }
}

impl<T: PartialOrd + Display> Rule<T> for RangeInclusive<T> {
    fn broken_by(&self, value: &T) -> Option<String> {
        (!self.contains(value)).then(|| format!("{} to {}", self.start(), self.end()))
    }
}

/// A range of seconds.
impl Rule<Duration> for RangeInclusive<u64> {
    fn broken_by(&self, value: &Duration) -> Option<String> {
        self.broken_by(&value.as_secs())
    }
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const KIND: &'static str = "a number";

            fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
                text.parse().map_err(|_| Refusal::Value("must be a whole number".into()))
            }
        }
    )*};
}

numbers!(u32, u64, usize);

impl Value for f64 {
    const KIND: &'static str = "a number";

    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        text.parse().map_err(|_| Refusal::Value("must be a number".into()))
    }
}

/// Whole seconds.
impl Value for Duration {
    const KIND: &'static str = u64::KIND;

    fn parse(text: &str, setting: &Setting) -> Result<Self, Refusal> {
        u64::parse(text, setting).map(Self::from_secs)
    }
}

impl Value for PathBuf {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        Ok(text.into())
    }
}

impl Value for bool {
    const KIND: &'static str = "true or false";

    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        text.parse().map_err(|_| Refusal::Value("must be true or false".into()))
    }
}

impl Value for StoreUrl {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        text.parse().map_err(|error| match error {
            StoreUrlError::Unknown => Refusal::Value(error.to_string()),
            StoreUrlError::HasSecret => Refusal::Secret(
                "must have no password, no query and no fragment: credentials come from the \
                 environment",
            ),
        })
    }
}

impl Value for Name {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        text.parse().map_err(|error: gristmill_core::InvalidName| Refusal::Value(error.to_string()))
    }
}

/// Origins of web pages, separated by commas.
impl Value for Origins {
    const KIND: &'static str = LIST;

    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
        Self::of(texts.map(str::to_owned).collect()).map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(|fault| fault.error.to_string()).collect();
            Refusal::Value(faults.join("; "))
        })
    }
}

/// An address to listen on. For a host's name it is the first of the host's IPv4 addresses, or else
/// of its IPv6 addresses.
impl Value for SocketAddr {
    fn parse(text: &str, setting: &Setting) -> Result<Self, Refusal> {
        let addresses: Vec<_> =
            text.to_socket_addrs().map_or_else(|_| Vec::new(), Iterator::collect);
        let address = addresses.iter().find(|address| address.is_ipv4()).or(addresses.first());
        address.copied().ok_or_else(|| {
            let example = setting.default.unwrap_or("127.0.0.1:9464");
            Refusal::Value(format!(
                "must be an address of this machine and a port, such as {example}"
            ))
        })
    }
}

/// The admin token: at least 16 characters that can be sent in a header.
pub(crate) struct AdminToken(pub(crate) String);

impl std::fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AdminToken")
    }
}

impl Value for AdminToken {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        if text.len() < 16 {
            return Err(Refusal::Secret("is shorter than 16 characters"));
        }
        if text.trim() != text || !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return Err(Refusal::Secret(
                "cannot be sent in a header: it must be ASCII, without control characters and \
                 without blanks at its ends",
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A filter of log lines, which was checked.
#[derive(Debug)]
pub(crate) struct LogFilter(pub(crate) String);

impl Value for LogFilter {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        let checked = gristmill_log::check_filter(text);
        checked.map_err(|error| Refusal::Value(error.to_string()))?;
        Ok(Self(text.to_owned()))
    }
}

/// The URL of an HTTP server.
#[derive(Debug)]
pub(crate) struct HttpUrl(pub(crate) String);

impl Value for HttpUrl {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        let url = url::Url::parse(text).ok();
        let is_http = |url: &url::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        match url.filter(is_http) {
            Some(url) if !url.username().is_empty() || url.password().is_some() => {
                Err(Refusal::Secret("must have no password: headers come from the environment"))
            }
            Some(_) => Ok(Self(text.to_owned())),
            None => {
                Err(Refusal::Value("must be a URL that begins with http:// or https://".into()))
            }
        }
    }
}

impl Value for OtlpProtocol {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        match text {
            "grpc" => Ok(Self::Grpc),
            "http" => Ok(Self::Http),
            _ => Err(Refusal::Value("must be grpc or http".into())),
        }
    }
}

impl Value for LogFormat {
    fn parse(text: &str, _: &Setting) -> Result<Self, Refusal> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(Refusal::Value("must be text or json".into())),
        }
    }
}
