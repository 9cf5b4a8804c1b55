//! Errors of calling plugins.

use std::time::Duration;

use gristmill_core::{ErrorCode, OverBudget};
use tokio::sync::AcquireError;
use tokio::task::JoinError;
use wasmtime::component::ResourceTableError;

use crate::model_runs::{RunFault, RunFaultKind};

/// The failure that a plugin returned, with its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request cannot be understood.
    InvalidInput(String),
    /// The plugin does not take the request's media type.
    UnsupportedMediaType(String),
    /// The request is understood, but cannot be served.
    Unprocessable(String),
    /// The plugin's own fault. The text is for those who see the plugin's lines.
    Internal(String),
}

impl Failure {
    /// The plugin's text.
    pub fn text(&self) -> &str {
        match self {
            Self::InvalidInput(text)
            | Self::UnsupportedMediaType(text)
            | Self::Unprocessable(text)
            | Self::Internal(text) => text,
        }
    }
}

/// Why a call gave no answer. It concerns only this call.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The plugin returned a failure.
    #[error("plugin failed: {0:?}")]
    Failure(Failure),
    /// The plugin trapped.
    #[error("plugin trapped: {why}")]
    Trapped {
        /// Why.
        why: String,
        /// The functions in which it was, the innermost one first. Empty if they say nothing.
        functions: Vec<String>,
    },
    /// The plugin ended itself, through WASI, with this status.
    #[error("plugin called exit with status {0}: a plugin has to return from its call")]
    Exited(i32),
    /// The plugin reached a limit on memory, tables or handles.
    #[error("plugin went over its limit of {0}")]
    OutOfMemory(CallLimit),
    /// The plugin used up its CPU time.
    #[error("plugin used up its {limit_ms} ms of CPU time (limits.cpu_ms of the pipeline)")]
    OutOfTime {
        /// The limit.
        limit_ms: u128,
        /// The functions in which it was, the innermost one first.
        functions: Vec<String>,
    },
    /// All calls of its owner together hold too much memory.
    #[error(transparent)]
    Busy(#[from] OverBudget),
    /// The owner's calls are too busy to answer the request in time.
    #[error(transparent)]
    TooBusy(TooBusy),
    /// Too many calls of its owner wait for a clock; holds how many may.
    #[error(
        "as many plugin calls of the tenant sleep or wait for their turn to sleep as may, which is \
         {0}: send fewer requests at a time to a pipeline whose plugin sleeps"
    )]
    TooManyWait(usize),
    /// The plugin's answer goes over a limit or breaks the contract.
    #[error("plugin's answer cannot be used: {0}")]
    InvalidOutput(#[source] AnswerFault),
    /// A run of a model gave no outputs, and the plugin passed that on.
    #[error("a model gave no outputs: {0}")]
    Model(RunFault),
    /// The plugin has no such export.
    #[error("plugin does not export `{0}`")]
    NotExported(&'static str),
    /// A fault of the host.
    #[error("sandbox failed: {0}")]
    Host(#[source] HostFault),
}

/// The keys that set limits, for texts.
const MEMORY_KEYS: &str =
    "limits.memory_bytes of the pipeline, up to the server's plugin_memory_bytes";
const RESPONSE_KEY: &str = "limits.response_bytes of the pipeline";
pub(crate) const HELD_KEY: &str = "plugin_held_bytes";
pub(crate) const PASSED_KEY: &str = "limits.passed_bytes of the pipeline";

/// The calls of an owner are too busy to answer a request before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the tenant's plugin calls are too busy to answer in time: this one would begin after about {} \
     ms, and has {} ms for that",
    expected.as_millis(), left.as_millis()
)]
pub struct TooBusy {
    /// The time after which the call would begin.
    pub expected: Duration,
    /// The time within which it has to begin.
    pub left: Duration,
}

impl TooBusy {
    /// The time after which a request with the same deadline may be answered.
    pub fn retry_after(&self) -> Duration {
        self.expected.saturating_sub(self.left)
    }
}

