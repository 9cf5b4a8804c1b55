//! The data plane: `POST /v1/{tenant}/infer[/{pipeline}]`, `GET /v1/{tenant}`, health, and the way to the
//! Open Inference Protocol's paths.

mod request;
mod response;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use gristmill_core::{BufferPool, ByteBudget, Deadline, ErrorCode, Name};
use gristmill_pipeline::{InferError, Queueing, Timings, infer};
use gristmill_sandbox::{CallError, Failure, Response as PluginResponse};
use gristmill_snapshot::{Access, Cell, Pipeline, Route, Snapshot, Tenant};
use gristmill_telemetry::stage;
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Body as _;
use serde_json::json;
use tracing::{Instrument, info_span};

use crate::body::{self, Answer, RequestBody, ResponseBody};
use crate::oip::Inference;
use crate::oip::rest::{Call, error_answer};
use crate::problem::Problem;
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
    cell: Arc<Cell>,
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
    pub fn new(cell: Arc<Cell>, inference: Inference, shutdown: Shutdown) -> Self {
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
                let call = Call { path, tenant, arrived, id: &id };
                let outcome = inference.answer(&snapshot, call, request).await;
                outcome.unwrap_or_else(|refusal| refusal.answer(&id, error_answer))
            }
            None => {
                // At `info`, so that what plugins log can be found by the request.
                let span = info_span!("request", id = %id, path);
                let outcome = self.route(&snapshot, path, request, arrived, &mut timings);
                // Boxed: it is large, and the protocol's requests need not carry it about.
                let outcome = Box::pin(outcome).instrument(span).await;
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
        headers.insert(RELEASE, snapshot.release.into());
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
        path: &str,
        (head, body): (&Parts, &mut RequestBody),
        arrived: Instant,
        times: &mut StageTimes,
    ) -> Result<Answer, Refusal> {
        let Some(target) = target_of(path) else {
            let detail = format!("nothing is served at {path:?}");
            return Err(Problem::new(ErrorCode::NotFound, detail).into());
        };
        let allowed = match target {
            Target::Infer { .. } => Method::POST,
            _ => Method::GET,
        };
        if head.method != allowed {
            return Err(Refusal::wrong_method(&head.method, &allowed));
        }
        match target {
            Target::Live => Ok(text("live")),
            Target::Ready if self.parts.shutdown.has_begun() => {
                Err(Problem::new(ErrorCode::Unavailable, "the server is shutting down").into())
            }
            Target::Ready => Ok(text("ready")),
            Target::Tenant(name) => {
                let (_, tenant) = find_tenant(snapshot, name)?;
                authorise(tenant, name, credentials::bearer(&head.headers))?;
                Ok(describe(name, tenant, snapshot.release))
            }
            Target::Infer { tenant: name, pipeline } => {
                let (_, tenant) = find_tenant(snapshot, name)?;
                authorise(tenant, name, credentials::bearer(&head.headers))?;
                let route = find_route(tenant, name, pipeline)?;
                times.auth = Some(arrived.elapsed());
                let pool = self.parts.inference.pool();
                run(route, (&tenant.share.bytes, pool), (head, body), arrived, times).await
            }
        }
    }
}

/// Read the body, run the pipeline, shape the response.
async fn run(
    route: &Route,
    (budget, pool): (&Arc<ByteBudget>, &BufferPool),
    (head, body): (&Parts, &mut RequestBody),
    arrived: Instant,
    times: &mut StageTimes,
) -> Result<Answer, Refusal> {
    let deadline = Deadline::at(arrived + route.limits.timeout);
    let bytes = route.limits.body_bytes;
    let limits = body::Limits { bytes, deadline, budget: Some(budget), aligned_at: 0, pool };
    let body = body::read(body, limits).await?;
    let request = request::for_plugin(head, body, route.settings.clone()).await?;
    let mut timings = Timings::default();
    let outcome = infer(route, request, (deadline, Queueing::default()), &mut timings).await;
    times.stages = Some(timings);
    let answer = outcome.map_err(|error| problem_of_pipeline(&error, route))?;
    let PluginResponse { status, content_type, headers, body } = answer;
    let answer = response::from_plugin(status, &content_type, headers, body);
    let answer = answer.inspect_err(|problem| {
        let (tenant, pipeline) = (&route.tenant, &route.pipeline);
        tracing::warn!(%tenant, %pipeline, error = problem.detail, "request failed");
    });
    Ok(answer?.map(|body| body.held(budget)))
}

