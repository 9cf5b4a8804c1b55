//! What is told of a request that has ended, besides its answer: its trace, its line in the access
//! log, and a line if it was slow.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use gristmill_core::{ErrorCode, Name, Outcome, Receipt, Record, Requests, SinkNames, Stage};
use gristmill_metrics::{Edge, EdgeFigures};
use gristmill_otlp::{EndedRequest, LogEvent, TraceContext, Tracer};
use gristmill_sandbox::Line;
use gristmill_serve::Variant;
use gristmill_transport::{LineRate, status_of};
use parking_lot::Mutex;

/// The target of the access log's lines, by which a filter can choose them.
const ACCESS: &str = "access";

/// What is told of requests that have ended.
#[derive(Clone, Debug)]
pub struct Telling {
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

/// The course of a request, for its answer and its trace.
#[derive(Default)]
pub(crate) struct Course {
    /// The variant of its pipeline that ran it, if there are several.
    pub(crate) variant: Option<Variant>,
    /// Whether it is told of, so that its tenant's name is noted.
    pub(crate) is_told: bool,
    /// Its place in a trace.
    pub(crate) trace: Option<TraceContext>,
    /// What its plugins logged, if it is traced.
    pub(crate) lines: Vec<Line>,
}

impl Course {
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
pub(crate) struct Named<'a> {
    pub(crate) edge: Edge,
    /// The name of its span.
    pub(crate) name: &'static str,
    /// `GET`, or the name of a method of gRPC.
    pub(crate) method: &'a str,
    /// Without the query, which may hold secrets.
    pub(crate) path: &'a str,
    pub(crate) id: &'a str,
    pub(crate) client: Option<IpAddr>,
}

/// A request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) named: Named<'a>,
    /// The status of an answer over HTTP.
    pub(crate) status: Option<u16>,
    pub(crate) record: &'a Record,
    /// From its arrival until its answer was ready, or its client left.
    pub(crate) took: Duration,
    pub(crate) course: Course,
}

impl Ended<'_> {
    fn code(&self) -> Option<ErrorCode> {
        match self.record.outcome {
            Outcome::Failed(code) => Some(code),
            Outcome::Answered | Outcome::Abandoned => None,
        }
    }

    /// How it ended, in a word.
    fn outcome(&self) -> &'static str {
        match self.record.outcome {
            Outcome::Failed(code) => code.as_str(),
            Outcome::Answered => "ok",
            Outcome::Abandoned => "abandoned",
        }
    }
}

/// A request under way. If it is dropped before its end, its client left, and that is told.
pub(crate) struct UnderWay<'a> {
    teller: &'a Teller,
    named: Named<'a>,
    pub(crate) receipt: Receipt,
    pub(crate) course: Course,
    has_ended: bool,
}

impl<'a> UnderWay<'a> {
    /// Begin the request of this receipt, whose headers `header` looks up.
    pub(crate) fn begin<'h>(
        teller: &'a Teller,
        named: Named<'a>,
        mut receipt: Receipt,
        header: impl Fn(&str) -> Option<&'h str> + 'h,
    ) -> Self {
        let course = teller.begin(&mut receipt, named.id, header);
        Self { teller, named, receipt, course, has_ended: false }
    }

    /// Tell of its end.
    pub(crate) fn end(mut self, status: Option<u16>, record: &Record, took: Duration) {
        self.has_ended = true;
        let course = std::mem::take(&mut self.course);
        self.teller.ended(Ended { named: self.named, status, record, took, course });
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let record = self.receipt.take().abandoned();
        let (took, course) = (record.arrived.elapsed(), std::mem::take(&mut self.course));
        let (named, status, record) = (self.named, None, &record);
        self.teller.ended(Ended { named, status, record, took, course });
    }
}

/// Tells what it was asked to.
pub(crate) struct Teller {
    telling: Telling,
    /// Of lines about slow requests.
    slow_lines: Mutex<LineRate>,
}

impl Teller {
    pub(crate) fn new(telling: Telling) -> Self {
        Self { telling, slow_lines: Mutex::default() }
    }

