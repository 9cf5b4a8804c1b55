//! The set-up of `tracing`, and the log: the format of its lines and their writer.
//!
//! Refuses to know what the lines say.
//!
//! Invariants:
//! - logging never blocks: a line goes into a bounded queue. If the queue is full, the line is
//!   dropped and counted;
//! - a text in a line is cut and escaped, so that neither clients nor plugins can flood or forge
//!   lines.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod format;
mod line;
mod plugin;
mod queue;
mod text;

use std::io::{self, IsTerminal};
use std::panic::Location;
use std::sync::Arc;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

pub use self::format::LogFormat;
use self::line::LogLayer;
pub use self::line::timestamp;
pub use self::plugin::{PLUGIN_TARGET, PluginFields};
use self::queue::Queue;
pub use self::text::escaped_len;

/// Why the log cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogSetupError {
    /// The filter cannot be read.
    #[error(transparent)]
    Filter(#[from] ParseError),
    /// The writer's thread cannot be started.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// There is a subscriber already.
    #[error(transparent)]
    Subscriber(#[from] TryInitError),
}

/// The log; clones are the same.
#[derive(Clone)]
pub struct Log(Arc<Queue>);

impl Log {
    /// A log in which nothing is written, for tests.
    ///
    /// # Errors
    /// The writer's thread cannot be started.
    #[doc(hidden)]
    pub fn of_nothing() -> io::Result<Self> {
        Queue::start(io::sink()).map(Self)
    }

    /// The number of lines that were dropped because standard error took no more.
    pub fn dropped(&self) -> u64 {
        self.0.dropped()
    }

    /// Wait a moment for the lines that are not written yet. Call this at the end of the process.
    pub fn flush(&self) {
        self.0.flush();
    }
}

/// Check a filter such as `info` or `info,gristmill_http=debug`.
///
/// # Errors
/// The filter cannot be read; in the words of `tracing-subscriber`.
pub fn check_filter(filter: &str) -> Result<(), ParseError> {
    EnvFilter::try_new(filter).map(drop)
}

/// Write log lines that pass `filter` to standard error, with the fields of their spans. Panics
/// become log lines, too: an error, or a line for debugging where `is_of_input` says that the
/// thread works on an input that may make it panic. Modules in `own_modules` log only what
/// requests cannot provoke at will; room in the queue is reserved for their lines. Call this once.
///
/// # Errors
/// The filter cannot be read, the writer's thread cannot be started, or there is a subscriber
/// already.
pub fn init(
    filter: &str,
    format: LogFormat,
    own_modules: &'static [&'static str],
    is_of_input: fn() -> bool,
) -> Result<Log, LogSetupError> {
    let filter = EnvFilter::try_new(filter)?;
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let coloured = format == LogFormat::Text && !plain && io::stderr().is_terminal();
    let queue = Queue::start(io::stderr())?;
    let layer = LogLayer::new(format, coloured, own_modules, queue.clone());
    let subscriber = tracing_subscriber::registry().with(filter).with(layer);
    subscriber.try_init()?;
    // The standard hook writes to standard error at once, which may block.
    std::panic::set_hook(Box::new(move |panic| {
        let at = panic.location().map(place).unwrap_or_default();
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or_default();
        let why = panic.payload_as_str().unwrap_or("of unknown type");
        if is_of_input() {
            tracing::debug!(at, thread, why, "refused an input with a panic");
        } else {
            tracing::error!(at, thread, why, "panicked");
        }
    }));
    Ok(Log(queue))
}

/// The place in the code, without folders of the machine that built it.
fn place(location: &Location<'_>) -> String {
    let (file, line) = (location.file(), location.line());
    // A library's file, from its name and version on; or a file of the standard library.
    let of = |folder: &str| Some(file.split_once(folder)?.1);
    let library = of("/registry/src/").and_then(|rest| Some(rest.split_once('/')?.1));
    let file = match library.or_else(|| of("/library/")) {
        Some(file) => file,
        None if file.starts_with('/') => file.rsplit('/').next().unwrap_or_default(),
        None => file,
    };
    format!("{file}:{line}")
}