/// What the client may know of an error; the rest goes to the log.
pub(crate) fn problem_of_pipeline(error: &InferError, route: &Route) -> Problem {
    let (tenant, pipeline) = (&route.tenant, &route.pipeline);
    let detail = match error {
        InferError::Plugin { error: CallError::Failure(failure), stage } => match failure {
            Failure::InvalidInput(text)
            | Failure::UnsupportedMediaType(text)
            | Failure::Unprocessable(text) => text.clone(),
            Failure::Internal(text) => {
                tracing::warn!(%tenant, %pipeline, stage, text, "plugin failed");
                format!("{stage}: the plugin failed")
            }
        },
        other => {
            tracing::warn!(%tenant, %pipeline, error = %other, "request failed");
            other.to_string()
        }
    };
    let problem = Problem::new(error.code(), detail);
    match error {
        InferError::Model(error) => problem.retried_after(error),
        _ => problem,
    }
}

/// A path of the Open Inference Protocol: what follows `/v2`, and the tenant named before it.
fn inference_path(path: &str) -> Option<(&str, Option<&str>)> {
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

pub(crate) fn find_tenant<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Result<(&'a Name, &'a Tenant), Problem> {
    let missing = || Problem::new(ErrorCode::TenantNotFound, format!("no tenant {name:?}"));
    snapshot.tenants.get_key_value(name).ok_or_else(missing)
}

/// Whether whoever has this bearer token may call the tenant.
pub(crate) fn authorise(tenant: &Tenant, name: &str, token: Option<&str>) -> Result<(), Problem> {
    if tenant.access == Access::Open {
        return Ok(());
    }
    let Some(key) = token else {
        let detail = "an API key is needed: Authorization: Bearer <key>";
        return Err(Problem::new(ErrorCode::Unauthenticated, detail));
    };
    if tenant.access.admits(credentials::digest(key)) {
        return Ok(());
    }
    let detail = format!("the API key does not open tenant {name:?}");
    Err(Problem::new(ErrorCode::Forbidden, detail))
}

fn find_route<'a>(
    tenant: &'a Tenant,
    name: &str,
    pipeline: Option<&str>,
) -> Result<&'a Route, Refusal> {
    let not_found = |detail| Refusal::from(Problem::new(ErrorCode::PipelineNotFound, detail));
    let known = || {
        let mut names: Vec<_> = tenant.pipelines.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let pipeline = match (pipeline, &tenant.default_pipeline) {
        (Some(pipeline), _) => pipeline,
        (None, Some(default)) => default.as_str(),
        (None, None) if tenant.pipelines.is_empty() => {
            return Err(not_found(format!("tenant {name:?} has no pipeline")));
        }
        (None, None) => {
            let detail =
                format!("tenant {name:?} has no default pipeline: name one of {}", known());
            return Err(not_found(detail));
        }
    };
    match tenant.pipelines.get(pipeline) {
        Some(Pipeline::Ready(route)) => Ok(route),
        Some(Pipeline::Unavailable(why)) => {
            let detail = format!("pipeline {pipeline:?} is not available: {why}");
            Err(Problem::new(ErrorCode::Unavailable, detail).into())
        }
        None => Err(not_found(format!(
            "tenant {name:?} has no pipeline {pipeline:?}; it has: {}",
            known()
        ))),
    }
}

fn describe(name: &str, tenant: &Tenant, release: u64) -> Answer {
    let mut pipelines: Vec<_> = tenant.pipelines.iter().collect();
    pipelines.sort_unstable_by_key(|(name, _)| (*name).clone());
    let pipelines = pipelines.into_iter().map(|(name, pipeline)| match pipeline {
        Pipeline::Ready(_) => json!({ "name": name, "state": "ready" }),
        Pipeline::Unavailable(why) => {
            json!({ "name": name, "state": "unavailable", "reason": why })
        }
    });
    let document = json!({
        "tenant": name,
        "release": release,
        "default_pipeline": tenant.default_pipeline,
        "pipelines": pipelines.collect::<Vec<_>>(),
    });
    let mut answer = Response::new(ResponseBody::from(Bytes::from(document.to_string())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn text(body: &'static str) -> Answer {
    let mut answer = Response::new(ResponseBody::from(Bytes::from_static(body.as_bytes())));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    *answer.status_mut() = StatusCode::OK;
    answer
}

/// A problem, and the method that is allowed where another was used.
pub(crate) struct Refusal {
    pub(crate) problem: Problem,
    allow: Option<HeaderValue>,
}

impl Refusal {
    pub(crate) fn wrong_method(method: &Method, allowed: &Method) -> Self {
        let detail = format!("{method} is not allowed here, {allowed} is");
        let mut refusal = Self::from(Problem::new(ErrorCode::MethodNotAllowed, detail));
        refusal.allow = HeaderValue::from_str(allowed.as_str()).ok();
        refusal
    }

    /// The answer that `write` makes of the problem.
    fn answer(self, request_id: &str, write: impl FnOnce(Problem) -> Answer) -> Answer {
        let Self { problem, allow } = self;
        if problem.code == ErrorCode::Internal {
            tracing::error!(id = request_id, detail = problem.detail, "internal error");
        }
        let mut answer = write(problem);
        answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
        answer
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self { problem, allow: None }
    }
}

/// What `Server-Timing` says.
#[derive(Default)]
struct StageTimes {
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
