//! The data plane: `POST /v1/{tenant}/infer[/{pipeline}]`, `GET /v1/{tenant}`, health, and the way to the
//! Open Inference Protocol's paths.

mod form;
mod request;
mod response;
mod tenant;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Deadline, ErrorCode};
use gristmill_pipeline::{InferError, Queueing, Timings, infer};
use gristmill_sandbox::{CallError, Failure};
use gristmill_snapshot::{Route, Snapshot, SnapshotCell};
use gristmill_telemetry::stage;
use http::header::{CONNECTION, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use hyper::body::Body as _;
use serde_json::{Value, json};
use tracing::{Instrument, Span, error_span};

pub(crate) use self::tenant::{admitted, find_tenant};
use self::tenant::{describe, find_route};
use crate::body::{self, Answer, RequestBody, ResponseBody};
use crate::method::{Allowed, Refusal};
use crate::oip::Inference;
use crate::oip::rest::{Call, error_answer};
use crate::problem::Problem;
use crate::readiness::{Unavailable, readiness};
use crate::request_id::{REQUEST_ID, RequestIds};
use crate::{Shutdown, credentials};

const RELEASE: HeaderName = HeaderName::from_static("gristmill-release");
pub(crate) const PROVIDER: HeaderName = HeaderName::from_static("gristmill-provider");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The data plane's handler; clones share everything.
#[derive(Clone)]
pub struct DataPlane {
    parts: Arc<Shared>,
}

struct Shared {
    cell: Arc<SnapshotCell>,
    inference: Inference,
    shutdown: Shutdown,
    request_ids: RequestIds,
}

/// Where a path leads.
enum Target<'a> {
    Live,
    Ready,
    Tenant(&'a str),
    Infer { tenant: &'a str, pipeline: Option<&'a str> },
}

impl DataPlane {
    pub fn new(cell: Arc<SnapshotCell>, inference: Inference, shutdown: Shutdown) -> Self {
        let parts = Shared { cell, inference, shutdown, request_ids: RequestIds::default() };
        Self { parts: Arc::new(parts) }
    }

    /// Answer one request.
    pub async fn handle(self, request: Request<RequestBody>) -> Answer {
        let arrived = Instant::now();
        let Shared { cell, inference, request_ids, .. } = &*self.parts;
        let (head, mut body) = request.into_parts();
        let request = (&head, &mut body);
        let id = request_ids.of(&head.headers);
        let snapshot = cell.load();
        let mut timings = StageTimes::default();
        let path = head.uri.path();
        let mut answer = match inference_path(path) {
            Some((path, tenant)) => {
                let admitted = &mut timings.admitted;
                let call = Call { path, tenant, arrived, id: &id, admitted };
                let outcome = inference.answer(&snapshot, call, request).await;
                outcome.unwrap_or_else(|refusal| refusal.answer(&id, error_answer))
            }
            None => {
                let call = (path, id.as_str(), arrived);
                // Boxed: it is large, and the protocol's requests need not carry it about.
                let outcome = Box::pin(self.route(&snapshot, call, request, &mut timings)).await;
                let document =
                    |problem: Problem| problem.into_response(&id).map(ResponseBody::from);
                outcome.unwrap_or_else(|refusal| refusal.answer(&id, document))
            }
        };
        let answer_status = answer.status();
        let headers = answer.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(REQUEST_ID, id);
        }
        // Others need not know when anything is changed.
        if timings.admitted {
            headers.insert(RELEASE, snapshot.release.into());
        }
        if let Some(provider) = timings.stages.and_then(|stages| stages.provider) {
            headers.insert(PROVIDER, HeaderValue::from_static(provider));
        }
        if let Some(times) = timings.header() {
            headers.insert(SERVER_TIMING, times);
        }
        // Who sends too slowly or too much need not go on, and who waits to be asked for a body may send it or not.
        let gives_up = match answer_status {
            StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => true,
            status => status.as_u16() >= 400 && head.headers.contains_key(EXPECT),
        };
        if !body.is_end_stream() && (gives_up || !body::finish(&mut body).await) {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    async fn route(
        &self,
        snapshot: &Snapshot,
        (path, id, arrived): (&str, &str, Instant),
        (head, body): (&Parts, &mut RequestBody),
        times: &mut StageTimes,
    ) -> Result<Answer, Refusal> {
        let Some(target) = target_of(path) else {
            let detail = format!("nothing is served at {path:?}");
            return Err(Problem::new(ErrorCode::NotFound, detail).into());
        };
        let allowed = match target {
            Target::Infer { .. } => Allowed::Post,
            _ => Allowed::Get,
        };
        if let Some(answer) = allowed.check(&head.method)? {
            return Ok(answer);
        }
        match target {
            Target::Live => Ok(live()),
            Target::Ready => Ok(ready(&readiness(snapshot, &self.parts.shutdown)?)),
            Target::Tenant(name) => {
                let (_, tenant) = admitted(snapshot, name, credentials::bearer(&head.headers))?;
                times.admitted = true;
                Ok(describe(name, tenant, snapshot.release))
            }
            Target::Infer { tenant: name, pipeline } => {
                let (_, tenant) = admitted(snapshot, name, credentials::bearer(&head.headers))?;
                times.admitted = true;
                let route = find_route(tenant, name, pipeline)?;
                times.auth = Some(arrived.elapsed());
                let means = (&tenant.quota.bytes, &self.parts.inference);
                let way = run(route, means, (head, body), (arrived, times));
                way.instrument(request_span(route, id)).await
            }
        }
    }
}

/// What every log line of a request through a pipeline says. Of the highest level, so that a filter
/// lets it pass wherever it lets any line pass.
pub(crate) fn request_span(route: &Route, id: &str) -> Span {
    let (tenant, pipeline) = (route.tenant.as_str(), route.pipeline.as_str());
    error_span!("request", request_id = id, tenant, pipeline)
}

/// Read the body, run the pipeline, shape the response.
async fn run(
    route: &Route,
    (budget, inference): (&Arc<ByteBudget>, &Inference),
    (head, body): (&Parts, &mut RequestBody),
    (arrived, times): (Instant, &mut StageTimes),
) -> Result<Answer, Refusal> {
    let deadline = Deadline::at(arrived + route.limits.timeout);
    let bytes = route.limits.body_bytes;
    let limits = body::Limits {
        bytes,
        deadline,
        budget: Some(budget),
        aligned_at: 0,
        pool: inference.pool(),
    };
    let body = body::read(body, limits).await?;
    let whose = (Some(&route.tenant), Some(budget));
    let body = inference.decoded(&head.headers, whose, (body, bytes)).await?;
    let request = request::for_plugin(head, body, route.settings.clone()).await?;
    let mut timings = Timings::default();
    let outcome = infer(route, request, (deadline, Queueing::default()), &mut timings).await;
    times.stages = Some(timings);
    let response = outcome.map_err(|error| problem_of_pipeline(&error, route))?;
    let answer = response::from_plugin(response, route.limits.plugin.response_bytes, budget);
    let answer = answer.inspect_err(|problem| {
        let plugin = route.post_name.as_str();
        tracing::warn!(plugin, error = problem.detail, "request failed");
    });
    Ok(answer?)
}

/// What the client may know of an error; the rest goes to the log, within the request's span.
pub(crate) fn problem_of_pipeline(error: &InferError, route: &Route) -> Problem {
    let problem = match error {
        InferError::Plugin { error: CallError::Failure(failure), stage } => match failure {
            Failure::InvalidInput(text)
            | Failure::UnsupportedMediaType(text)
            | Failure::Unprocessable(text) => Problem::new(error.code(), text.clone()),
            Failure::Internal(text) => {
                let plugin = plugin_of(stage, route);
                tracing::warn!(plugin, stage, text, "plugin failed");
                Problem::new(error.code(), format!("{stage}: the plugin failed"))
            }
        },
        InferError::Plugin { error: why, stage } => {
            let plugin = plugin_of(stage, route);
            tracing::warn!(plugin, stage, error = %why, "plugin failed");
            Problem::of(error.code(), error)
        }
        other => {
            tracing::warn!(error = %other, "request failed");
            Problem::of(error.code(), other)
        }
    };
    match error {
        InferError::Model(error) => problem.retried_after(error),
        _ => problem,
    }
}

fn plugin_of<'a>(stage: &str, route: &'a Route) -> &'a str {
    if stage == stage::PRE { route.pre_name.as_str() } else { route.post_name.as_str() }
}

