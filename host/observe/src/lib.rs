//! The values of all metrics at one moment, asked of the parts that own them.
//!
//! In reading order: `requests` for tenants and their pipelines, `models` for models and their
//! queues, `server` for releases, plugins and connections, `process` for the operating system's
//! view; `scrape` makes text of all.
//!
//! Refuses to know who reads the values: `admin` answers them as text.
//!
//! Invariant: looking changes nothing that serves, and takes no lock for longer than one look at
//! one queue.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod models;
mod process;
mod requests;
mod scrape;
mod server;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use gristmill_control::Control;
use gristmill_metrics::{Collected, EdgeFigures};
use gristmill_telemetry::Log;
use gristmill_transport::Connections;

pub use self::scrape::Scrapes;

/// The parts of a server whose figures are metrics.
pub struct Parts {
    /// The control plane, with the snapshot that serves.
    pub control: Arc<Control>,
    /// The figures of all answers.
    pub edges: Arc<EdgeFigures>,
    /// The connections of each plane, by the plane's name.
    pub connections: [(&'static str, Connections); 2],
    /// The log.
    pub log: Log,
    /// Of one tenant's requests and answers under way.
    pub tenant_bytes_max: usize,
    /// The version of the program.
    pub version: &'static str,
}

/// Asks the parts of a server for their figures.
pub struct Observer {
    parts: Parts,
    started: (SystemTime, Instant),
}

impl Observer {
    /// An observer of a server that starts now.
    pub fn new(parts: Parts) -> Self {
        Self { parts, started: (SystemTime::now(), Instant::now()) }
    }

    /// The values of all metrics now. This takes some milliseconds for thousands of pipelines, so
    /// it must not run on a thread that serves.
    pub fn collect(&self) -> Collected {
        let (since, started) = self.started;
        let mut collected = Collected::new(since);
        let serving = self.parts.control.serving();
        requests::collect(&self.parts, &serving.snapshot, &mut collected);
        models::collect(&serving.snapshot, &mut collected);
        server::collect(&self.parts, &serving.snapshot, &mut collected);
        process::collect(started, &mut collected);
        collected
    }
}
