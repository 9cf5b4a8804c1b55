//! What a pipeline did, counted over every request since the server started.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// A pipeline's counters.
#[derive(Debug, Default)]
pub struct PipelineStatistics(Mutex<StageDurations>);

/// Requests and the time they took, summed over them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageDurations {
    /// Requests answered.
    pub success: u64,
    pub success_time: Duration,
    /// Requests that failed, and what they took.
    pub fail: u64,
    pub fail_time: Duration,
    /// Of the requests answered: in the preprocessor,
    pub pre: Duration,
    /// in the batcher's queue,
    pub queue: Duration,
    /// in the model,
    pub infer: Duration,
    /// and in the postprocessor.
    pub post: Duration,
    /// When the last one ended.
    pub last: Option<SystemTime>,
}

impl PipelineStatistics {
    /// The counters now.
    pub fn get(&self) -> StageDurations {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Count a request: `count` adds it.
    pub fn count(&self, count: impl FnOnce(&mut StageDurations)) {
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.last = Some(SystemTime::now());
        count(&mut counters);
    }
}
