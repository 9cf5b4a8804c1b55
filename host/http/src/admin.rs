//! The admin plane: uploads and changes under `/admin/v1`, and the status.

mod status;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use bytes::Bytes;
use gristmill_control::{
    Change, Control, ControlError, ModelConfig, PipelineSpec, Published, TenantSpec,
};
use gristmill_core::{Digest, ErrorCode, Name};
use gristmill_snapshot::same_key;
use http::header::{ALLOW, CONNECTION};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Body as _;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tower_service::Service;

use crate::body::RequestBody;
use crate::credentials;
use crate::problem::Problem;
use crate::request_id::{REQUEST_ID, RequestIds};

/// The admin plane's handler; clones share everything.
#[derive(Clone)]
pub struct AdminPlane {
    router: Router,
    request_ids: Arc<RequestIds>,
    upload_bytes_max: usize,
}

#[derive(Clone)]
struct AdminState {
    control: Arc<Control>,
    token: Digest,
}

impl AdminPlane {
    /// The handler. `token` is the digest of the admin token; uploads may be `upload_bytes_max`.
    pub fn new(control: Arc<Control>, token: Digest, upload_bytes_max: usize) -> Self {
        let state = AdminState { control, token };
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
            .layer(DefaultBodyLimit::max(upload_bytes_max))
            .with_state(state);
        Self { router, request_ids: Arc::default(), upload_bytes_max }
    }

    /// Answer one request.
    pub async fn handle(self, request: http::Request<RequestBody>) -> http::Response<Full<Bytes>> {
        let id = self.request_ids.of(request.headers());
        let (has_body, asks) = (!request.body().is_end_stream(), request.method().clone());
        let mut router = self.router.clone();
        let answer = match router.call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let allow = answer.headers().get(ALLOW).cloned();
        let mut answer = match self.problem_of(&answer) {
            Some(Problem { code: ErrorCode::MethodNotAllowed, .. }) if asks == Method::OPTIONS => {
                let mut answer = http::Response::new(Full::default());
                *answer.status_mut() = StatusCode::NO_CONTENT;
                answer
            }
            Some(problem) => problem.into_response(&id).map(Full::new),
            None => {
                let failed = |problem: Problem| problem.into_response(&id).map(Full::new);
                whole(answer).await.unwrap_or_else(failed)
            }
        };
        if let Ok(id) = HeaderValue::from_str(&id) {
            answer.headers_mut().insert(REQUEST_ID, id);
        }
        answer.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
        // What is left of a body that was refused unread would be taken for the next request.
        if has_body && answer.status().as_u16() >= 400 {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    /// The problem that an answer stands for: a handler's own, or what axum refused before any
    /// handler saw the request.
    fn problem_of(&self, answer: &Response) -> Option<Problem> {
        if let Some(problem) = answer.extensions().get::<Problem>() {
            return Some(problem.clone());
        }
        match answer.status() {
            status if !status.is_client_error() && !status.is_server_error() => None,
            StatusCode::PAYLOAD_TOO_LARGE => {
                let limit = self.upload_bytes_max;
                let detail = format!("the body is over upload_bytes_max, {limit} bytes");
                Some(Problem::new(ErrorCode::BodyTooLarge, detail))
            }
            status if status.is_client_error() => {
                let detail =
                    "the path or the body cannot be read: names are UTF-8, and the body is whole";
                Some(Problem::new(ErrorCode::InvalidRequest, detail))
            }
            status => Some(Problem::new(ErrorCode::Internal, status.to_string())),
        }
    }
}

/// The answer with its body in one piece.
async fn whole(answer: Response) -> Result<http::Response<Full<Bytes>>, Problem> {
    let (head, body) = answer.into_parts();
    let body = body.collect().await;
    let body = body.map_err(|error| Problem::new(ErrorCode::Internal, error.to_string()))?;
    Ok(http::Response::from_parts(head, Full::new(body.to_bytes())))
}

/// An error of the admin plane.
struct Refused(Problem);

impl Refused {
    fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        // Rendered by `AdminPlane::handle`, which knows the request's id.
        let mut response = Response::default();
        response.extensions_mut().insert(self.0);
        response
    }
}

impl From<ControlError> for Refused {
    fn from(error: ControlError) -> Self {
        let code = error.code();
        if code == ErrorCode::Internal {
            tracing::error!(%error, "change failed");
        }
        Self::new(code, error.to_string())
    }
}

type Outcome = Result<Json<Value>, Refused>;

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

/// A JSON body, or what is wrong with it.
fn document<T>(body: Result<Json<T>, JsonRejection>) -> Result<T, Refused> {
    match body {
        Ok(Json(document)) => Ok(document),
        Err(rejection) => {
            let code = match &rejection {
                JsonRejection::MissingJsonContentType(_) => ErrorCode::UnsupportedMediaType,
                JsonRejection::JsonDataError(_) => ErrorCode::Unprocessable,
                _ => ErrorCode::InvalidRequest,
            };
            Err(Refused::new(code, rejection.body_text()))
        }
    }
}

fn published(release: Published) -> Json<Value> {
    Json(json!({ "release": release.release }))
}

/// A tenant as clients send it: keys in the clear, to be kept as digests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantBody {
    #[serde(default)]
    open: bool,
    #[serde(default)]
    api_keys: Vec<String>,
    default_pipeline: Option<Name>,
    /// Its share of contended batches, against the weights of others.
    #[serde(default = "equal_weight")]
    weight: u32,
    /// What it may run directly, over the Open Inference Protocol.
    #[serde(default)]
    models: BTreeSet<Name>,
}

