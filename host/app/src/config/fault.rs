//! Faults of the configuration.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use gristmill_transport::TlsError;

/// One fault.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The configuration file cannot be read.
    #[error("{path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// The configuration file is not TOML.
    #[error("{path}: {source}")]
    Toml { path: PathBuf, source: toml::de::Error },
    /// The file has an unknown key.
    #[error("{path}: unknown key {key:?}; known are {known_keys}")]
    UnknownKey { path: PathBuf, key: String, known_keys: String },
    /// A value in the file has the wrong kind.
    #[error("{key} must be {expected}, not {actual}")]
    Kind { key: &'static str, expected: &'static str, actual: &'static str },
    /// A text is not a value of the setting's type.
    #[error("{key} is {text}: {why}")]
    Value { key: &'static str, text: String, why: String },
    /// A secret cannot be used. The message does not contain it.
    #[error("{key} {why}")]
    Secret { key: &'static str, why: &'static str },
    /// A value is out of the setting's range.
    #[error("{key} is {text}: must be {range}")]
    Range { key: &'static str, text: String, range: String },
    /// A tenant's budget is smaller than the largest request.
    #[error("tenant_bytes_max is {tenant}: must be at least message_bytes_max, {message}")]
    SmallBudget { tenant: usize, message: usize },
    /// A setting is useless without another one.
    #[error("{missing} is missing: {needed_by} needs it")]
    Missing { missing: &'static str, needed_by: &'static str },
    /// A file of TLS cannot be used.
    #[error("{key} is {path:?}: {source}")]
    Tls { key: &'static str, path: PathBuf, source: TlsError },
    /// A store cannot be bound. The text has the key and what it must be.
    #[error("{0}")]
    Store(String),
    /// Two planes have the same address.
    #[error("{first} and {second} are both {address}")]
    SameAddress { first: &'static str, second: &'static str, address: SocketAddr },
}

/// All faults of a configuration.
#[derive(Debug)]
pub(crate) struct Faults(pub(crate) Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is wrong:")?;
        self.0.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

impl std::error::Error for Faults {}
