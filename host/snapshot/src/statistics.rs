//! The counters of a pipeline, over all requests since the server started.

use std::time::{Duration, SystemTime};

use gristmill_core::{Outcome, Record, Sink, Stages};
use parking_lot::Mutex;

/// A pipeline's counters.
#[derive(Debug, Default)]
pub struct PipelineStatistics(Mutex<StageDurations>);

/// Requests and the time they took, summed over them.
#[derive(Clone, Copy, Debug, Default)]
pub struct StageDurations {
    /// Requests answered.
    pub success: u64,
    /// The time that they took.
    pub success_time: Duration,
    /// Requests that failed or were abandoned.
    pub fail: u64,
    /// The time that they took.
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
        *self.0.lock()
    }
}

impl Sink for PipelineStatistics {
    fn record(&self, record: &Record, took: Duration) {
        let mut counters = self.0.lock();
        counters.last = Some(SystemTime::now());
        if record.outcome != Outcome::Answered {
            counters.fail += 1;
            counters.fail_time += took;
            return;
        }
        let Stages { pre, queue, infer, post, .. } = record.stages;
        counters.success += 1;
        counters.success_time += took;
        counters.pre += pre.unwrap_or_default();
        counters.queue += queue.unwrap_or_default();
        counters.infer += infer.unwrap_or_default();
        counters.post += post.unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use gristmill_core::{ErrorCode, Receipt};

    use super::*;

    #[test]
    fn requests_whose_clients_left_are_counted_as_failed() {
        let statistics = Arc::new(PipelineStatistics::default());
        let open = || {
            let mut receipt = Receipt::open(Instant::now());
            receipt.charge_to(statistics.clone());
            receipt
        };
        open().answered(0);
        open().failed(ErrorCode::ModelFailed);
        drop(open());
        let StageDurations { success, fail, .. } = statistics.get();
        assert_eq!((success, fail), (1, 2));
    }
}
