//! Spans of requests and batches, made of their records.

use std::borrow::Cow;
use std::time::{Instant, SystemTime};

use gristmill_core::{
    BatchRecord, ErrorCode, PluginCall, Record, SinkNames, Span as Part, SpanRef, Stage, Step,
};
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

use crate::context::TraceContext;

/// Maximum lines of a plugin that become events of a span, and their maximum bytes: what waits to
/// be sent belongs to no tenant's budget.
const EVENTS_MAX: usize = 32;
const EVENT_BYTES_MAX: usize = 4 << 10;

/// The longest attribute that a client can choose.
const TEXT_BYTES_MAX: usize = 512;

/// What the trace of a request says.
pub struct TracedRequest<'a> {
    /// The name of its span, such as `POST /v1/{tenant}/infer`.
    pub name: &'static str,
    /// Its record, which says how it ended.
    pub record: &'a Record,
    /// Its id, as in the log.
    pub id: &'a str,
    /// Attributes that its protocol has.
    pub protocol: Vec<(&'static str, String)>,
    /// Whether the error is not the client's.
    pub is_fault: bool,
    /// What its plugins logged.
    pub events: Vec<LogEvent>,
}

/// A line that a plugin logged.
#[derive(Clone, Debug)]
pub struct LogEvent {
    /// The stage in which it was logged: `pre` or `post`.
    pub stage: Stage,
    /// When it was logged, by RFC 3339.
    pub time: String,
    /// Such as `warn`.
    pub level: String,
    /// The text.
    pub message: String,
}

/// Makes spans.
pub(crate) struct Spans {
    scope: InstrumentationScope,
}

/// Maximum runs of models of one request that are sent: a handler may have many.
pub(crate) const RUNS_MAX: usize = 80;

/// Maximum stages that are sent: those of the runs, and of two calls and what is before them.
const STEPS_MAX: usize = 3 * RUNS_MAX + 4;

/// The parts of a span that differ.
struct SpanParts {
    span_id: SpanId,
    parent: SpanId,
    is_remote: bool,
    kind: SpanKind,
    name: &'static str,
    time: (SystemTime, SystemTime),
    attributes: Vec<KeyValue>,
}

impl Spans {
    pub(crate) fn new(version: &'static str) -> Self {
        Self { scope: InstrumentationScope::builder("gristmill").with_version(version).build() }
    }

    /// The ids of a new span for a run of a model.
    pub(crate) fn run_span(&self, context: &TraceContext) -> SpanRef {
        let span_id = RandomIdGenerator::default().new_span_id().to_bytes();
        SpanRef { trace_id: context.trace_id.to_bytes(), span_id }
    }

    /// The spans of a request: sends one for each stage, and returns its own. `runs` are the ids of
    /// those of its runs of models, in their order.
    pub(crate) fn of_request(
        &self,
        context: &TraceContext,
        request: &TracedRequest<'_>,
        runs: &[[u8; 8]],
        mut send: impl FnMut(SpanData),
    ) -> SpanData {
        let record = request.record;
        let began = time_of(record.arrived);
        let mut root = self.span(
            context,
            SpanParts {
                span_id: context.span_id,
                parent: context.parent.unwrap_or(SpanId::INVALID),
                is_remote: context.parent.is_some(),
                kind: SpanKind::Server,
                name: request.name,
                time: (began, SystemTime::now()),
                attributes: attributes_of(request),
            },
        );
        if request.is_fault {
            root.status = Status::error(record.code().map_or("", ErrorCode::as_str));
        }
        // Lines do not say of which row they are, so those of several rows belong to the request.
        let has_rows = has_rows(record);
        if has_rows {
            root.events = events_of(request, |_| true);
        }
        let mut at = began;
        let mut runs = runs.iter();
        let mut last: Option<*const Part> = None;
        for Step { stage, mut took, span: part } in record.steps().take(STEPS_MAX) {
            // A handler's call and its runs overlap, and so do the rows of a request.
            let this = part.map(std::ptr::from_ref);
            if let Some(since) = part.filter(|_| this != last).and_then(Part::began) {
                at = time_of(since);
            }
            last = this;
            if let Some(Part::Call(call)) = part {
                took = call.took.unwrap_or(took);
            }
            let run = match part {
                Some(Part::Run(run)) if stage == Stage::Infer => Some(run),
                _ => None,
            };
            let span_id = match run.and_then(|_| runs.next()) {
                Some(id) => SpanId::from_bytes(*id),
                None => RandomIdGenerator::default().new_span_id(),
            };
            let mut span = self.span(
                context,
                SpanParts {
                    span_id,
                    parent: context.span_id,
                    is_remote: false,
                    kind: SpanKind::Internal,
                    name: stage.name(),
                    time: (at, at + took),
                    attributes: stage_attributes(stage, part),
                },
            );
            at += took;
            if !has_rows {
                span.events = events_of(request, |event| event.stage == stage);
            }
            if let Some(batch) = run.and_then(|run| run.batch.as_ref()) {
                span.links = links_to(&[batch.span]);
            }
            send(span);
        }
        root
    }

