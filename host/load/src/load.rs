//! The load to make, and why it cannot be made.

use std::io;
use std::time::Duration;

use crate::arrivals::Pace;
use crate::target::Target;

/// The load to make.
#[derive(Clone, Debug)]
pub struct Load {
    /// The requests. Each is chosen at random by its weight.
    pub targets: Vec<Target>,
    /// When they are sent.
    pub pace: Pace,
    /// The threads; at least 1.
    pub threads: usize,
    /// The time before it measures.
    pub warm_up: Duration,
    /// How long it measures.
    pub duration: Duration,
    /// How long answers may take after the end. Requests without one by then count as failed.
    pub patience: Duration,
}

/// Why no load can be made.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A thread, a timer or the like cannot be made.
    #[error("cannot make load")]
    System(#[from] io::Error),
    /// The server cannot be reached.
    #[error("cannot connect to the server")]
    Connect(#[source] io::Error),
    /// A thread has panicked.
    #[error("a thread of the load generator has panicked")]
    Panicked,
}

impl From<rustix::io::Errno> for LoadError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}
