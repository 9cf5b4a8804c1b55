//! What is traced.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gristmill_core::{BatchRecord, BatchSink, Rate, RateLimit, SpanRef};
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanProcessor,
};

use crate::context::TraceContext;
use crate::export::{TraceConfig, TraceSetupError, processor};
use crate::spans::{EndedRequest, Spans};

/// Requests that are kept a second although they were not sampled, because they were slow or
/// failed. One client that provokes failures does not displace the traces of all others.
const KEPT: RateLimit = RateLimit { tokens: 50, every: Duration::from_secs(1), burst: 100 };

/// Decides what is traced, and sends it.
pub struct Tracer {
    sender: BatchSpanProcessor,
    spans: Spans,
    /// The share of new traces that are sampled, of 2^64.
    sampled_below: u64,
    slow: Duration,
    kept: Rate,
    /// Requests that were not kept for want of [`KEPT`].
    not_kept: AtomicU64,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("slow", &self.slow).finish_non_exhaustive()
    }
}

impl Tracer {
    /// Begin to send spans. Call this on a thread of a tokio runtime.
    ///
    /// # Errors
    /// The endpoint is not a URL, or the sender cannot be set up.
    pub fn start(config: &TraceConfig) -> Result<Self, TraceSetupError> {
        let sampled_below = match config.ratio {
            ratio if ratio >= 1.0 => u64::MAX,
            ratio => (ratio.max(0.0) * u64::MAX as f64) as u64,
        };
        let kept = Rate::default();
        kept.set(Some(KEPT), Instant::now());
        Ok(Self {
            sender: processor(config)?,
            spans: Spans::new(config.version),
            sampled_below,
            slow: config.slow,
            kept,
            not_kept: AtomicU64::new(0),
        })
    }

    /// The context of a new request. `header` looks up one of its headers by the name in lower
    /// case.
    pub fn begin<'a>(&self, header: impl Fn(&str) -> Option<&'a str> + 'a) -> TraceContext {
        let is_sampled = || {
            let id = RandomIdGenerator::default().new_span_id();
            let random = u64::from_be_bytes(id.to_bytes());
            self.sampled_below == u64::MAX || random < self.sampled_below
        };
        TraceContext::of(&header, is_sampled)
    }

    /// Take a request that has ended. It is sent if it was sampled, was slow, or failed.
    pub fn end(&self, context: &TraceContext, request: &EndedRequest<'_>) {
        let is_remarkable = request.is_error || request.record.arrived.elapsed() >= self.slow;
        let is_kept = context.is_sampled || is_remarkable && self.may_keep();
        if !is_kept {
            return;
        }
        let SpanRef { trace_id, span_id } = self.spans.infer_span(context);
        if let Some(batch) = &request.record.batch {
            batch.link(SpanRef { trace_id, span_id });
        }
        self.spans.of_request(context, request, span_id, |span| self.send(span));
    }

    fn may_keep(&self) -> bool {
        let may = self.kept.take(1, Instant::now()).is_ok();
        if !may {
            self.not_kept.fetch_add(1, Relaxed);
        }
        may
    }

    fn send(&self, span: SpanData) {
        self.sender.on_end(span);
    }

    /// Send what waits, for a few seconds at most. Call this at the end of the process, not on a
    /// thread of the runtime on which it was started.
    pub fn shut_down(&self) {
        if let Err(error) = self.sender.shutdown() {
            tracing::warn!(%error, "some traces were not sent");
        }
    }
}

impl BatchSink for Tracer {
    fn new_span(&self) -> SpanRef {
        let ids = RandomIdGenerator::default();
        SpanRef { trace_id: ids.new_trace_id().to_bytes(), span_id: ids.new_span_id().to_bytes() }
    }

    fn ended(&self, batch: &BatchRecord, requests: &[SpanRef]) {
        self.send(self.spans.of_batch(batch, requests));
    }
}