    /// The span of a batch, with links to its requests.
    pub(crate) fn of_batch(&self, batch: &BatchRecord, requests: &[SpanRef]) -> SpanData {
        let figures = &batch.figures;
        let began = time_of(figures.began);
        let all = figures.input + figures.run + figures.output;
        let context = TraceContext {
            trace_id: TraceId::from_bytes(batch.span.trace_id),
            span_id: SpanId::from_bytes(batch.span.span_id),
            parent: None,
            state: TraceState::NONE,
            is_sampled: true,
        };
        let mut span = self.span(
            &context,
            SpanParts {
                span_id: context.span_id,
                parent: SpanId::INVALID,
                is_remote: false,
                kind: SpanKind::Internal,
                name: "batch",
                time: (began, began + all),
                attributes: vec![
                    KeyValue::new("gristmill.batch.rows", figures.rows as i64),
                    KeyValue::new("gristmill.batch.requests", figures.requests as i64),
                    KeyValue::new("gristmill.batch.input_us", figures.input.as_micros() as i64),
                    KeyValue::new("gristmill.batch.run_us", figures.run.as_micros() as i64),
                    KeyValue::new("gristmill.batch.output_us", figures.output.as_micros() as i64),
                ],
            },
        );
        span.links = links_to(requests);
        span
    }

    fn span(&self, context: &TraceContext, parts: SpanParts) -> SpanData {
        let SpanParts { span_id, parent, is_remote, kind, name, time: (start, end), attributes } =
            parts;
        let is_root = span_id == context.span_id;
        let state = if is_root { context.state.clone() } else { TraceState::NONE };
        let span_context =
            SpanContext::new(context.trace_id, span_id, TraceFlags::SAMPLED, false, state);
        SpanData {
            span_context,
            parent_span_id: parent,
            parent_span_is_remote: is_remote,
            span_kind: kind,
            name: Cow::Borrowed(name),
            start_time: start,
            end_time: end,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }
}

fn attributes_of(request: &TracedRequest<'_>) -> Vec<KeyValue> {
    let record = request.record;
    let mut all = vec![KeyValue::new("gristmill.request.id", request.id.to_owned())];
    let cut = |text: &str| text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
    all.extend(request.protocol.iter().map(|(name, value)| KeyValue::new(*name, cut(value))));
    let SinkNames { pipeline, model, .. } = record.names();
    let names = [
        ("gristmill.tenant", record.tenant.as_ref()),
        ("gristmill.pipeline", pipeline),
        ("gristmill.model", model),
    ];
    for (key, name) in names {
        all.extend(name.map(|name| KeyValue::new(key, name.as_str().to_owned())));
    }
    all.extend(record.provider().map(|provider| KeyValue::new("gristmill.provider", provider)));
    all.extend(record.code().map(|code| KeyValue::new("error.type", code.as_str())));
    all.push(KeyValue::new("http.request.body.size", record.request_bytes as i64));
    all.push(KeyValue::new("http.response.body.size", record.response_bytes as i64));
    all
}

fn stage_attributes(stage: Stage, part: Option<&Part>) -> Vec<KeyValue> {
    match part {
        Some(Part::Call(PluginCall { used: Some(used), .. })) => {
            let memory = (used.memory_bytes + used.host_memory_bytes) as i64;
            vec![
                KeyValue::new("gristmill.plugin.cpu_us", used.cpu.as_micros() as i64),
                KeyValue::new("gristmill.plugin.memory_bytes", memory),
            ]
        }
        Some(Part::Run(run)) if stage == Stage::Infer => vec![
            KeyValue::new("gristmill.rows", run.used.rows as i64),
            KeyValue::new("gristmill.batch.rows", run.batch_rows as i64),
            KeyValue::new("gristmill.batch.tenants", run.batch_tenants as i64),
        ],
        _ => Vec::new(),
    }
}

/// Whether several rows of the request called plugins.
fn has_rows(record: &Record) -> bool {
    record.calls().filter(|call| call.stage != Stage::Post).nth(1).is_some()
}

/// The lines that are events of a span.
fn events_of(request: &TracedRequest<'_>, is_of: impl Fn(&LogEvent) -> bool) -> SpanEvents {
    let of_span = request.events.iter().filter(|event| is_of(event));
    let mut events = SpanEvents::default();
    let all = of_span.clone().count();
    let mut bytes = 0;
    let fits = |event: &&LogEvent| {
        bytes += event.message.len();
        bytes <= EVENT_BYTES_MAX
    };
    for event in of_span.take(EVENTS_MAX).take_while(fits) {
        let time = humantime::parse_rfc3339(&event.time).unwrap_or_else(|_| SystemTime::now());
        let attributes = vec![
            KeyValue::new("level", event.level.clone()),
            KeyValue::new("message", event.message.clone()),
        ];
        events.events.push(Event::new("log", time, attributes, 0));
    }
    events.dropped_count = all.saturating_sub(events.events.len()) as u32;
    events
}

fn links_to(spans: &[SpanRef]) -> SpanLinks {
    let mut links = SpanLinks::default();
    links.links.extend(spans.iter().map(|SpanRef { trace_id, span_id }| {
        let (trace, span) = (TraceId::from_bytes(*trace_id), SpanId::from_bytes(*span_id));
        let context = SpanContext::new(trace, span, TraceFlags::SAMPLED, true, TraceState::NONE);
        Link::new(context, Vec::new(), 0)
    }));
    links
}

/// The time of day of a moment.
fn time_of(moment: Instant) -> SystemTime {
    let (now, time) = (Instant::now(), SystemTime::now());
    match moment.checked_duration_since(now) {
        Some(later) => time + later,
        None => time - now.duration_since(moment),
    }
}
