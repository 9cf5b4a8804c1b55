//! Errors of uploading, loading and calling plugins.

use std::fmt::Write;
use std::time::Duration;

use gristmill_core::{ErrorCode, OverBudget};
use gristmill_platform::child::ChildError;
use tokio::sync::AcquireError;
use tokio::task::JoinError;
use wasmparser::BinaryReaderError;
use wasmtime::component::ResourceTableError;

use crate::language::Language;

/// Why an uploaded file is not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// Neither a component nor a core module; holds the file's first bytes in hexadecimal.
    #[error(
        "not a WebAssembly component: the file begins with {0}, neither a component nor a core \
         module nor an archive of sources"
    )]
    NotWasm(String),
    /// An archive of sources, where a component is needed.
    #[error("it is an archive of sources: only a server can tell what it exports")]
    Archive,
    /// A component or module that does not validate.
    #[error("not a valid WebAssembly component: {0}")]
    Invalid(#[from] BinaryReaderError),
    /// A core module that was not built for a world.
    #[error(
        "a core module without a component type: build it with the SDK, or encode it as a component \
         first"
    )]
    NoComponentType,
    /// A core module that does not fit its component type.
    #[error("cannot encode the core module as a component: {0}")]
    Encode(String),
    /// It imports interfaces that the host does not have.
    #[error("unknown imports: {}; a plugin may import only {}", .unknown.join(", "), .allowed.join(", "))]
    UnknownImports {
        /// The imports that the host does not have.
        unknown: Vec<String>,
        /// The interfaces that a plugin may import.
        allowed: Vec<String>,
    },
    /// It imports interfaces of several versions of the contract.
    #[error("imports interfaces of several versions of gristmill:plugin: build it against one")]
    SeveralContracts,
    /// It imports interfaces of WASI that plugins do not get.
    #[error("it imports {}, which plugins do not get. {CURE}", shortened(.0))]
    RefusedWasi(Vec<String>),
    /// An instance of it needs more than a place of the pool has.
    #[error("one instance has {count} {what}; the limit is {limit}{setting}")]
    TooMany {
        /// The kind of things that are counted.
        what: &'static str,
        /// How many it has.
        count: u64,
        /// How many it may have.
        limit: u64,
        /// The server's setting for the limit, in brackets; empty if there is none.
        setting: &'static str,
    },
    /// One of its functions is too long to be interrupted in time.
    #[error(
        "one function has {bytes} bytes of code; the limit is {limit}, because a call can be \
         interrupted only where a function begins or a loop repeats"
    )]
    LongFunction {
        /// The function's code, in bytes.
        bytes: usize,
        /// Maximum code of a function, in bytes.
        limit: usize,
    },
    /// It passes strings in UTF-16.
    #[error("its texts are in UTF-16: build it with string encoding utf8")]
    NotUtf8,
    /// It exports none of the functions of a world; lists its exports.
    #[error(
        "exports neither `preprocess` nor `postprocess`: {0}; build it for one of the worlds \
         preprocessor, postprocessor, processor"
    )]
    NoWorld(String),
}

/// How to build without more of WASI than plugins get.
const CURE: &str = "Of WASI 0.2 they get cli, clocks, io, random, and filesystem and sockets that open \
    nothing. Build it without the others: componentize-js with `disableFeatures: ['http', \
    'fetch-event']`; in other languages, remove the calls or the library that need them";