/// A path of the Open Inference Protocol: what follows `/v2`, and the tenant named before it.
pub(crate) fn inference_path(path: &str) -> Option<(&str, Option<&str>)> {
    if let Some(path) = below(path, "/v2") {
        return Some((path, None));
    }
    let (tenant, rest) = path.strip_prefix("/v1/")?.split_once('/')?;
    Some((below(rest, "v2")?, Some(tenant)))
}

fn target_of(path: &str) -> Option<Target<'_>> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let target = match (parts.next()?, parts.next(), parts.next(), parts.next()) {
        ("livez", None, ..) => Target::Live,
        ("readyz", None, ..) => Target::Ready,
        ("v1", Some(tenant), None, _) => Target::Tenant(tenant),
        ("v1", Some(tenant), Some("infer"), pipeline) => Target::Infer { tenant, pipeline },
        _ => return None,
    };
    parts.next().is_none().then_some(target)
}

/// What follows `prefix` in `path`, where that is a whole part of it.
fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(crate) fn live() -> Answer {
    let mut answer = Response::new(ResponseBody::from(Bytes::from_static(b"live")));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

fn ready(unavailable: &Unavailable) -> Answer {
    let mut document = json!({ "status": "ready" });
    if !unavailable.is_none() {
        document["unavailable"] = serde_json::to_value(unavailable).unwrap_or(Value::Null);
    }
    let mut answer = Response::new(ResponseBody::from(Bytes::from(document.to_string())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// What an answer says of its request.
#[derive(Default)]
struct StageTimes {
    /// Whether the caller may know what the server serves.
    admitted: bool,
    auth: Option<Duration>,
    stages: Option<Timings>,
}

impl StageTimes {
    fn header(&self) -> Option<HeaderValue> {
        use std::fmt::Write as _;
        let mut text = String::with_capacity(96);
        let mut add = |name: &str, took: Duration| {
            let separator = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{separator}{name};dur={:.3}", took.as_secs_f64() * 1e3);
        };
        add(stage::AUTH, self.auth?);
        if let Some(stages) = &self.stages {
            add(stage::PRE, stages.pre);
            add(stage::QUEUE, stages.queue);
            add(stage::INFER, stages.infer);
            add(stage::POST, stages.post);
        }
        HeaderValue::from_str(&text).ok()
    }
}
