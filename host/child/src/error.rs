//! Why a child gave no answer.

use std::io;
use std::time::Duration;

/// Why a child gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    /// The queue of jobs is full.
    #[error("{0} jobs are waiting already; try again later")]
    Busy(usize),
    /// No further jobs are started.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The host's fault: no process could be made, or a pipe to it failed.
    #[error("cannot run a child process: {0}")]
    Io(#[from] io::Error),
    /// It ran over its time by the clock.
    #[error("it took longer than {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// It used up its processor time.
    #[error("it used up its {} s of processor time", .0.as_secs_f64())]
    OutOfTime(Duration),
    /// It answered with more bytes than it may.
    #[error("its answer is over the limit of {0} bytes")]
    TooMuchOutput(u64),
    /// A failed allocation ends a process with SIGABRT (6), a stack overflow with SIGSEGV (11).
    #[error(
        "signal {signal} ended it, with a memory limit of {memory_bytes} bytes{}", reason(.said)
    )]
    Killed {
        /// The signal.
        signal: i32,
        /// The limit on its memory.
        memory_bytes: u64,
        /// The end of its standard error.
        said: String,
    },
    /// It ended by itself and reported a failure.
    #[error("it failed with exit status {status}{}", reason(.said))]
    Failed {
        /// Its exit status.
        status: i32,
        /// The end of its standard error.
        said: String,
    },
}

impl ChildError {
    /// Whether the server is at fault, and not the work that the child was given.
    pub fn is_hosts_fault(&self) -> bool {
        match self {
            // The server itself gives a reason when it kills a child. So the kernel killed it,
            // because memory ran out.
            Self::Killed { signal, .. } => *signal == rustix::process::Signal::KILL.as_raw(),
            other => matches!(other, Self::Busy(_) | Self::ShuttingDown | Self::Io(_)),
        }
    }
}

fn reason(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}
