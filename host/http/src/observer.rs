//! Observing requests: which are under way, and, when one has ended, its trace, its line in the
//! access log, and a line if it was slow.
//!
//! Invariant: a request ends once: when its connection has taken the last byte of its answer, or
//! when its client has left.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{ErrorCode, Name, Outcome, Receipt, Requests, SinkNames, Stage};
use gristmill_metrics::{Edge, EdgeFigures};
use gristmill_otlp::{EndedRequest, LogEvent, TraceContext, Tracer};
use gristmill_sandbox::Line;
use gristmill_serve::Variant;
use gristmill_transport::body::AnswerEnd;
use gristmill_transport::{LineRate, status_of};
use http::{Method, StatusCode, Uri};
use parking_lot::Mutex;

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

/// What is noted of a request, for its answer and its trace.
#[derive(Default)]
pub(crate) struct RequestContext {
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
pub(crate) struct RequestNames {
    pub(crate) edge: Edge,
    /// The name of its span: of low cardinality.
    pub(crate) span: &'static str,
    pub(crate) method: Method,
    /// Its query is not logged: it may hold secrets.
    pub(crate) uri: Uri,
    pub(crate) id: Arc<str>,
    pub(crate) client: Option<IpAddr>,
}

impl RequestNames {
    /// `GET`, or the name of a method of gRPC.
    fn method(&self) -> &str {
        match self.edge {
            Edge::Grpc => self.uri.path().rsplit('/').next().unwrap_or_default(),
            Edge::V1 | Edge::V2 => self.method.as_str(),
        }
    }
}

/// A request from its head to the last byte of its answer. If it is dropped before, its client left.
pub(crate) struct UnderWay {
    observer: Arc<RequestObserver>,
    names: RequestNames,
    /// The status of an answer over HTTP, and when its body was given to the connection.
    answer: Option<(StatusCode, Instant)>,
    pub(crate) receipt: Receipt,
    pub(crate) context: RequestContext,
    has_ended: bool,
}

impl UnderWay {
    /// Begin the request of this receipt, whose headers `header` looks up.
    pub(crate) fn begin<'h>(
        observer: Arc<RequestObserver>,
        names: RequestNames,
        mut receipt: Receipt,
        header: impl Fn(&str) -> Option<&'h str> + 'h,
    ) -> Self {
        let context = observer.begin(&mut receipt, &names.id, header);
        Self { observer, names, answer: None, receipt, context, has_ended: false }
    }

    /// A request that ends now, without a trace, and is not shown among those under way.
    pub(crate) fn untracked(
        observer: Arc<RequestObserver>,
        names: RequestNames,
        receipt: Receipt,
    ) -> Self {
        let context = RequestContext::default();
        Self { observer, names, answer: None, receipt, context, has_ended: false }
    }

    /// Note that an answer with this status is given to the connection now.
    pub(crate) fn writes(&mut self, status: StatusCode) {
        self.answer = Some((status, Instant::now()));
    }

    /// End it: its answer is sent.
    pub(crate) fn end(&mut self) {
        self.has_ended = true;
        self.receipt.close();
        self.observer.ended(self);
    }

    fn code(&self) -> Option<ErrorCode> {
        match self.receipt.record().outcome {
            Outcome::Failed(code) => Some(code),
            Outcome::Answered | Outcome::Abandoned => None,
        }
    }

    /// How it ended, in a word.
    fn outcome(&self) -> &'static str {
        match self.receipt.record().outcome {
            Outcome::Failed(code) => code.as_str(),
            Outcome::Answered => "ok",
            Outcome::Abandoned => "abandoned",
        }
    }

    /// The status of an answer over HTTP that its client has.
    fn status(&self) -> Option<u16> {
        let is_sent = self.receipt.record().outcome != Outcome::Abandoned;
        self.answer.filter(|_| is_sent).map(|(status, _)| status.as_u16())
    }
}

impl AnswerEnd for UnderWay {
    fn sent(mut self: Box<Self>) {
        self.end();
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if !self.has_ended {
            self.receipt.abandon();
            self.observer.ended(self);
        }
    }
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

