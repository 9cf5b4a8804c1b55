//! The protocol over HTTP: paths, bodies and their encodings, answers.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use gristmill_core::ErrorCode;
use gristmill_oip::{InferRequest, InferResponse, Input, Written};
use gristmill_snapshot::Snapshot;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use super::access::{Caller, Target};
use super::inference::{Answered, Asked, refused};
use super::{Inference, NO_SHARED_MEMORY, models};
use crate::body::{self, Answer, RequestBody, ResponseBody};
use crate::credentials;
use crate::data::PROVIDER;
use crate::encoding::{Encoding, aside, decoded};
use crate::method::{Allowed, Refusal};
use crate::percent;
use crate::problem::{Problem, status_of};
use crate::readiness::readiness;

const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Responses shorter than this are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 1 << 10;

/// Where a path below `/v2` leads.
enum Path<'a> {
    Open(OpenPath),
    Caller(CallerPath<'a>),
}

/// What needs no credentials.
enum OpenPath {
    Server,
    Live,
    Ready,
    /// Not offered, and why.
    Unsupported(&'static str),
}

/// What depends on who calls.
enum CallerPath<'a> {
    Models,
    AllStatistics,
    Metadata(Model<'a>),
    Ready(Model<'a>),
    Config(Model<'a>),
    Statistics(Model<'a>),
    Infer(Model<'a>),
    Index,
    Load(&'a str),
    Unload(&'a str),
}

/// A model and the version asked for, empty where none is.
#[derive(Clone, Copy)]
struct Model<'a> {
    name: &'a str,
    version: &'a str,
}

/// What a request is about, beside its body.
pub(crate) struct Call<'a> {
    /// What follows `/v2`.
    pub(crate) path: &'a str,
    /// The tenant that the path names before it.
    pub(crate) tenant: Option<&'a str>,
    pub(crate) arrived: Instant,
    /// The request's id.
    pub(crate) id: &'a str,
    /// Set once the caller may know what the server serves.
    pub(crate) admitted: &'a mut bool,
}

impl Inference {
    /// Answer one request below `/v2`.
    pub(crate) async fn answer(
        &self,
        snapshot: &Snapshot,
        call: Call<'_>,
        (head, body): (&Parts, &mut RequestBody),
    ) -> Result<Answer, Refusal> {
        let segments = call.path.split('/').filter(|part| !part.is_empty());
        let segments: Vec<_> = segments.map(percent::decode).collect();
        let segments: Vec<&str> = segments.iter().map(|segment| &**segment).collect();
        let Some((allowed, path)) = path_of(&segments) else {
            let detail = format!("nothing is served at \"/v2{}\"", call.path);
            return Err(Problem::new(ErrorCode::NotFound, detail).into());
        };
        if let Some(answer) = allowed.check(&head.method)? {
            return Ok(answer);
        }
        let path = match path {
            Path::Open(path) => return self.of_anyone(snapshot, path).map_err(Refusal::from),
            Path::Caller(path) => path,
        };
        let caller = self.caller(snapshot, credentials::bearer(&head.headers), call.tenant)?;
        *call.admitted = true;
        self.of_caller(snapshot, caller, path, &call, (head, body)).await
    }

    fn of_anyone(&self, snapshot: &Snapshot, path: OpenPath) -> Result<Answer, Problem> {
        Ok(match path {
            OpenPath::Server => json_answer(&models::server()),
            OpenPath::Live => json_answer(&json!({ "live": true })),
            OpenPath::Ready => {
                let ready = readiness(snapshot, &self.parts.shutdown).is_ok();
                let mut answer = json_answer(&json!({ "ready": ready }));
                if !ready {
                    *answer.status_mut() = StatusCode::BAD_REQUEST;
                }
                answer
            }
            OpenPath::Unsupported(why) => return Err(Problem::new(ErrorCode::Unsupported, why)),
        })
    }

    async fn of_caller(
        &self,
        snapshot: &Snapshot,
        caller: Caller<'_>,
        path: CallerPath<'_>,
        call: &Call<'_>,
        (head, body): (&Parts, &mut RequestBody),
    ) -> Result<Answer, Refusal> {
        let Call { arrived, id, .. } = *call;
        let find = |Model { name, version }| caller.find(snapshot, name, version);
        Ok(match path {
            CallerPath::Models => {
                let visible = caller.models(snapshot).into_iter();
                let names: Vec<_> = visible.map(|model| model.name()).collect();
                json_answer(&json!({ "models": names }))
            }
            CallerPath::AllStatistics => json_answer(&models::all_statistics(caller, snapshot)),
            CallerPath::Metadata(model) => {
                let visible = find(model)?;
                json_answer(&models::metadata(visible, &visible.served()?))
            }
            CallerPath::Ready(model) => match find(model).and_then(|visible| visible.served()) {
                Ok(_) => empty(StatusCode::OK),
                Err(problem) => {
                    let mut answer = error_answer(problem);
                    *answer.status_mut() = StatusCode::BAD_REQUEST;
                    answer
                }
            },
            CallerPath::Config(model) => {
                let visible = find(model)?;
                json_answer(&models::config(visible, &visible.served()?))
            }
            CallerPath::Statistics(model) => {
                let visible = find(model)?;
                let statistics = models::statistics(caller, visible, &visible.served()?);
                json_answer(&json!({ "model_stats": [statistics] }))
            }
            CallerPath::Index => {
                #[derive(Default, serde::Deserialize)]
                struct IndexBody {
                    #[serde(default)]
                    ready: bool,
                }
                let body = self.read(caller, (head, body), arrived).await?;
                let IndexBody { ready } = document(&body)?;
                json_answer(&models::index(caller, snapshot, ready).models)
            }
            CallerPath::Load(model) => {
                Box::pin(self.change(caller, (model, true), (head, body), arrived)).await?
            }
            CallerPath::Unload(model) => {
                Box::pin(self.change(caller, (model, false), (head, body), arrived)).await?
            }
            CallerPath::Infer(Model { name, version }) => {
                let deadline = self.deadline(arrived);
                let asked = Asked { caller, model: name, version, id, arrived, deadline };
                self.infer_over_http(snapshot, &asked, (head, body)).await?
            }
        })
    }

    async fn change(
        &self,
        caller: Caller<'_>,
        (model, load): (&str, bool),
        request: (&Parts, &mut RequestBody),
        arrived: Instant,
    ) -> Result<Answer, Problem> {
        caller.operates()?;
        #[derive(Default, serde::Deserialize)]
        struct LoadBody {
            #[serde(default)]
            parameters: BTreeMap<String, serde::de::IgnoredAny>,
        }
        let body = self.read(caller, request, arrived).await?;
        let LoadBody { parameters } = document(&body)?;
        self.set_loaded(caller, model, load, parameters.keys().map(String::as_str)).await?;
        Ok(json_answer(&json!({})))
    }

    async fn read(
        &self,
        caller: Caller<'_>,
        (head, body): (&Parts, &mut RequestBody),
        arrived: Instant,
    ) -> Result<Bytes, Problem> {
        let (bytes, deadline) = (self.parts.config.message_bytes_max, self.deadline(arrived));
        let (budget, pool) = (caller.budget(), self.pool());
        let limits = body::Limits { bytes, deadline, budget, aligned_at: 0, pool };
        let body = body::read(body, limits).await?;
        decoded(&head.headers, body, (bytes, budget))
    }

    /// The most bytes of a request for this model.
    fn bytes_max(&self, target: &Target<'_>) -> usize {
        let most = self.parts.config.message_bytes_max;
        match target {
            Target::Model { .. } => most,
            // A text in JSON may be longer than itself.
            Target::Pipeline { route, .. } => {
                most.min(route.limits.body_bytes.saturating_mul(2).saturating_add(4 << 10))
            }
        }
    }

    async fn infer_over_http(
        &self,
        snapshot: &Snapshot,
        asked: &Asked<'_>,
        (head, body): (&Parts, &mut RequestBody),
    ) -> Result<Answer, Problem> {
        let budget = &asked.caller.tenant()?.1.share.bytes;
        let target = self.target(snapshot, asked)?;
        let header_len = header_length(&head.headers)?;
        let (bytes, aligned_at) = (self.bytes_max(&target), header_len.unwrap_or_default());
        let (deadline, pool) = (asked.deadline, self.pool());
        let limits = body::Limits { bytes, deadline, budget: Some(budget), aligned_at, pool };
        let body = body::read(body, limits).await?;
        let body = decoded(&head.headers, body, (bytes, Some(budget)))?;
        let request = match header_len {
            Some(0) => raw_request(&target, body)?,
            header_len => {
                let json_len = header_len.unwrap_or(body.len());
                let parsed = aside(json_len, || InferRequest::parse(&body, header_len));
                let mut request = parsed.map_err(refused)?;
                // What was JSON is memory of its own; what was binary is the body's.
                let of_body = body.as_ptr_range();
                let own = |input: &&mut Input| !of_body.contains(&input.data.as_ptr());
                for input in request.inputs.iter_mut().filter(own) {
                    input.data = body::try_held(std::mem::take(&mut input.data), budget)?;
                }
                request
            }
        };
        let answered = self.run(asked, &target, &request).await?;
        let Answered { version, outputs, provider } = answered;
        let id = request.id.as_deref();
        let response =
            InferResponse { model_name: asked.model, model_version: version, id, outputs };
        let len = response.outputs.iter().map(|output| output.data.as_slice().len()).sum();
        let written = aside(len, || response.write(&request)).map_err(refused)?;
        let mut answer = encoded(head, written)?.map(|body| body.held(budget));
        if let Some(provider) = provider {
            answer.headers_mut().insert(PROVIDER, HeaderValue::from_static(provider));
        }
        Ok(answer)
    }
}

fn path_of<'a>(segments: &[&'a str]) -> Option<(Allowed, Path<'a>)> {
    let open = |path| Some((Allowed::Get, Path::Open(path)));
    let (allowed, path) = match segments {
        [] => return open(OpenPath::Server),
        ["health", "live"] => return open(OpenPath::Live),
        ["health", "ready"] => return open(OpenPath::Ready),
        ["systemsharedmemory" | "cudasharedmemory", rest @ ..] => {
            let changes = matches!(rest.last(), Some(&("register" | "unregister")));
            let allowed = if changes { Allowed::Post } else { Allowed::Get };
            return Some((allowed, Path::Open(OpenPath::Unsupported(NO_SHARED_MEMORY))));
        }
        ["models"] => (Allowed::Get, CallerPath::Models),
        ["models", "stats"] => (Allowed::Get, CallerPath::AllStatistics),
        ["models", name, "versions", version, rest @ ..] => {
            of_model(Model { name, version }, rest)?
        }
        ["models", name, rest @ ..] => of_model(Model { name, version: "" }, rest)?,
        ["repository", "index"] => (Allowed::Post, CallerPath::Index),
        ["repository", "models", name, "load"] => (Allowed::Post, CallerPath::Load(name)),
        ["repository", "models", name, "unload"] => (Allowed::Post, CallerPath::Unload(name)),
        _ => return None,
    };
    Some((allowed, Path::Caller(path)))
}

fn of_model<'a>(model: Model<'a>, rest: &[&'a str]) -> Option<(Allowed, CallerPath<'a>)> {
    Some(match rest {
        [] => (Allowed::Get, CallerPath::Metadata(model)),
        ["ready"] => (Allowed::Get, CallerPath::Ready(model)),
        ["config"] => (Allowed::Get, CallerPath::Config(model)),
        ["stats"] => (Allowed::Get, CallerPath::Statistics(model)),
        ["infer"] => (Allowed::Post, CallerPath::Infer(model)),
        _ => return None,
    })
}

/// A JSON body; none is an empty document.
fn document<T: Default + serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| {
        Problem::new(ErrorCode::InvalidRequest, format!("the body cannot be read: {error}"))
    })
}

/// How much of the body is JSON, where that is not all of it.
fn header_length(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(value) = headers.get(HEADER_LENGTH) else { return Ok(None) };
    let length = value.to_str().ok().and_then(|text| text.parse().ok());
    let wrong = || {
        let detail =
            format!("Inference-Header-Content-Length is {value:?}: must be a number of bytes");
        Problem::new(ErrorCode::InvalidRequest, detail)
    };
    length.map(Some).ok_or_else(wrong)
}

fn raw_request(target: &Target<'_>, body: Bytes) -> Result<InferRequest, Problem> {
    let request = match target {
        Target::Model { served, .. } => {
            let info = served.lane.info();
            InferRequest::raw(&info.inputs, info.rows_are_dynamic(), body)
        }
        Target::Pipeline { .. } => InferRequest::raw(&[models::pipeline_input()], true, body),
    };
    request.map_err(refused)
}

/// The answer, compressed where the client takes that and it is worth it.
fn encoded(request: &Parts, written: Written) -> Result<Answer, Problem> {
    let Written { parts, header_len } = written;
    let len: usize = parts.iter().map(Bytes::len).sum();
    let is_worth_it = len >= COMPRESSED_BYTES_MIN;
    let encoding = is_worth_it.then(|| Encoding::accepted(&request.headers)).flatten();
    let body = match encoding {
        None => ResponseBody::from(parts),
        Some(encoding) => {
            let compressed = aside(len, || encoding.compress(&parts.concat()));
            let failed =
                |error: std::io::Error| Problem::new(ErrorCode::Internal, error.to_string());
            ResponseBody::from(Bytes::from(compressed.map_err(failed)?))
        }
    };
    let mut answer = Response::new(body);
    let headers = answer.headers_mut();
    let content_type = match header_len {
        Some(len) => {
            headers.insert(HEADER_LENGTH, len.into());
            "application/octet-stream"
        }
        None => "application/json",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding.as_str()));
    }
    Ok(answer)
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(ResponseBody::from(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

fn json_answer(document: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut answer = Response::new(ResponseBody::from(Bytes::from(body)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// An error as the protocol has it.
pub(crate) fn error_answer(problem: Problem) -> Answer {
    let status = match status_of(problem.code) {
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut answer = json_answer(&json!({ "error": problem.detail }));
    *answer.status_mut() = status;
    problem.add_headers(status, answer.headers_mut());
    answer
}
