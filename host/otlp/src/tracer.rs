//! What is traced.

use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};

use gristmill_core::{BatchRecord, BatchSink, Name, Outcome, Rate, RateLimit, Record, SpanRef};
use opentelemetry::KeyValue;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, IdGenerator, RandomIdGenerator, SpanData, SpanProcessor,
};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::context::TraceContext;
use crate::export::{TraceConfig, TraceSetupError, processor};
use crate::spans::{RUNS_MAX, Spans, TracedRequest};

/// Maximum traces of one tenant that are kept: of requests that were slow or failed, and of those
/// that their clients sampled. A client that provokes failures, or samples all of its requests,
/// does not displace the traces of others.
const REMARKABLE: RateLimit = RateLimit { tokens: 20, every: Duration::from_secs(1), burst: 50 };
const SAMPLED: RateLimit = RateLimit { tokens: 500, every: Duration::from_secs(1), burst: 1000 };

/// Maximum tenants whose rates are remembered.
const TENANTS_MAX: usize = 4096;

/// The rates of one tenant.
struct Rates {
    remarkable: Rate,
    sampled: Rate,
}

/// The span of a request whose answer is ready. Until it has ended, it holds what the span says and
/// nothing else of the request.
pub struct RequestSpan {
    tracer: &'static Tracer,
    span: SpanData,
}

/// Decides what is traced, and sends it.
pub struct Tracer {
    sender: BatchSpanProcessor,
    spans: Spans,
    /// The share of new traces that are sampled, of 2^64.
    sampled_below: u64,
    slow: Duration,
    /// By tenant. Locked only for requests that are to be kept.
    rates: Mutex<HashMap<Name, Rates>>,
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
        Ok(Self {
            sender: processor(config)?,
            spans: Spans::new(config.version),
            sampled_below,
            slow: config.slow,
            rates: Mutex::default(),
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

    /// Whether a request that has ended is to be sent: it was sampled, was slow, or failed. One of
    /// a caller who was not admitted is sent only if it was sampled here.
    pub fn keeps(&self, context: &TraceContext, record: &Record, took: Duration) -> bool {
        let is_own = context.is_sampled && context.parent.is_none();
        if is_own {
            return true;
        }
        let Some(tenant) = &record.tenant else { return false };
        let is_remarkable = took >= self.slow || matches!(record.outcome, Outcome::Failed(_));
        if !(context.is_sampled || is_remarkable) {
            return false;
        }
        let mut rates = self.rates.lock();
        if rates.len() >= TENANTS_MAX && !rates.contains_key(tenant) {
            rates.clear();
        }
        let now = Instant::now();
        let rates = rates.entry(tenant.clone()).or_insert_with(|| Rates::new(now));
        let rate = if context.is_sampled { &rates.sampled } else { &rates.remarkable };
        rate.take(1, now).is_ok()
    }

    /// Send the stages of a request that is [kept](Self::keeps), whose answer is ready. Returns its
    /// own span, which waits for the end of the answer.
    pub fn ready(
        &'static self,
        context: &TraceContext,
        request: &TracedRequest<'_>,
    ) -> RequestSpan {
        let runs = request.record.runs().take(RUNS_MAX).map(|run| {
            let span = self.spans.run_span(context);
            if let Some(batch) = &run.batch {
                batch.link(span);
            }
            span.span_id
        });
        let runs: SmallVec<[_; 1]> = runs.collect();
        let span = self.spans.of_request(context, request, &runs, |span| self.send(span));
        RequestSpan { tracer: self, span }
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

impl RequestSpan {
    /// Send it: the request has ended so.
    pub fn end(self, outcome: Outcome) {
        let Self { tracer, mut span } = self;
        if outcome == Outcome::Abandoned {
            span.attributes.push(KeyValue::new("error.type", "abandoned"));
        }
        tracer.send(span);
    }
}

impl Rates {
    fn new(now: Instant) -> Self {
        let [remarkable, sampled] = [REMARKABLE, SAMPLED].map(|limit| {
            let rate = Rate::default();
            rate.set(Some(limit), now);
            rate
        });
        Self { remarkable, sampled }
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