    pub(crate) fn edges(&self) -> &'static EdgeFigures {
        self.config.edges
    }

    /// The context of a new request with this id, whose headers `header` looks up. Until it ends,
    /// it is among those that are under way. Its batches are traced, too.
    fn begin<'a>(
        &self,
        receipt: &mut Receipt,
        id: &str,
        header: impl Fn(&str) -> Option<&'a str> + 'a,
    ) -> RequestContext {
        receipt.track(self.config.requests, id);
        let ObserverConfig { tracer, access_log, slow, .. } = &self.config;
        let is_observed = tracer.is_some() || *access_log || slow.is_some();
        let context = RequestContext { is_observed, ..RequestContext::default() };
        let Some(tracer) = tracer else { return context };
        receipt.trace_batches(*tracer);
        RequestContext { trace: Some(tracer.begin(header)), ..context }
    }

    /// Count, log and trace a request whose receipt is closed.
    fn ended(&self, request: &UnderWay) {
        let (names, record) = (&request.names, request.receipt.record());
        if record.outcome != Outcome::Abandoned {
            self.config.edges.answered(names.edge, request.code());
        }
        if let Some((_, since)) = request.answer {
            self.config.edges.written(names.edge, since.elapsed());
        }
        let took = record.took;
        if self.config.access_log {
            log_access(request, took);
        }
        // Not of callers who were not admitted: they can be slow at will.
        if self.config.slow.is_some_and(|slow| took >= slow && record.tenant.is_some())
            && let Some(left_out) = self.slow_lines.lock().take(Instant::now())
        {
            log_slow(request, took, left_out);
        }
        if let (Some(tracer), Some(trace)) = (&self.config.tracer, &request.context.trace)
            && tracer.keeps(trace, record, took)
        {
            tracer.end(trace, &traced(request));
        }
    }
}

fn millis(time: Option<Duration>) -> Option<f64> {
    // Whole microseconds.
    time.map(|time| time.as_micros() as f64 / 1e3)
}

fn log_access(request: &UnderWay, took: Duration) {
    let UnderWay { names, context, receipt, .. } = request;
    let record = receipt.record();
    let SinkNames { pipeline, model, .. } = record.names();
    tracing::info!(
        target: ACCESS,
        request_id = &*names.id,
        trace_id = context.trace_id(),
        client = names.client.map(tracing::field::display),
        method = names.method(),
        path = names.uri.path(),
        status = request.status(),
        code = request.outcome(),
        tenant = record.tenant.as_ref().map(Name::as_str),
        pipeline = pipeline.map(Name::as_str),
        model = model.map(Name::as_str),
        variant = context.variant.map(Variant::as_str),
        rows = record.used().rows,
        received_bytes = record.request_bytes,
        sent_bytes = record.response_bytes,
        duration_ms = millis(Some(took)),
        "request"
    );
}

fn log_slow(request: &UnderWay, took: Duration, left_out: u64) {
    let UnderWay { names, context, receipt, .. } = request;
    let record = receipt.record();
    let stages = record.stages();
    let SinkNames { pipeline, model, .. } = record.names();
    tracing::warn!(
        request_id = &*names.id,
        trace_id = context.trace_id(),
        method = names.method(),
        path = names.uri.path(),
        tenant = record.tenant.as_ref().map(Name::as_str),
        pipeline = pipeline.map(Name::as_str),
        model = model.map(Name::as_str),
        duration_ms = millis(Some(took)),
        auth_ms = millis(stages.auth),
        read_ms = millis(stages.read),
        pre_ms = millis(stages.pre),
        queue_ms = millis(stages.queue),
        infer_ms = millis(stages.infer),
        post_ms = millis(stages.post),
        rows = record.used().rows,
        batch_rows = record.batch_rows(),
        batch_tenants = record.batch_tenants(),
        left_out,
        "slow request"
    );
}

fn traced(request: &UnderWay) -> EndedRequest<'_> {
    let UnderWay { names, context, receipt, .. } = request;
    let code = request.code();
    let mut protocol = match names.edge {
        Edge::Grpc => vec![
            ("rpc.system", "grpc".to_owned()),
            ("rpc.service", "inference.GRPCInferenceService".to_owned()),
            ("rpc.method", names.method().to_owned()),
        ],
        Edge::V1 | Edge::V2 => vec![
            ("http.request.method", names.method().to_owned()),
            ("url.path", names.uri.path().to_owned()),
        ],
    };
    let status = request.status();
    protocol.extend(status.map(|status| ("http.response.status_code", status.to_string())));
    protocol.extend(names.client.map(|client| ("client.address", client.to_string())));
    EndedRequest {
        name: names.span,
        record: receipt.record(),
        id: &names.id,
        protocol,
        code: code.map(ErrorCode::as_str),
        is_fault: code.is_some_and(|code| status_of(code).is_server_error()),
        events: context.lines.iter().map(event).collect(),
    }
}

fn event(line: &Line) -> LogEvent {
    LogEvent {
        stage: if line.call == "preprocess" { Stage::Pre } else { Stage::Post },
        time: line.time.clone(),
        level: line.level.as_str().to_lowercase(),
        message: line.message.clone(),
    }
}