/// A limit on what a call may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallLimit {
    /// Bytes of linear memory.
    #[error("{0} bytes of memory ({MEMORY_KEYS})")]
    Memory(usize),
    /// Bytes of linear memory. The host was asked to copy more bytes than this limit into it.
    #[error("{limit} bytes of memory ({MEMORY_KEYS}): {bytes} bytes were to be copied into it")]
    Copied {
        /// The limit.
        limit: usize,
        /// The bytes to be copied.
        bytes: usize,
    },
    /// Events that a call waits for.
    #[error("waiting for {limit} events at a time ({events} wanted)")]
    Polled {
        /// The limit.
        limit: usize,
        /// The events that it wanted to wait for.
        events: usize,
    },
    /// Runs of models, in one call.
    #[error("{0} runs of models in one request")]
    Runs(usize),
    /// Runs of models side by side.
    #[error("{limit} runs of models side by side ({runs} wanted)")]
    RunsAtOnce {
        /// The limit.
        limit: usize,
        /// The runs that it wanted.
        runs: usize,
    },
    /// Elements of tables.
    #[error("{0} table elements")]
    TableElements(usize),
    /// Bytes of one tensor.
    #[error("{0} bytes for one tensor ({PASSED_KEY})")]
    Tensor(usize),
    /// Bytes that the host holds for the call.
    #[error("{0} bytes of tensors, pictures and blobs (the server's {HELD_KEY})")]
    HostMemory(usize),
    /// Handles of resources.
    #[error("{0} handles")]
    Handles(usize),
}

/// Why a plugin's answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AnswerFault {
    /// Its state for `postprocess` is too long.
    #[error("state of {bytes} bytes is over the limit of {limit} ({RESPONSE_KEY})")]
    State {
        /// The state's length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// It has too many inputs for a model.
    #[error("{inputs} inputs are over the limit of {limit}")]
    Inputs {
        /// How many it has.
        inputs: usize,
        /// How many it may have.
        limit: usize,
    },
    /// An input's name is too long.
    #[error("an input's name of {bytes} bytes is over the limit of {limit}")]
    InputName {
        /// The name's length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A handle is not a tensor's.
    #[error(transparent)]
    Handle(#[from] ResourceTableError),
    /// The status is not one that an answer can have.
    #[error("status {0} is not one of 200 to 599")]
    Status(u16),
    /// The response is too long.
    #[error("response of {bytes} bytes is over the limit of {limit} ({RESPONSE_KEY})")]
    Response {
        /// The body's length.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
}

/// A fault of the host in a call.
#[derive(Debug, thiserror::Error)]
pub enum HostFault {
    /// The places for calls are closed.
    #[error(transparent)]
    Closed(#[from] AcquireError),
    /// The task of a long call ended before the call did.
    #[error(transparent)]
    Stopped(#[from] JoinError),
    /// The call was polled after its end.
    #[error("the call has ended already")]
    Ended,
    /// A parameter cannot be put into the call's table.
    #[error(transparent)]
    Table(#[from] ResourceTableError),
    /// The host's own code panicked, with this text.
    #[error("panicked: {0}")]
    Panicked(String),
}

impl CallError {
    /// The text for those who see the plugin's lines.
    pub fn detail(&self) -> String {
        match self {
            Self::Failure(failure) => failure.text().to_owned(),
            Self::OutOfTime { functions, .. } | Self::Trapped { functions, .. }
                if !functions.is_empty() =>
            {
                format!("{self}, in {}", functions.join(", called by "))
            }
            other => other.to_string(),
        }
    }

    /// The code for clients.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Failure(Failure::InvalidInput(_)) => ErrorCode::InvalidRequest,
            Self::Failure(Failure::UnsupportedMediaType(_)) => ErrorCode::UnsupportedMediaType,
            Self::Failure(Failure::Unprocessable(_)) => ErrorCode::Unprocessable,
            Self::Failure(Failure::Internal(_)) => ErrorCode::PluginFailed,
            Self::Trapped { .. } | Self::Exited(_) => ErrorCode::PluginTrapped,
            Self::OutOfMemory(_) => ErrorCode::PluginOutOfMemory,
            Self::OutOfTime { .. } => ErrorCode::PluginTimeout,
            Self::Busy(_) | Self::TooManyWait(_) => ErrorCode::TenantBusy,
            Self::TooBusy(_) => ErrorCode::Overloaded,
            Self::InvalidOutput(_) => ErrorCode::PluginInvalidOutput,
            Self::Model(fault) => match fault.kind {
                RunFaultKind::NotGranted => ErrorCode::PluginFailed,
                RunFaultKind::InvalidInput => ErrorCode::PluginInvalidOutput,
                RunFaultKind::Overloaded => ErrorCode::Overloaded,
                RunFaultKind::Unavailable => ErrorCode::Unavailable,
                RunFaultKind::Failed => ErrorCode::ModelFailed,
            },
            Self::NotExported(_) | Self::Host(_) => ErrorCode::Internal,
        }
    }
}
