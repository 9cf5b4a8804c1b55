//! Why a child gave no answer.

use std::io;
use std::time::Duration;

use rustix::process::Signal;

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
    /// It used up its CPU time.
    #[error("it used up its {} s of CPU time", .0.as_secs_f64())]
    OutOfTime(Duration),
    /// It answered with more bytes than it may.
    #[error("its answer is over the limit of {0} bytes")]
    TooMuchOutput(u64),
    /// It needed more memory than it may have.
    #[error("it went over its limit of {limit} bytes of memory{}", reason(.stderr))]
    OutOfMemory {
        /// The limit.
        limit: u64,
        /// The beginning of its standard error.
        stderr: String,
    },
    /// It crashed, or something outside ended it. SIGABRT is also how Rust ends a process whose
    /// stack is at its end.
    #[error("{} ended it{}", name_of(*.signal), reason(.stderr))]
    Killed {
        /// The signal.
        signal: i32,
        /// The beginning of its standard error.
        stderr: String,
    },
    /// It ended by itself and reported a failure.
    #[error("it failed with exit status {status}{}", reason(.stderr))]
    Failed {
        /// Its exit status.
        status: i32,
        /// The beginning of its standard error.
        stderr: String,
    },
}

impl ChildError {
    /// Whether a child has begun with the work, and the server goes on. If not, less work would end
    /// in the same way.
    pub fn has_begun(&self) -> bool {
        !matches!(self, Self::Busy(_) | Self::ShuttingDown | Self::Io(_))
    }

    /// Whether there was no child to be had at this time. The same work may be done later.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::ShuttingDown)
    }

    /// Whether the server is at fault, and not the work that the child was given.
    pub fn is_hosts_fault(&self) -> bool {
        match self {
            // The server itself gives a reason when it kills a child. So the kernel killed it,
            // because memory ran out.
            Self::Killed { signal, .. } => *signal == Signal::KILL.as_raw(),
            other => !other.has_begun(),
        }
    }
}

/// `signal 6 (SIGABRT)`.
fn name_of(signal: i32) -> String {
    let names = [
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::TERM, "SIGTERM"),
    ];
    match names.iter().find(|(other, _)| other.as_raw() == signal) {
        Some((_, name)) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}

fn reason(stderr: &str) -> String {
    if stderr.is_empty() { String::new() } else { format!(": {stderr}") }
}
