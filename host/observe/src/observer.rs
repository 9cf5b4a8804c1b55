//! All values at one moment.

use std::time::Instant;

use gristmill_metrics::Collected;

use crate::parts::Parts;
use crate::{models, process, requests, server};

/// Asks the parts of a server for their figures.
pub struct Observer {
    parts: Parts,
    started: Instant,
}

impl Observer {
    /// An observer of a server that starts now.
    pub fn new(parts: Parts) -> Self {
        Self { parts, started: Instant::now() }
    }

    /// The values of all metrics now. This takes some milliseconds for thousands of pipelines, so
    /// it must not run on a thread that serves.
    pub fn collect(&self) -> Collected {
        let mut collected = Collected::default();
        let serving = self.parts.control.serving();
        requests::collect(&self.parts, &serving.snapshot, &mut collected);
        models::collect(&serving.snapshot, &mut collected);
        server::collect(&self.parts, &serving.snapshot, &mut collected);
        process::collect(self.started, &mut collected);
        collected
    }
}