/// The first few names, and the number of the others.
fn shortened(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Why a plugin could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is not a plugin.
    #[error(transparent)]
    Admit(#[from] ComponentError),
    /// The child that should compile it refused the file; holds the child's text.
    #[error("{0}")]
    Refused(String),
    /// It is an archive of sources, whose runtime is not compiled yet.
    #[error("the runtime for {} is not compiled", .0.name())]
    NeedsRuntime(Language),
    /// It is an archive of sources, and this server has no runtime for them.
    #[error(
        "this server has no runtime for {name}: the file {name}.wasm is not in the folder of the \
         setting plugins.runtimes_directory", name = .0.name()
    )]
    NoRuntime(Language),
    /// The runtime of its language cannot be used. No plugin is to blame.
    #[error("the runtime for {} cannot be used just now", .language.name())]
    RuntimeUnusable {
        /// The language.
        language: Language,
        /// Why.
        #[source]
        error: Box<LoadError>,
    },
    /// wasmtime cannot compile or map it.
    #[error("compilation failed: {0:#}")]
    Compile(wasmtime::Error),
    /// The child that reads and compiles the file ended without an answer.
    #[error("compilation failed: {error}{}", advice(.error))]
    NotCompiled {
        /// How it ended.
        #[source]
        error: ChildError,
    },
    /// Its imports or exports are not those of the contract.
    #[error("does not fit the contract: {0:#}")]
    Contract(wasmtime::Error),
    /// Its initial memory or tables are larger than those of a place in the pool.
    #[error("does not fit the contract: {what} is over the host's limit of {limit}")]
    TooLarge {
        /// The initial memory or table.
        what: String,
        /// The limit, in bytes or elements.
        limit: usize,
    },
    /// It was compiled under other limits, and needs more than those of this host.
    #[error("does not fit the contract: its memories or tables are over the host's limits")]
    OverLimits(#[source] wasmtime::Error),
    /// An instance of it cannot be made.
    #[error("cannot be instantiated: {0}")]
    Instantiate(#[source] CallError),
    /// Compiling failed because of the host.
    #[error("cannot be compiled just now: {0}")]
    Compiler(#[source] ChildError),
    /// A fault of the disk. The text names no path of this host; [`LoadError::in_full`] does.
    #[error("the cache of compiled code cannot be used")]
    Cache(#[from] std::io::Error),
}

impl LoadError {
    /// The code for clients.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Compiler(ChildError::Busy(_) | ChildError::ShuttingDown) => {
                ErrorCode::Unavailable
            }
            Self::RuntimeUnusable { error, .. } if error.code() == ErrorCode::Unavailable => {
                ErrorCode::Unavailable
            }
            Self::Cache(_) | Self::Compiler(_) | Self::RuntimeUnusable { .. } => {
                ErrorCode::Internal
            }
            _ => ErrorCode::InvalidPlugin,
        }
    }

    /// The text, and the texts of all its sources, for the log.
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
        if error.is_hosts_fault() { Self::Compiler(error) } else { Self::NotCompiled { error } }
    }
}

/// The setting that bounds it, or what to do about the file.
fn advice(error: &ChildError) -> &'static str {
    match error {
        ChildError::OutOfTime(_) | ChildError::TimedOut(_) => "; compile_timeout_s bounds it",
        ChildError::OutOfMemory { .. } => "; compile_memory_bytes bounds it",
        ChildError::Killed { .. } => "; the file may be damaged: build the plugin anew",
        _ => "",
    }
}

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
    #[error("plugin trapped: {0}")]
    Trapped(String),
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
    /// Elements of tables.
    #[error("{0} table elements")]
    TableElements(usize),
    /// Bytes of one tensor.
    #[error("{0} bytes for one tensor")]
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
            Self::OutOfTime { functions, .. } if !functions.is_empty() => {
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
            Self::Trapped(_) | Self::Exited(_) => ErrorCode::PluginTrapped,
            Self::OutOfMemory(_) => ErrorCode::PluginOutOfMemory,
            Self::OutOfTime { .. } => ErrorCode::PluginTimeout,
            Self::Busy(_) | Self::TooManyWait(_) => ErrorCode::TenantBusy,
            Self::TooBusy(_) => ErrorCode::Overloaded,
            Self::InvalidOutput(_) => ErrorCode::PluginInvalidOutput,
            Self::NotExported(_) | Self::Host(_) => ErrorCode::Internal,
        }
    }
}
