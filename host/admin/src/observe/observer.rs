//! All values at one moment.

use std::time::{Instant, SystemTime};

use gristmill_core::Underway;
use gristmill_metrics::Collected;

use super::memory::MemoryFigures;
use super::observed::Observed;
use super::process::ProcessFigures;
use super::{gpu, models, requests, server};

/// Asks the parts of a server for their figures.
pub struct Observer {
    observed: Observed,
    started: (Instant, SystemTime),
}

impl Observer {
    /// An observer of a server that starts now.
    pub fn new(observed: Observed) -> Self {
        Self { observed, started: (Instant::now(), SystemTime::now()) }
    }

    /// The values of all metrics now. This takes some milliseconds for thousands of pipelines, so
    /// it must not run on a thread that serves.
    pub fn collect(&self) -> Collected {
        let mut collected = Collected::default();
        let serving = self.observed.control.serving();
        requests::collect(&self.observed, &serving.snapshot, &mut collected);
        models::collect(&serving.snapshot, &mut collected);
        server::collect(&self.observed, &serving.snapshot, &mut collected);
        self.process().collect(&mut collected);
        MemoryFigures::read(&self.observed, &serving.snapshot).collect(&mut collected);
        gpu::collect(&mut collected);
        collected
    }

    /// The figures of the process now. This reads some files of the system.
    pub(crate) fn process(&self) -> ProcessFigures {
        ProcessFigures::read(self.started, (self.observed.heap)())
    }

    /// What holds the memory now.
    pub(crate) fn memory(&self) -> MemoryFigures {
        MemoryFigures::read(&self.observed, &self.observed.control.serving().snapshot)
    }

    /// The requests that are under way, the oldest first.
    pub(crate) fn requests(&self) -> Vec<Underway> {
        let mut all = self.observed.requests.underway();
        all.sort_by_key(|request| request.arrived);
        all
    }
}
