//! The parts of a server that are asked.

use std::sync::Arc;

use gristmill_control::Control;
use gristmill_core::{BufferPool, Requests};
use gristmill_log::Log;
use gristmill_metrics::EdgeFigures;
use gristmill_transport::Connections;

/// The memory of the allocator, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Heap {
    /// What it has from the system now, whether it is in use or not.
    pub committed: u64,
    /// The most that it had.
    pub committed_peak: u64,
}

/// The parts of a server whose figures are metrics.
pub struct Observed {
    /// The control plane, with the snapshot that serves.
    pub control: Arc<Control>,
    /// The figures of all answers.
    pub edges: &'static EdgeFigures,
    /// The requests that are under way.
    pub requests: &'static Requests,
    /// Asks the allocator.
    pub heap: fn() -> Heap,
    /// The memory for tensors.
    pub pool: BufferPool,
    /// The connections of each plane, by the plane's name.
    pub connections: [(&'static str, Connections); 2],
    /// The log.
    pub log: Log,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    /// The version of the program.
    pub version: &'static str,
}
