//! The admin plane: uploads and changes under `/admin/v1`, and the status.
//!
//! In reading order: `receive` reads what clients send, `tenant` is the document of a tenant, `answer`
//! what handlers give back, `status` the one thing that can be read, `audit` the lines in the log.

mod answer;
mod audit;
mod receive;
mod status;
mod tenant;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use bytes::Bytes;
use gristmill_control::{Change, Control, ModelConfig};
use gristmill_core::{Digest, ErrorCode, Name};
use gristmill_snapshot::same_key;
use gristmill_telemetry::Log;
use http::header::{ALLOW, CONNECTION};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::Full;
use hyper::body::Body as _;
use serde_json::json;
use tower_service::Service;

use self::answer::{Json, Noted, Outcome, Refused, ended, problem_of, published, status_of, whole};
use self::audit::{Audit, Call};
use self::receive::{Object, Upload};
use crate::body::RequestBody;
use crate::credentials;
use crate::request_id::{REQUEST_ID, RequestIds};

/// The admin plane's handler; clones share everything.
#[derive(Clone)]
pub struct AdminPlane {
    router: Router,
    request_ids: Arc<RequestIds>,
    audit: Arc<Audit>,
}

/// Bounds on uploads.
#[derive(Clone, Copy, Debug)]
pub struct UploadLimits {
    pub upload_bytes_max: usize,
    /// From the end of the head to the end of the body.
    pub upload_timeout: Duration,
}

#[derive(Clone)]
struct AdminState {
    control: Arc<Control>,
    token: Digest,
    limits: UploadLimits,
    log: Log,
}

impl AdminPlane {
    /// The handler. `token` is the digest of the admin token; the status tells of the `log`.
    pub fn new(control: Arc<Control>, token: Digest, limits: UploadLimits, log: Log) -> Self {
        let state = AdminState { control, token, limits, log };
        let router = Router::new()
            .route("/admin/v1/status", get(status::status))
            .route("/admin/v1/tenants/{tenant}", put(put_tenant).delete(delete_tenant))
            .route(
                "/admin/v1/tenants/{tenant}/plugins/{plugin}",
                put(put_plugin).delete(delete_plugin),
            )
            .route(
                "/admin/v1/tenants/{tenant}/pipelines/{pipeline}",
                put(put_pipeline).delete(delete_pipeline),
            )
            .route("/admin/v1/models/{model}", put(put_model).delete(delete_model))
            .route("/admin/v1/models/{model}/config", put(put_model_config))
            .fallback(async || Refused::new(ErrorCode::NotFound, "nothing is served at this path"))
            .method_not_allowed_fallback(async || {
                Refused::new(ErrorCode::MethodNotAllowed, "this method is not allowed here")
            })
            .layer(middleware::from_fn_with_state(state.clone(), authorise))
            .with_state(state);
        Self { router, request_ids: Arc::default(), audit: Arc::default() }
    }

