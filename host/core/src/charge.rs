//! The charge of a request: its use of the server in whole numbers, its use of a model, and the
//! counters for runs of the model that end after the request.

use std::sync::Arc;
use std::time::Duration;

use smallvec::SmallVec;

/// The use of the server by one request, in whole numbers, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// Rows that the model ran.
    pub rows: u64,
    /// CPU time of its plugin calls, in microseconds.
    pub plugin_cpu_us: u64,
    /// Its share of its batches, by rows, in microseconds: [`ModelUse::time`].
    pub model_us: u64,
    /// The host's own CPU time for it, in microseconds.
    pub host_cpu_us: u64,
    /// Its time in the model's queue, in microseconds.
    pub queue_us: u64,
    /// Bytes of its body.
    pub received_bytes: u64,
    /// Bytes of its answer's body.
    pub sent_bytes: u64,
}

/// The use that a request made of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelUse {
    /// Rows that ran.
    pub rows: usize,
    /// Their share of their batches, by rows: of the CPU time of a batch if one thread ran
    /// it, else of the time that it took.
    pub time: Duration,
}

impl ModelUse {
    /// The same in whole numbers.
    pub fn charge(self) -> Charge {
        Charge { rows: self.rows as u64, model_us: micros(self.time), ..Charge::default() }
    }

    /// Add the use of another run.
    pub fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.time += other.time;
    }
}

/// The time in whole microseconds, rounded.
pub(crate) fn micros(time: Duration) -> u64 {
    u64::try_from((time.as_nanos() + 500) / 1000).unwrap_or(u64::MAX)
}

/// Counts the use of a model that is not in the record of its request: the run ended after the
/// request did. A run may take long, so what counts it must not hold a model or a plugin.
pub trait LateSink: Send + Sync {
    /// Count a run that has ended.
    fn ran_late(&self, used: ModelUse);
}

/// Takes what a request still uses after it has ended. A batch that has begun runs to its end, even
/// if the client leaves or the deadline passes.
#[derive(Clone, Default)]
pub struct Late(SmallVec<[Arc<dyn LateSink>; 2]>);

impl Late {
    /// Add a counter.
    pub fn add(&mut self, sink: Arc<dyn LateSink>) {
        self.0.push(sink);
    }

    /// Charge a run that has ended.
    pub fn ran(&self, used: ModelUse) {
        self.0.iter().for_each(|sink| sink.ran_late(used));
    }
}