    pub(crate) fn edges(&self) -> &'static EdgeFigures {
        self.telling.edges
    }

    /// The course of a new request with this id, whose headers `header` looks up. Until it ends, it
    /// is among those that are under way. Its batches are traced, too.
    fn begin<'a>(
        &self,
        receipt: &mut Receipt,
        id: &str,
        header: impl Fn(&str) -> Option<&'a str> + 'a,
    ) -> Course {
        receipt.track(self.telling.requests, id);
        let Telling { tracer, access_log, slow, .. } = &self.telling;
        let is_told = tracer.is_some() || *access_log || slow.is_some();
        let Some(tracer) = tracer else { return Course { is_told, ..Course::default() } };
        receipt.trace_batches(*tracer);
        Course { is_told, trace: Some(tracer.begin(header)), ..Course::default() }
    }

    /// Tell of a request that has ended.
    pub(crate) fn ended(&self, ended: Ended<'_>) {
        if ended.record.outcome != Outcome::Abandoned {
            self.telling.edges.answered(ended.named.edge, ended.code());
        }
        let took = ended.took;
        if self.telling.access_log {
            log_access(&ended, took);
        }
        // Not of callers who were not admitted: they can be slow at will.
        if self.telling.slow.is_some_and(|slow| took >= slow && ended.record.tenant.is_some())
            && let Some(left_out) = self.slow_lines.lock().take(Instant::now())
        {
            log_slow(&ended, took, left_out);
        }
        if let (Some(tracer), Some(trace)) = (&self.telling.tracer, &ended.course.trace)
            && tracer.keeps(trace, ended.record, took)
        {
            tracer.end(trace, &traced(&ended));
        }
    }
}

fn millis(time: Option<Duration>) -> Option<f64> {
    // Whole microseconds.
    time.map(|time| time.as_micros() as f64 / 1e3)
}

fn log_access(ended: &Ended<'_>, took: Duration) {
    let Ended { named: Named { method, path, id, client, .. }, status, record, course, .. } = ended;
    let SinkNames { pipeline, model, .. } = record.names();
    tracing::info!(
        target: ACCESS,
        request_id = id,
        trace_id = course.trace_id(),
        client = client.map(tracing::field::display),
        method,
        path,
        status,
        code = ended.outcome(),
        tenant = record.tenant.as_ref().map(Name::as_str),
        pipeline = pipeline.map(Name::as_str),
        model = model.map(Name::as_str),
        variant = course.variant.map(Variant::as_str),
        rows = record.model.rows,
        received_bytes = record.request_bytes,
        sent_bytes = record.response_bytes,
        duration_ms = millis(Some(took)),
        "request"
    );
}

fn log_slow(ended: &Ended<'_>, took: Duration, left_out: u64) {
    let Ended { named: Named { method, path, id, .. }, record, course, .. } = ended;
    let stages = &record.stages;
    let SinkNames { pipeline, model, .. } = record.names();
    tracing::warn!(
        request_id = id,
        trace_id = course.trace_id(),
        method,
        path,
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
        rows = record.model.rows,
        batch_rows = record.batch_rows,
        batch_tenants = record.batch_tenants,
        left_out,
        "slow request"
    );
}

fn traced<'a>(ended: &'a Ended<'_>) -> EndedRequest<'a> {
    let Ended { named, status, record, course, .. } = ended;
    let Named { edge, name, method, path, id, client } = *named;
    let code = ended.code();
    let mut protocol = match edge {
        Edge::Grpc => vec![
            ("rpc.system", "grpc".to_owned()),
            ("rpc.service", "inference.GRPCInferenceService".to_owned()),
            ("rpc.method", method.to_owned()),
        ],
        Edge::V1 | Edge::V2 => {
            vec![("http.request.method", method.to_owned()), ("url.path", path.to_owned())]
        }
    };
    protocol.extend(status.map(|status| ("http.response.status_code", status.to_string())));
    protocol.extend(client.map(|client| ("client.address", client.to_string())));
    EndedRequest {
        name,
        record,
        id,
        protocol,
        code: code.map(ErrorCode::as_str),
        is_fault: code.is_some_and(|code| status_of(code).is_server_error()),
        events: course.lines.iter().map(event).collect(),
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
