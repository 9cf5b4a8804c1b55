//! All values at one moment.

use std::time::{Instant, SystemTime};

use gristmill_core::Underway;
use gristmill_metrics::Collected;

use super::memory::MemoryFigures;
use super::parts::Parts;
use super::process::ProcessFigures;
use super::{gpu, models, requests, server};

/// Asks the parts of a server for their figures.
pub struct Observer {
    parts: Parts,
    started: (Instant, SystemTime),
}

impl Observer {
    /// An observer of a server that starts now.
    pub fn new(parts: Parts) -> Self {
        Self { parts, started: (Instant::now(), SystemTime::now()) }
    }

    /// The values of all metrics now. This takes some milliseconds for thousands of pipelines, so
    /// it must not run on a thread that serves.
    pub fn collect(&self) -> Collected {
        let mut collected = Collected::default();
        let serving = self.parts.control.serving();
        requests::collect(&self.parts, &serving.snapshot, &mut collected);
        models::collect(&serving.snapshot, &mut collected);
        server::collect(&self.parts, &serving.snapshot, &mut collected);
        self.process().collect(&mut collected);
        MemoryFigures::read(&self.parts, &serving.snapshot).collect(&mut collected);
        gpu::collect(&mut collected);
        collected
    }

    /// The figures of the process now. This reads some files of the system.
    pub(crate) fn process(&self) -> ProcessFigures {
        ProcessFigures::read(self.started, (self.parts.heap)())
    }

    /// What holds the memory now.
    pub(crate) fn memory(&self) -> MemoryFigures {
        MemoryFigures::read(&self.parts, &self.parts.control.serving().snapshot)
    }

    /// The requests that are under way, the oldest first.
    pub(crate) fn requests(&self) -> Vec<Underway> {
        let mut all = self.parts.requests.underway();
        all.sort_by_key(|own| own.arrived);
        all
    }
}
