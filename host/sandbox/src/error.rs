//! What can be wrong with a plugin: when it is uploaded, when it is loaded, when it is called.

use std::fmt::Write;

use gristmill_child::ChildError;
use gristmill_core::{ErrorCode, OverBudget};

/// Why an uploaded file is no plugin.
#[derive(Debug, thiserror::Error)]
pub enum AdmitError {
    #[error(
        "not a WebAssembly component: the file begins with {0}, neither a component nor a core module"
    )]
    NotWasm(String),
    #[error("not a valid WebAssembly component: {0}")]
    Invalid(String),
    #[error(
        "a core module without a component type: build it with the SDK, or encode it as a component first"
    )]
    NoComponentType,
    #[error("cannot encode the core module as a component: {0}")]
    Encode(String),
    #[error("unknown imports: {}; a plugin may import only {}", .unknown.join(", "), .known.join(", "))]
    UnknownImports { unknown: Vec<String>, known: Vec<String> },
    #[error(
        "it needs WASI ({}), which plugins do not get. {CURE}", shortened(.0)
    )]
    NeedsWasi(Vec<String>),
    #[error("an instance of it has {found} {what}; the limit is {limit}{setting}")]
    TooMany { what: &'static str, found: u64, limit: u64, setting: &'static str },
    #[error(
        "a function of it has {found} bytes of code; the limit is {limit}, because a call can be interrupted only \
         where a function begins or a loop repeats"
    )]
    LongFunction { found: usize, limit: usize },
    #[error("its texts are in UTF-16: build it with string encoding utf8")]
    NotUtf8,
    #[error(
        "exports neither `preprocess` nor `postprocess`: {0}; build it for one of the worlds preprocessor, postprocessor, processor"
    )]
    NoWorld(String),
}

/// How each tool builds without WASI.
const CURE: &str = "Build it without: componentize-py with `--stub-wasi`; componentize-js with \
    `disableFeatures: ['random', 'stdio', 'clocks', 'http', 'fetch-event']`; Rust for \
    `wasm32-unknown-unknown` with `gristmill plugin build`; C without functions that need the system \
    (no stdio, no files, no clock)";

/// The first few of many.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// What the child said that compiled it.
    #[error("{0}")]
    Refused(String),
    #[error("compilation failed: {0}")]
    Compile(String),
    #[error("compilation failed: {0}; compile_timeout_s and compile_memory_bytes bound it")]
    TooCostly(#[source] ChildError),
    #[error("does not fit the contract: {0}")]
    Contract(String),
    #[error("cannot be instantiated: {0}")]
    Instantiate(CallError),
    /// Compiling did not come to an end, for no fault of the plugin's.
    #[error("cannot be compiled just now: {0}")]
    Compiler(#[source] ChildError),
    /// The text says no path of this host: [`LoadError::in_full`] does.
    #[error("the cache of compiled code cannot be used")]
    Cache(#[from] std::io::Error),
}

impl LoadError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Compiler(ChildError::Busy(_) | ChildError::ShuttingDown) => {
                ErrorCode::Unavailable
            }
            Self::Cache(_) | Self::Compiler(_) => ErrorCode::Internal,
            _ => ErrorCode::InvalidPlugin,
        }
    }

    /// The text with all that it comes from, for the log.
    pub fn in_full(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            let _ = write!(text, ": {error}");
            source = error.source();
        }
        text
    }
}

impl From<ChildError> for LoadError {
    fn from(error: ChildError) -> Self {
        if error.is_hosts_fault() { Self::Compiler(error) } else { Self::TooCostly(error) }
    }
}

/// What a plugin says when it gives no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    InvalidInput(String),
    UnsupportedMediaType(String),
    Unprocessable(String),
    Internal(String),
}

/// Why a call gave no answer. Concerns this call alone.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("plugin failed: {0:?}")]
    Failure(Failure),
    #[error("plugin trapped: {0}")]
    Trapped(String),
    #[error("plugin went over its limit of {0}")]
    OutOfMemory(String),
    #[error("plugin used up its {0} ms of CPU time")]
    OutOfTime(u128),
    /// The calls of its owner hold too much memory together.
    #[error(transparent)]
    Busy(#[from] OverBudget),
    #[error("plugin's answer cannot be used: {0}")]
    InvalidOutput(String),
    #[error("plugin does not export `{0}`")]
    NotExported(&'static str),
    #[error("sandbox failed: {0}")]
    Host(String),
}

impl CallError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Failure(Failure::InvalidInput(_)) => ErrorCode::InvalidRequest,
            Self::Failure(Failure::UnsupportedMediaType(_)) => ErrorCode::UnsupportedMediaType,
            Self::Failure(Failure::Unprocessable(_)) => ErrorCode::Unprocessable,
            Self::Failure(Failure::Internal(_)) => ErrorCode::PluginFailed,
            Self::Trapped(_) => ErrorCode::PluginTrapped,
            Self::OutOfMemory(_) => ErrorCode::PluginOutOfMemory,
            Self::OutOfTime(_) => ErrorCode::PluginTimeout,
            Self::Busy(_) => ErrorCode::TenantBusy,
            Self::InvalidOutput(_) => ErrorCode::PluginInvalidOutput,
            Self::NotExported(_) | Self::Host(_) => ErrorCode::Internal,
        }
    }
}
