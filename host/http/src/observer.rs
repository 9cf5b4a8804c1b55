//! Observing requests: which are under way, and, when one has ended, its trace, its line in the
//! access log, and a line if it was slow.
//!
//! What a request used is charged when its answer is ready (decision 0057). How it ended is told
//! when the connection has taken the last byte of the answer, or when the client has left: its
//! line in the access log, the first span of its trace, and its count among all answers. Over
//! HTTP/1.1 the connection may then hold the last 320 KiB, over HTTP/2 as much of the last 256 KiB
//! as the client has not asked for. Over gRPC all is told when the answer is ready.
//!
//! Invariant: until an answer is sent, the observer keeps only what the line and the span say.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{Name, Outcome, Receipt, Requests, SinkNames, Stage};
use gristmill_metrics::{Edge, EdgeFigures};
use gristmill_otlp::{LogEvent, RequestSpan, TraceContext, TracedRequest, Tracer};
use gristmill_sandbox::Line;
use gristmill_serve::{RequestQuota, Variant};
use gristmill_transport::body::AnswerEnd;
use gristmill_transport::{LineRate, status_of};
use http::StatusCode;
use parking_lot::Mutex;

use crate::slow_request;

/// The target of the access log's lines, by which a filter can choose them.
const ACCESS: &str = "access";

/// How requests are observed.
#[derive(Clone, Debug)]
pub struct ObserverConfig {
    /// Counts all answers.
    pub edges: &'static EdgeFigures,
    /// Shows the requests that are under way.
    pub requests: &'static Requests,
    /// Sends traces.
    pub tracer: Option<&'static Tracer>,
    /// Whether each request has a line in the log.
    pub access_log: bool,
    /// A request that takes longer has a line of its own.
    pub slow: Option<Duration>,
}

/// What is noted of a request while it runs.
pub(crate) struct RequestContext {
    /// Its id in the log.
    pub(crate) id: Arc<str>,
    /// Its times, rows and bytes, and what it is charged.
    pub(crate) receipt: Receipt,
    /// The quota of requests of its tenant, for the headers of its answer over HTTP.
    pub(crate) quota: Option<RequestQuota>,
    /// The variant of its pipeline that ran it, if there are several.
    pub(crate) variant: Option<Variant>,
    /// Whether it is logged or traced, so that its tenant's name is noted.
    pub(crate) is_observed: bool,
    /// Its place in a trace.
    pub(crate) trace: Option<TraceContext>,
    /// What its plugins logged, if it is traced.
    pub(crate) lines: Vec<Line>,
}

impl RequestContext {
    pub(crate) fn new(id: Arc<str>, receipt: Receipt) -> Self {
        let (quota, variant, trace) = (None, None, None);
        Self { id, receipt, quota, variant, is_observed: false, trace, lines: Vec::new() }
    }

    /// Its trace, if somebody else may know it: it came from the client, or is sampled.
    pub(crate) fn known_trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref().filter(|trace| trace.is_known())
    }

    /// The id of this trace, for the log.
    pub(crate) fn trace_id(&self) -> Option<String> {
        self.known_trace().map(TraceContext::trace_id)
    }

    /// Whether it was sampled, so that its plugins' lines are collected.
    pub(crate) fn is_sampled(&self) -> bool {
        self.trace.as_ref().is_some_and(TraceContext::is_sampled)
    }
}

/// The names of a request.
#[derive(Clone, Copy)]
pub(crate) struct RequestNames<'a> {
    pub(crate) edge: Edge,
    /// The name of its span: of low cardinality.
    pub(crate) span: &'static str,
    /// `GET`, or the name of a method of gRPC.
    pub(crate) method: &'a str,
    /// Without the query, which may hold secrets.
    pub(crate) path: &'a str,
    pub(crate) client: Option<IpAddr>,
}

/// A request from its head until its answer is ready. If it is dropped before, its client left.
pub(crate) struct UnderWay<'a> {
    observer: &'a RequestObserver,
    names: RequestNames<'a>,
    pub(crate) context: RequestContext,
    has_ended: bool,
}

