//! The W3C trace context: `traceparent` and `tracestate` of a request, `traceresponse` of its
//! answer.

use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceId, TraceState};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator};

/// The longest `tracestate` that is passed on, as the specification asks for.
const STATE_BYTES_MAX: usize = 512;

/// The place of a request in a trace.
#[derive(Clone, Debug)]
pub struct TraceContext {
    pub(crate) trace_id: TraceId,
    /// The request's own span.
    pub(crate) span_id: SpanId,
    /// The client's span, if it sent one.
    pub(crate) parent: Option<SpanId>,
    pub(crate) state: TraceState,
    /// Whether the trace was sampled when it began.
    pub(crate) is_sampled: bool,
}

impl TraceContext {
    /// The context of a new request. `header` looks up a header of it; `is_sampled` decides for
    /// requests that bring no context.
    pub(crate) fn of(header: &Headers<'_>, is_sampled: impl FnOnce() -> bool) -> Self {
        let ids = RandomIdGenerator::default();
        let span_id = ids.new_span_id();
        let parent = header("traceparent").map(|_| remote(header)).filter(SpanContext::is_valid);
        match parent {
            Some(parent) => Self {
                trace_id: parent.trace_id(),
                span_id,
                parent: Some(parent.span_id()),
                state: short(parent.trace_state()),
                is_sampled: parent.is_sampled(),
            },
            None => Self {
                trace_id: ids.new_trace_id(),
                span_id,
                parent: None,
                state: TraceState::NONE,
                is_sampled: is_sampled(),
            },
        }
    }

    /// The trace's id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        self.trace_id.to_string()
    }

    /// Whether the trace was sampled when it began.
    pub fn is_sampled(&self) -> bool {
        self.is_sampled
    }

    /// Whether somebody else may know the trace: it came from the client, or is sampled.
    pub fn is_known(&self) -> bool {
        self.is_sampled || self.parent.is_some()
    }

    /// The value of the header `traceresponse`, with the request's own span.
    pub fn traceresponse(&self) -> String {
        let Self { trace_id, span_id, is_sampled, .. } = self;
        format!("00-{trace_id}-{span_id}-{:02x}", u8::from(*is_sampled))
    }
}

/// The state, if it is not too long: it waits to be sent, and belongs to no tenant's budget.
fn short(state: &TraceState) -> TraceState {
    let is_short = state.header().len() <= STATE_BYTES_MAX;
    if is_short { state.clone() } else { TraceState::NONE }
}

/// Looks up a header by its name in lower case.
pub(crate) type Headers<'a> = dyn Fn(&str) -> Option<&'a str> + 'a;

fn remote(header: &Headers<'_>) -> SpanContext {
    struct Found<'h, 'a>(&'h Headers<'a>);
    impl Extractor for Found<'_, '_> {
        fn get(&self, key: &str) -> Option<&str> {
            (self.0)(key)
        }

        fn keys(&self) -> Vec<&str> {
            Vec::new()
        }
    }
    let context = TraceContextPropagator::new().extract(&Found(header));
    context.span().span_context().clone()
}

#[cfg(test)]
mod tests {
    use super::TraceContext;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn of(traceparent: Option<&'static str>) -> TraceContext {
        TraceContext::of(&move |name| traceparent.filter(|_| name == "traceparent"), || false)
    }

    #[test]
    fn a_client_s_context_is_gone_on_with() {
        let context = of(Some(PARENT));
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.parent.unwrap().to_string(), "b7ad6b7169203331");
        assert!(context.is_sampled());
        let response = context.traceresponse();
        assert!(response.starts_with("00-0af7651916cd43dd8448eb211c80319c-"), "{response}");
        assert!(response.ends_with("-01") && response != PARENT, "{response}");
        let unsampled = of(Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"));
        assert!(!unsampled.is_sampled());
    }

    #[test]
    fn a_context_that_cannot_be_read_begins_a_new_trace() {
        for bad in [
            None,
            Some(""),
            Some("00-0-0-01"),
            Some("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
            Some("00-00000000000000000000000000000000-b7ad6b7169203331-01"),
        ] {
            let context = of(bad);
            assert!(context.parent.is_none() && !context.is_sampled(), "{bad:?}");
            assert_ne!(context.trace_id(), "0".repeat(32));
        }
    }
}
