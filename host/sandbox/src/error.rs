//! What can be wrong with a plugin: when it is uploaded, when it is loaded, when it is called.

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
        "exports neither `preprocess` nor `postprocess`: {0}; build it for one of the worlds preprocessor, postprocessor, processor"
    )]
    NoWorld(String),
}

/// Why an admitted plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Admit(#[from] AdmitError),
    #[error("compilation failed: {0}")]
    Compile(String),
    #[error("does not fit the contract: {0}")]
    Contract(String),
    #[error("cannot be instantiated: {0}")]
    Instantiate(CallError),
    #[error("compiled-code cache: {0}")]
    Cache(#[from] std::io::Error),
}

impl LoadError {
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Cache(_) => ErrorCode::Internal,
            _ => ErrorCode::InvalidPlugin,
        }
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