    /// Answer one request.
    pub async fn handle(self, request: http::Request<RequestBody>) -> http::Response<Full<Bytes>> {
        let id = self.request_ids.of(request.headers());
        let has_body = !request.body().is_end_stream();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let mut router = self.router.clone();
        let answer = match router.call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let allow = answer.headers().get(ALLOW).cloned();
        let noted = answer.extensions().get::<Noted>().cloned().unwrap_or_default();
        let outcome = match problem_of(&answer) {
            Some(problem)
                if problem.code == ErrorCode::MethodNotAllowed && method == Method::OPTIONS =>
            {
                let mut answer = http::Response::new(Bytes::new());
                *answer.status_mut() = StatusCode::NO_CONTENT;
                Ok(answer)
            }
            Some(problem) => Err(problem),
            None => whole(answer).await,
        };
        let (status, code) = match &outcome {
            Ok(answer) => (answer.status(), None),
            Err(problem) => (status_of(problem), Some(problem.code)),
        };
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        self.audit.write(&Call { method: method.as_str(), path, id: &id, status, code, noted });
        let answer = outcome.unwrap_or_else(|problem| problem.into_response(&id));
        let mut answer = ended(answer);
        if let Ok(id) = HeaderValue::from_str(&id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
        // What is left of a body that was refused unread would be taken for the next request.
        let unread = matches!(answer.status().as_u16(), 401 | 403..=405 | 408 | 413);
        if has_body && unread {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

async fn authorise(State(state): State<AdminState>, request: Request, next: Next) -> Response {
    let token = credentials::bearer(request.headers()).filter(|token| !token.is_empty());
    let Some(token) = token else {
        let detail = "the admin token is needed: Authorization: Bearer <token>";
        return Refused::new(ErrorCode::Unauthenticated, detail).into_response();
    };
    if !same_key(state.token, credentials::digest(token)) {
        return Refused::new(ErrorCode::Forbidden, "this is not the admin token").into_response();
    }
    next.run(request).await
}

/// A name from the path.
fn name(what: &str, text: &str) -> Result<Name, Refused> {
    text.parse()
        .map_err(|error| Refused::new(ErrorCode::InvalidRequest, format!("{what}: {error}")))
}

/// Whether the query says `name`, the one parameter that is known here: `?force=true`.
fn flag(name: &str, query: Option<&str>) -> Result<bool, Refused> {
    let invalid = |detail: String| Refused::new(ErrorCode::InvalidRequest, detail);
    let mut value = false;
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        value = match pair.split_once('=').unwrap_or((pair, "")) {
            (known, "true") if known == name => true,
            (known, "false") if known == name => false,
            (known, other) if known == name => {
                return Err(invalid(format!("{name} is {other:?}: must be true or false")));
            }
            (other, _) => {
                return Err(invalid(format!("unknown parameter {other:?}; known is {name}")));
            }
        };
    }
    Ok(value)
}

/// Delete what `change` deletes.
async fn delete(state: &AdminState, change: Change, query: Option<&str>) -> Outcome {
    let cascade = flag("cascade", query)?;
    Ok(published(state.control.delete(change, cascade).await?))
}

async fn put_tenant(
    State(state): State<AdminState>,
    Path(tenant): Path<String>,
    Object(document): Object,
) -> Outcome {
    let tenant = name("tenant", &tenant)?;
    let (spec, faults) = tenant::read(document, state.token);
    Ok(published(state.control.put_tenant(&tenant, spec, faults).await?))
}

async fn delete_tenant(
    State(state): State<AdminState>,
    Path(tenant): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let tenant = name("tenant", &tenant)?;
    delete(&state, Change::DeleteTenant { tenant }, query.as_deref()).await
}

async fn put_plugin(
    State(state): State<AdminState>,
    Path((tenant, plugin)): Path<(String, String)>,
    Upload(file): Upload,
) -> Outcome {
    let (tenant, plugin) = (name("tenant", &tenant)?, name("plugin", &plugin)?);
    let (digest, release) = state.control.put_plugin(&tenant, &plugin, file).await?;
    Ok(Json(json!({ "release": release.release, "digest": digest })))
}

async fn delete_plugin(
    State(state): State<AdminState>,
    Path((tenant, plugin)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let (tenant, plugin) = (name("tenant", &tenant)?, name("plugin", &plugin)?);
    delete(&state, Change::DeletePlugin { tenant, plugin }, query.as_deref()).await
}

async fn put_pipeline(
    State(state): State<AdminState>,
    Path((tenant, pipeline)): Path<(String, String)>,
    Object(document): Object,
) -> Outcome {
    let (tenant, pipeline) = (name("tenant", &tenant)?, name("pipeline", &pipeline)?);
    Ok(published(state.control.put_pipeline(&tenant, &pipeline, document).await?))
}

async fn delete_pipeline(
    State(state): State<AdminState>,
    Path((tenant, pipeline)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let (tenant, pipeline) = (name("tenant", &tenant)?, name("pipeline", &pipeline)?);
    delete(&state, Change::DeletePipeline { tenant, pipeline }, query.as_deref()).await
}

async fn put_model(
    State(state): State<AdminState>,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
    Upload(file): Upload,
) -> Outcome {
    let model = name("model", &model)?;
    let force = flag("force", query.as_deref())?;
    let published = state.control.put_model(&model, file, force).await?;
    Ok(Json(status::describe_put(&published)))
}

async fn delete_model(
    State(state): State<AdminState>,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> Outcome {
    let model = name("model", &model)?;
    delete(&state, Change::DeleteModel { model }, query.as_deref()).await
}

async fn put_model_config(
    State(state): State<AdminState>,
    Path(model): Path<String>,
    Object(document): Object,
) -> Outcome {
    let model = name("model", &model)?;
    let config = ModelConfig::read(document)?;
    let published = state.control.put_model_config(&model, config).await?;
    Ok(Json(status::describe_put(&published)))
}
