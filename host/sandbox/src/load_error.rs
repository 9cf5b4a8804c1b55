//! Errors of uploading and loading plugins.

use std::fmt::Write;

use gristmill_core::ErrorCode;
use gristmill_platform::child::ChildError;
use wasmparser::BinaryReaderError;

use crate::error::CallError;
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
    #[error("it is an archive of sources, not a component")]
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
    /// A function has a name that is too long.
    #[error(
        "a function's name has {bytes} bytes, and the limit is {limit}: build it with shorter names, \
         or without the custom section \"name\""
    )]
    LongFunctionName {
        /// The name's length.
        bytes: usize,
        /// Maximum length of a name, in bytes.
        limit: usize,
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
    /// One of the files that it brings is refused.
    #[error("asset {name:?}: {why}")]
    Asset {
        /// The file's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// It exports none of the functions of a world; lists its exports.
    #[error(
        "exports none of `preprocess`, `postprocess` and `handle`: {0}; build it for one of the \
         worlds preprocessor, postprocessor, processor, handler"
    )]
    NoWorld(String),
}

/// How to build without more of WASI than plugins get.
const CURE: &str = "Of WASI 0.2 they get cli, clocks, io, random, http's outgoing-handler, \
    filesystem and sockets that open nothing, keyvalue in its versions 0.2.0-draft and \
    0.2.0-draft2, and nn in 0.2.0-rc-2024-10-28. Build it without the others: componentize-js with \
    `disableFeatures: ['http', 'fetch-event']`; in other languages, remove the calls or the library \
    that need them";

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
    /// It is an archive of sources, and this program has no runtime for them.
    #[error(
        "there is no runtime for {name}: {name}.wasm is neither beside this program nor in the \
         folder of plugins.runtimes_directory (GRISTMILL_RUNTIMES_DIRECTORY); a wheel of gristmill \
         has it, and in a clone `cargo xtask runtimes` makes it", name = .0.name()
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
    /// The cached memory of its sources is of a runtime that this server does not have.
    #[error("its sources were loaded into another runtime")]
    OtherRuntime,
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
            Self::Compiler(error) if error.is_unavailable() => ErrorCode::Unavailable,
            Self::RuntimeUnusable { error, .. } if error.code() == ErrorCode::Unavailable => {
                ErrorCode::Unavailable
            }
            Self::Cache(_)
            | Self::Compiler(_)
            | Self::OtherRuntime
            | Self::RuntimeUnusable { .. } => ErrorCode::Internal,
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