impl<'a> UnderWay<'a> {
    /// Begin a request, whose headers `header` looks up. Until it ends, it is among those that are
    /// under way. Its batches are traced, too.
    pub(crate) fn begin<'h>(
        observer: &'a RequestObserver,
        names: RequestNames<'a>,
        mut context: RequestContext,
        header: impl Fn(&str) -> Option<&'h str> + 'h,
    ) -> Self {
        let ObserverConfig { requests, tracer, access_log, slow, .. } = observer.config;
        context.receipt.track(requests, &context.id);
        context.is_observed = tracer.is_some() || access_log || slow.is_some();
        if let Some(tracer) = tracer {
            context.receipt.trace_batches(tracer);
            context.trace = Some(tracer.begin(header));
        }
        Self::untracked(observer, names, context)
    }

    /// A request that ends at once, without a trace, and is not shown among those under way.
    pub(crate) fn untracked(
        observer: &'a RequestObserver,
        names: RequestNames<'a>,
        context: RequestContext,
    ) -> Self {
        Self { observer, names, context, has_ended: false }
    }

    /// The answer of this request, whose receipt is closed, is ready, with this status. Returns
    /// what waits until it is sent.
    pub(crate) fn sends(mut self, status: StatusCode) -> AnswerEnd {
        let record = self.context.receipt.record();
        let since = record.arrived + record.took;
        let ready = self.ready(Some(status));
        AnswerEnd::new(move |is_sent| {
            ready.edges.written(ready.edge, since.elapsed());
            ready.end(is_sent);
        })
    }

    /// The same over gRPC: tonic does not say when the answer is sent.
    pub(crate) fn answered(mut self) {
        self.ready(None).end(true);
    }

    fn ready(&mut self, status: Option<StatusCode>) -> ReadyAnswer {
        self.has_ended = true;
        self.observer.ready(self, status)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.context.receipt.close(Outcome::Abandoned, 0);
            self.ready(None).end(false);
        }
    }
}

/// What is told of a request once its answer is sent, or its client has left.
struct ReadyAnswer {
    edges: &'static EdgeFigures,
    edge: Edge,
    outcome: Outcome,
    /// Its own span, if it is traced.
    span: Option<Box<RequestSpan>>,
    /// Its line, if there is an access log.
    line: Option<Box<AccessLine>>,
}

impl ReadyAnswer {
    /// Tell it. An error stays one if it was not sent.
    fn end(self, is_sent: bool) {
        let outcome = match self.outcome {
            Outcome::Answered if !is_sent => Outcome::Abandoned,
            outcome => outcome,
        };
        // A client that left before saw no answer.
        if self.outcome != Outcome::Abandoned {
            self.edges.ended(self.edge, outcome);
        }
        if let Some(span) = self.span {
            span.end(outcome);
        }
        if let Some(line) = self.line {
            line.write(outcome, is_sent);
        }
    }
}

/// A line of the access log.
struct AccessLine {
    id: Arc<str>,
    trace_id: Option<String>,
    client: Option<IpAddr>,
    method: String,
    path: String,
    status: Option<u16>,
    tenant: Option<Name>,
    pipeline: Option<Name>,
    model: Option<Name>,
    variant: Option<Variant>,
    rows: usize,
    received_bytes: usize,
    sent_bytes: usize,
    took: Duration,
}

/// Observes requests.
pub(crate) struct RequestObserver {
    config: ObserverConfig,
    /// Of lines about slow requests.
    slow_lines: Mutex<LineRate>,
}

impl RequestObserver {
    pub(crate) fn new(config: ObserverConfig) -> Self {
        Self { config, slow_lines: Mutex::default() }
    }

    /// Counts the answers.
    pub(crate) fn edges(&self) -> &'static EdgeFigures {
        self.config.edges
    }

    /// Trace the stages of a request whose receipt is closed, and log it if it was slow. Returns
    /// what waits until its answer is sent.
    fn ready(&self, request: &UnderWay<'_>, status: Option<StatusCode>) -> ReadyAnswer {
        let (context, record) = (&request.context, request.context.receipt.record());
        slow_request::note(record, &context.id);
        let took = record.took;
        let status = status.map(|status| status.as_u16());
        // Not of callers who were not admitted: they can be slow at will.
        if self.config.slow.is_some_and(|slow| took >= slow && record.tenant.is_some())
            && let Some(left_out) = self.slow_lines.lock().take(Instant::now())
        {
            log_slow(request, left_out);
        }
        let traced_by = self.config.tracer.zip(context.trace.as_ref());
        let kept_by = traced_by.filter(|(tracer, trace)| tracer.keeps(trace, record, took));
        let span = kept_by.map(|(tracer, trace)| tracer.ready(trace, &traced(request, status)));
        let line = self.config.access_log.then(|| AccessLine::of(request, status));
        ReadyAnswer {
            edges: self.config.edges,
            edge: request.names.edge,
            outcome: record.outcome,
            span: span.map(Box::new),
            line: line.map(Box::new),
        }
    }
}

