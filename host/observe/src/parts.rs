//! The parts of a server that are asked.

use std::sync::Arc;

use gristmill_control::Control;
use gristmill_metrics::EdgeFigures;
use gristmill_telemetry::Log;
use gristmill_transport::Connections;

/// The parts of a server whose figures are metrics.
pub struct Parts {
    /// The control plane, with the snapshot that serves.
    pub control: Arc<Control>,
    /// The figures of all answers.
    pub edges: &'static EdgeFigures,
    /// The connections of each plane, by the plane's name.
    pub connections: [(&'static str, Connections); 2],
    /// The log.
    pub log: Log,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    /// The version of the program.
    pub version: &'static str,
}
