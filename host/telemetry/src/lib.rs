//! Names of spans and stages, and the set-up of `tracing`.
//!
//! Refuses to know what it is measuring.

#![forbid(unsafe_code)]

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// A request's stages: the names of its spans and of its `Server-Timing` entries.
pub mod stage {
    pub const AUTH: &str = "auth";
    pub const PRE: &str = "pre";
    pub const QUEUE: &str = "queue";
    pub const INFER: &str = "infer";
    pub const POST: &str = "post";
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// A log filter that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidFilter(String);

/// Check a filter such as `info` or `info,gristmill_http=debug`.
pub fn check_filter(filter: &str) -> Result<(), InvalidFilter> {
    EnvFilter::try_new(filter).map(drop).map_err(|error| InvalidFilter(error.to_string()))
}

/// Write log lines and spans that pass `filter` to standard error. Call it once.
pub fn init(filter: &str, format: LogFormat) -> Result<(), InvalidFilter> {
    let filter = EnvFilter::try_new(filter).map_err(|error| InvalidFilter(error.to_string()))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let outcome = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    outcome.map_err(|error| InvalidFilter(error.to_string()))
}
