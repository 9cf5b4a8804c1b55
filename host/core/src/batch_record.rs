//! A batch, as the records of its requests hold it: for traces, which link each request with its
//! batch.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::Progress;

/// A span of a trace, by its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanRef {
    /// The trace's id.
    pub trace_id: [u8; 16],
    /// The span's own id.
    pub span_id: [u8; 8],
}

/// Takes the batches whose requests have all ended. It lives as long as the process: a count of
/// its users would be changed by all threads for each request.
pub trait BatchSink: Send + Sync {
    /// The ids of a new batch's span.
    fn new_span(&self) -> SpanRef;

    /// Take a batch, and the spans of those of its requests that are traced. This runs on a serving
    /// thread, so it must be quick. A batch without traced requests is not passed here.
    fn ended(&self, batch: &BatchRecord, requests: &[SpanRef]);
}

/// Follows a request into its batches.
#[derive(Clone, Copy, Default)]
pub struct Follow {
    /// Takes the batches, if they are traced.
    pub traces: Option<&'static dyn BatchSink>,
    /// Its stage, if it is tracked.
    pub progress: Option<Progress>,
}

/// The figures of a batch that ran.
#[derive(Clone, Copy, Debug)]
pub struct BatchFigures {
    /// When it began to run.
    pub began: Instant,
    /// How long its requests were copied together.
    pub input: Duration,
    /// How long the model ran.
    pub run: Duration,
    /// How long its outputs were taken apart.
    pub output: Duration,
    /// Its rows.
    pub rows: usize,
    /// Its requests.
    pub requests: usize,
}

/// A batch that ran. Its requests share it, and it goes to its sink with the last of them.
pub struct BatchRecord {
    /// Its figures.
    pub figures: BatchFigures,
    /// Its own span.
    pub span: SpanRef,
    requests: Mutex<Vec<SpanRef>>,
    sink: &'static dyn BatchSink,
}

impl BatchRecord {
    /// A batch with these figures.
    pub fn new(figures: BatchFigures, sink: &'static dyn BatchSink) -> Arc<Self> {
        let span = sink.new_span();
        Arc::new(Self { figures, span, requests: Mutex::default(), sink })
    }

    /// Link the span of one of its requests with it.
    pub fn link(&self, request: SpanRef) {
        self.requests.lock().push(request);
    }
}

impl Drop for BatchRecord {
    fn drop(&mut self) {
        let requests = std::mem::take(self.requests.get_mut());
        if !requests.is_empty() {
            self.sink.ended(self, &requests);
        }
    }
}

impl fmt::Debug for BatchRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchRecord").field("figures", &self.figures).finish_non_exhaustive()
    }
}