impl AccessLine {
    fn of(request: &UnderWay<'_>, status: Option<u16>) -> Self {
        let UnderWay { names, context, .. } = request;
        let record = context.receipt.record();
        let SinkNames { pipeline, model, .. } = record.names();
        Self {
            id: context.id.clone(),
            trace_id: context.trace_id(),
            client: names.client,
            method: names.method.to_owned(),
            path: names.path.to_owned(),
            status,
            tenant: record.tenant.clone(),
            pipeline: pipeline.cloned(),
            model: model.cloned(),
            variant: context.variant,
            rows: record.used().rows,
            received_bytes: record.request_bytes,
            sent_bytes: record.response_bytes,
            took: record.took,
        }
    }

    /// Write the line of a request that ended so. If its answer was not sent, the line has no
    /// status.
    fn write(self, outcome: Outcome, is_sent: bool) {
        let code = match outcome {
            Outcome::Failed(code) => code.as_str(),
            Outcome::Answered => "ok",
            Outcome::Abandoned => "abandoned",
        };
        tracing::info!(
            target: ACCESS,
            request_id = &*self.id,
            trace_id = self.trace_id,
            client = self.client.map(tracing::field::display),
            method = self.method,
            path = self.path,
            status = self.status.filter(|_| is_sent),
            code,
            tenant = self.tenant.as_ref().map(Name::as_str),
            pipeline = self.pipeline.as_ref().map(Name::as_str),
            model = self.model.as_ref().map(Name::as_str),
            variant = self.variant.map(Variant::as_str),
            rows = self.rows,
            received_bytes = self.received_bytes,
            sent_bytes = self.sent_bytes,
            duration_ms = millis(Some(self.took)),
            "request"
        );
    }
}

fn millis(time: Option<Duration>) -> Option<f64> {
    // Whole microseconds.
    time.map(|time| time.as_micros() as f64 / 1e3)
}

fn log_slow(request: &UnderWay<'_>, left_out: u64) {
    let UnderWay { names, context, .. } = request;
    let record = context.receipt.record();
    let stages = record.stages();
    let SinkNames { pipeline, model, .. } = record.names();
    tracing::warn!(
        request_id = &*context.id,
        trace_id = context.trace_id(),
        method = names.method,
        path = names.path,
        tenant = record.tenant.as_ref().map(Name::as_str),
        pipeline = pipeline.map(Name::as_str),
        model = model.map(Name::as_str),
        duration_ms = millis(Some(record.took)),
        auth_ms = millis(stages.auth),
        read_ms = millis(stages.read),
        pre_ms = millis(stages.pre),
        queue_ms = millis(stages.queue),
        infer_ms = millis(stages.infer),
        post_ms = millis(stages.post),
        handle_ms = millis(stages.handle),
        lookup_ms = millis(stages.lookup),
        rows = record.used().rows,
        batch_rows = record.batch_rows(),
        batch_tenants = record.batch_tenants(),
        left_out,
        "slow request"
    );
}

fn traced<'a>(request: &'a UnderWay<'_>, status: Option<u16>) -> TracedRequest<'a> {
    let UnderWay { names, context, .. } = request;
    let record = context.receipt.record();
    let mut protocol = match names.edge {
        Edge::Grpc => vec![
            ("rpc.system", "grpc".to_owned()),
            ("rpc.service", "inference.GRPCInferenceService".to_owned()),
            ("rpc.method", names.method.to_owned()),
        ],
        Edge::V1 | Edge::V2 => vec![
            ("http.request.method", names.method.to_owned()),
            ("url.path", names.path.to_owned()),
        ],
    };
    protocol.extend(status.map(|status| ("http.response.status_code", status.to_string())));
    protocol.extend(names.client.map(|client| ("client.address", client.to_string())));
    TracedRequest {
        name: names.span,
        record,
        id: &context.id,
        protocol,
        is_fault: record.code().is_some_and(|code| status_of(code).is_server_error()),
        events: context.lines.iter().map(event).collect(),
    }
}

fn event(line: &Line) -> LogEvent {
    LogEvent {
        stage: match line.call {
            "preprocess" => Stage::Pre,
            "handle" => Stage::Handle,
            _ => Stage::Post,
        },
        time: line.time.clone(),
        level: line.level.as_str().to_lowercase(),
        message: line.message.clone(),
    }
}
