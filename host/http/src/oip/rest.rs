//! The protocol over HTTP: paths, bodies and their encodings, answers.

mod path;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use gristmill_core::{ByteBudget, Dtype, ErrorCode, HeldBytes, Name};
use gristmill_oip::{InferRequest, InferResponse, Input, Output, Room, Written};
use gristmill_snapshot::Snapshot;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use self::path::{CallerPath, Model, OpenPath, Path, path_of};
use super::access::{Caller, Target};
use super::inference::{Answered, Asked, refused};
use super::{Inference, models};
use crate::body::{self, Answer, RequestBody, ResponseBody};
use crate::credentials;
use crate::data::PROVIDER;
use crate::encoding::Encoding;
use crate::method::{Allowed, Refusal};
use crate::offload::INLINE_BYTES_MAX;
use crate::percent;
use crate::problem::{Problem, status_of};
use crate::readiness::readiness;

const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// Responses shorter than this are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 1 << 10;

/// What is longer than this, compressed, is not inflated while a thread's other tasks wait.
const INFLATED_INLINE_BYTES_MAX: usize = 4 << 10;

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
        if let Some(answer) = Allowed::by(&allowed).check(&head.method)? {
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
        self.decoded(&head.headers, (caller.name(), budget), (body, bytes)).await
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
        let budget = &asked.caller.tenant()?.1.quota.bytes;
        let target = self.target(snapshot, asked)?;
        let header_len = header_length(&head.headers)?;
        let (bytes, aligned_at) = (self.bytes_max(&target), header_len.unwrap_or_default());
        let (deadline, pool) = (asked.deadline, self.pool());
        let limits = body::Limits { bytes, deadline, budget: Some(budget), aligned_at, pool };
        let body = body::read(body, limits).await?;
        let body =
            self.decoded(&head.headers, (asked.caller.name(), Some(budget)), (body, bytes)).await?;
        let mut request = match header_len {
            Some(0) => {
                let mut request = raw_request(&target, body)?;
                // A text is a copy, with its length before it.
                let texts = |input: &&mut Input| input.datatype == Dtype::String;
                for input in request.inputs.iter_mut().filter(texts) {
                    input.data = body::try_held(std::mem::take(&mut input.data), budget)?;
                }
                request
            }
            header_len => self.parsed(asked.caller, body, header_len).await?,
        };
        let Answered { version, outputs, provider } =
            self.run(asked, &target, &mut request).await?;
        let done = Done { version, outputs, request };
        let written = self.written(asked, done).await?;
        let mut answer = self.encoded(head, asked.caller, written).await?;
        if let Some(provider) = provider {
            answer.headers_mut().insert(PROVIDER, HeaderValue::from_static(provider));
        }
        Ok(answer)
    }

    /// The request that is in `body`, whose first `header_len` bytes are JSON, or all.
    async fn parsed(
        &self,
        caller: Caller<'_>,
        body: Bytes,
        header_len: Option<usize>,
    ) -> Result<InferRequest, Problem> {
        let most = self.parts.config.message_bytes_max;
        let parsed = if header_len.unwrap_or(body.len()) <= INLINE_BYTES_MAX {
            InferRequest::parse(&body, header_len, &Room::new(caller.budget(), most))
        } else {
            let budget = caller.budget().cloned();
            let parse = move || {
                let room = Room::new(budget.as_ref(), most);
                InferRequest::parse(&body, header_len, &room)
            };
            self.parts.offload.run(caller.name(), parse).await?
        };
        parsed.map_err(refused)
    }

    /// The answer's body. What much JSON takes counts while it is written; from then on the body does, by itself.
    async fn written(&self, asked: &Asked<'_>, done: Done) -> Result<Counted, Problem> {
        let held = asked.caller.budget().map(|budget| budget.hold(0));
        let Done { version, outputs, request } = done;
        let id = request.id.as_deref();
        let response =
            InferResponse { model_name: asked.model, model_version: version, id, outputs };
        if response.json_bytes(&request) <= INLINE_BYTES_MAX {
            let written = response.write(&request, held.as_ref()).map_err(refused)?;
            return Ok(Counted { written, held });
        }
        let (model, outputs) = (asked.model.to_owned(), response.outputs);
        let write = move || {
            let id = request.id.as_deref();
            let response =
                InferResponse { model_name: &model, model_version: version, id, outputs };
            let written = response.write(&request, held.as_ref())?;
            Ok(Counted { written, held })
        };
        self.parts.offload.run(asked.caller.name(), write).await?.map_err(refused)
    }

    /// The body without its encoding, at most `limit` bytes of it.
    pub(crate) async fn decoded(
        &self,
        headers: &HeaderMap,
        (tenant, budget): (Option<&Name>, Option<&Arc<ByteBudget>>),
        (body, limit): (Bytes, usize),
    ) -> Result<Bytes, Problem> {
        let mut given = headers.get_all(CONTENT_ENCODING).iter();
        let Some(first) = given.next() else { return Ok(body) };
        let encoding = match (given.next(), Encoding::of(first.as_bytes())) {
            (None, Some(encoding)) => encoding,
            (None, None) if first.as_bytes().eq_ignore_ascii_case(b"identity") => return Ok(body),
            _ => {
                let given = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
                let given = given.collect::<Vec<_>>().join(&b", "[..]);
                let given = String::from_utf8_lossy(&given);
                let detail =
                    format!("content-encoding is {given:?}: gzip and deflate are understood");
                return Err(Problem::new(ErrorCode::UnsupportedMediaType, detail));
            }
        };
        if body.len() <= INFLATED_INLINE_BYTES_MAX {
            return encoding.decompress(&body, limit, budget);
        }
        let budget = budget.cloned();
        let decompress = move || encoding.decompress(&body, limit, budget.as_ref());
        self.parts.offload.run(tenant, decompress).await?
    }

    /// The answer, compressed where the client takes that and it is worth it.
    async fn encoded(
        &self,
        request: &Parts,
        caller: Caller<'_>,
        counted: Counted,
    ) -> Result<Answer, Problem> {
        let Counted { written: Written { parts, header_len }, held } = counted;
        let len: usize = parts.iter().map(Bytes::len).sum();
        let is_worth_it = len >= COMPRESSED_BYTES_MIN;
        let encoding = is_worth_it.then(|| Encoding::accepted(&request.headers)).flatten();
        let body = match encoding {
            None => ResponseBody::from(parts),
            Some(encoding) => {
                let compressed = if len <= INLINE_BYTES_MAX {
                    encoding.compress(parts)
                } else {
                    let compress = move || encoding.compress(parts);
                    self.parts.offload.run(caller.name(), compress).await?
                };
                let failed =
                    |error: std::io::Error| Problem::new(ErrorCode::Internal, error.to_string());
                ResponseBody::from(Bytes::from(compressed.map_err(failed)?))
            }
        };
        let mut answer = Response::new(match caller.budget() {
            Some(budget) => body.held(budget),
            None => body,
        });
        drop(held);
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
}

/// What came of a request, to be written.
struct Done {
    version: u64,
    outputs: Vec<Output>,
    request: InferRequest,
}

/// What was written, and the JSON of it that counts already.
struct Counted {
    written: Written,
    held: Option<HeldBytes>,
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