fn equal_weight() -> u32 {
    1
}

const WEIGHT_MAX: u32 = 1000;

/// Keys shorter than this can be guessed.
const KEY_LEN_MIN: usize = 16;

async fn put_tenant(
    State(state): State<AdminState>,
    Path(tenant): Path<String>,
    body: Result<Json<TenantBody>, JsonRejection>,
) -> Outcome {
    let tenant = name("tenant", &tenant)?;
    let TenantBody { open, api_keys, default_pipeline, weight, models } = document(body)?;
    if open != api_keys.is_empty() {
        let detail = "a tenant is either open (\"open\": true) or has api_keys (at least one)";
        return Err(Refused::new(ErrorCode::Unprocessable, detail));
    }
    if let Some(index) = api_keys.iter().position(|key| key.len() < KEY_LEN_MIN) {
        let detail = format!("api_keys[{index}] is shorter than {KEY_LEN_MIN} characters");
        return Err(Refused::new(ErrorCode::Unprocessable, detail));
    }
    if !(1..=WEIGHT_MAX).contains(&weight) {
        let detail = format!("weight is {weight}: must be 1 to {WEIGHT_MAX}");
        return Err(Refused::new(ErrorCode::Unprocessable, detail));
    }
    let keys = api_keys.iter().map(|key| credentials::digest(key)).collect();
    let spec = TenantSpec { open, keys, default_pipeline, weight, models };
    Ok(published(state.control.release(vec![Change::PutTenant { tenant, spec }]).await?))
}

async fn delete_tenant(State(state): State<AdminState>, Path(tenant): Path<String>) -> Outcome {
    let tenant = name("tenant", &tenant)?;
    Ok(published(state.control.release(vec![Change::DeleteTenant { tenant }]).await?))
}

async fn put_plugin(
    State(state): State<AdminState>,
    Path((tenant, plugin)): Path<(String, String)>,
    file: Bytes,
) -> Outcome {
    let (tenant, plugin) = (name("tenant", &tenant)?, name("plugin", &plugin)?);
    let (digest, release) = state.control.put_plugin(&tenant, &plugin, file).await?;
    Ok(Json(json!({ "release": release.release, "digest": digest })))
}

async fn delete_plugin(
    State(state): State<AdminState>,
    Path((tenant, plugin)): Path<(String, String)>,
) -> Outcome {
    let (tenant, plugin) = (name("tenant", &tenant)?, name("plugin", &plugin)?);
    Ok(published(state.control.release(vec![Change::DeletePlugin { tenant, plugin }]).await?))
}

async fn put_pipeline(
    State(state): State<AdminState>,
    Path((tenant, pipeline)): Path<(String, String)>,
    body: Result<Json<PipelineSpec>, JsonRejection>,
) -> Outcome {
    let (tenant, pipeline) = (name("tenant", &tenant)?, name("pipeline", &pipeline)?);
    let spec = document(body)?;
    let change = Change::PutPipeline { tenant, pipeline, spec };
    Ok(published(state.control.release(vec![change]).await?))
}

async fn delete_pipeline(
    State(state): State<AdminState>,
    Path((tenant, pipeline)): Path<(String, String)>,
) -> Outcome {
    let (tenant, pipeline) = (name("tenant", &tenant)?, name("pipeline", &pipeline)?);
    let change = Change::DeletePipeline { tenant, pipeline };
    Ok(published(state.control.release(vec![change]).await?))
}

async fn put_model(
    State(state): State<AdminState>,
    Path(model): Path<String>,
    file: Bytes,
) -> Outcome {
    let model = name("model", &model)?;
    let (digest, release) = state.control.put_model(&model, file).await?;
    Ok(Json(json!({ "release": release.release, "digest": digest })))
}

async fn delete_model(State(state): State<AdminState>, Path(model): Path<String>) -> Outcome {
    let model = name("model", &model)?;
    Ok(published(state.control.release(vec![Change::DeleteModel { model }]).await?))
}

async fn put_model_config(
    State(state): State<AdminState>,
    Path(model): Path<String>,
    body: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Outcome {
    let model = name("model", &model)?;
    let config = ModelConfig::read(document(body)?)?;
    Ok(published(state.control.release(vec![Change::PutModelConfig { model, config }]).await?))
}
