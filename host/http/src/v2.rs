//! The Open Inference Protocol over HTTP: its paths and their answers.

mod infer;
mod path;

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use gristmill_core::ErrorCode;
use gristmill_oip::document;
use gristmill_oip::grpc::proto::{ModelMetadataResponse, ModelStatisticsResponse};
use gristmill_serve::{Caller, NamedModel, readiness};
use gristmill_snapshot::Snapshot;
use gristmill_transport::body::{Answer, ReadPlan};
use gristmill_transport::{Checked, Problem, status_of};
use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::json;
use serde_json::value::RawValue;
use smallvec::SmallVec;

use self::infer::infer;
use self::path::{CallerPath, OpenPath, Path, SEGMENTS_MAX, path_of};
use crate::answers::{empty, json, key_of};
use crate::call::Call;
use crate::inference::config::config;
use crate::inference::{Brought, Inference, RepositoryChange, models};

/// A path of the protocol.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct V2Path<'a> {
    /// The part after `/v2`.
    pub(crate) path: &'a str,
    /// The tenant, if the path names one before `/v2`.
    pub(crate) tenant: Option<&'a str>,
}

/// Answer one request below `/v2`.
pub(crate) async fn answer(
    inference: &Inference,
    at: V2Path<'_>,
    mut call: Call<'_>,
) -> Result<Answer, Problem> {
    let segments = at.path.split('/').filter(|part| !part.is_empty()).take(SEGMENTS_MAX + 1);
    let segments: Segments<Cow<'_, str>> = segments.map(decoded).collect();
    let segments: Segments<&str> = segments.iter().map(|segment| &**segment).collect();
    let Some((allowed, path)) = path_of(&segments) else {
        let detail = format!("nothing is served at \"/v2{}\"", at.path);
        return Err(Problem::new(ErrorCode::NotFound, detail));
    };
    if let Checked::Options = allowed.check(&call.head.method)? {
        return Ok(allowed.options());
    }
    let path = match path {
        Path::Open(path) => return answer_unauthenticated(inference, path, call.snapshot),
        Path::Caller(path) => path,
    };
    let key = key_of(&call.head.headers, inference.gate(), call.snapshot);
    let caller = inference.gate().caller(call.snapshot, key, at.tenant)?;
    call.admitted(caller.tenant().ok())?;
    Asking { inference, call, caller }.answer(path).await
}

/// The segments of a path, and one more if it has too many. Not allocated, because this runs for
/// each request.
type Segments<T> = SmallVec<[T; SEGMENTS_MAX + 1]>;

/// A segment of a path. Most have nothing to decode, and looking for it is quicker than decoding.
fn decoded(segment: &str) -> Cow<'_, str> {
    match memchr::memchr(b'%', segment.as_bytes()) {
        None => Cow::Borrowed(segment),
        Some(_) => percent_decode_str(segment).decode_utf8_lossy(),
    }
}

fn answer_unauthenticated(
    inference: &Inference,
    path: OpenPath,
    snapshot: &Snapshot,
) -> Result<Answer, Problem> {
    Ok(match path {
        OpenPath::Server => json(&models::server()),
        OpenPath::Live => json(&json!({ "live": true })),
        OpenPath::Ready => {
            let ready = readiness(snapshot, inference.is_shutting_down()).is_ok();
            let mut answer = json(&json!({ "ready": ready }));
            if !ready {
                *answer.status_mut() = StatusCode::BAD_REQUEST;
            }
            answer
        }
        OpenPath::Unsupported(why) => return Err(Problem::new(ErrorCode::Unsupported, why)),
    })
}

/// A request whose caller is known.
struct Asking<'a> {
    inference: &'a Inference,
    call: Call<'a>,
    caller: Caller<'a>,
}

impl Asking<'_> {
    async fn answer(self, path: CallerPath<'_>) -> Result<Answer, Problem> {
        let (snapshot, caller) = (self.call.snapshot, self.caller);
        let find = |model: NamedModel<'_>| caller.find(snapshot, model);
        Ok(match path {
            CallerPath::Models => {
                let visible = caller.models(snapshot).into_iter();
                let names: Vec<_> = visible.map(|model| model.name()).collect();
                json(&json!({ "models": names }))
            }
            CallerPath::AllStatistics => {
                // A model of this name has the same path. Each client reads the members it knows.
                #[derive(serde::Serialize)]
                struct StatisticsAndModel {
                    #[serde(flatten)]
                    statistics: ModelStatisticsResponse,
                    #[serde(flatten)]
                    model: Option<ModelMetadataResponse>,
                }
                let model = find(NamedModel { name: "stats", version: "" }).ok();
                let target = model.and_then(|model| Some((model, model.served().ok()?)));
                let model = target.map(|(model, target)| models::metadata(model, &target));
                let statistics = models::all_statistics(caller, snapshot);
                json(&StatisticsAndModel { statistics, model })
            }
            CallerPath::Metadata(model) => {
                let visible = find(model)?;
                json(&models::metadata(visible, &visible.served()?))
            }
            CallerPath::Ready(model) => match find(model).and_then(|visible| visible.served()) {
                Ok(_) => empty(StatusCode::OK),
                Err(error) => {
                    let mut answer = error_answer(error.into());
                    *answer.status_mut() = StatusCode::BAD_REQUEST;
                    answer
                }
            },
            CallerPath::Config(model) => {
                let visible = find(model)?;
                json(&config(visible, &visible.served()?))
            }
            CallerPath::Statistics(model) => {
                let visible = find(model)?;
                let statistics = models::statistics(caller, visible, &visible.served()?);
                json(&json!({ "model_stats": [statistics] }))
            }
            CallerPath::Index => {
                #[derive(Default, serde::Deserialize)]
                #[serde(expecting = "an object")]
                struct IndexBody {
                    #[serde(default)]
                    ready: bool,
                }
                let IndexBody { ready } = document(&self.read().await?)?;
                json(&models::index(caller, snapshot, ready).models)
            }
            CallerPath::Change(change) => Box::pin(self.change(change)).await?,
            CallerPath::Infer(model) => infer(self.inference, caller, model, self.call).await?,
        })
    }

    async fn change(self, change: RepositoryChange<'_>) -> Result<Answer, Problem> {
        self.caller.operates()?;
        #[derive(Default, serde::Deserialize)]
        #[serde(expecting = "an object")]
        struct LoadBody<'a> {
            #[serde(borrow, default)]
            parameters: BTreeMap<String, &'a RawValue>,
        }
        let (inference, caller) = (self.inference, self.caller);
        let body = self.read().await?;
        // Its files may be large.
        let read = move || {
            let LoadBody { parameters } = document(&body)?;
            Brought::of_json(parameters)
        };
        let brought = inference.offload().run(caller.name(), read).await??;
        inference.change_model(caller, change, brought).await?;
        Ok(json(&json!({})))
    }

    /// The whole body of a request that is not an inference.
    async fn read(mut self) -> Result<Bytes, Problem> {
        let (inference, caller) = (self.inference, self.caller);
        let plan = ReadPlan {
            bytes: inference.message_bytes_max(),
            deadline: inference.deadline(self.call.context.receipt.record().arrived),
            budget: caller.budget(),
            aligned_at: 0,
            pool: inference.pool(),
        };
        self.call.read(inference, plan, caller.name()).await
    }
}

/// An error as the protocol writes it. The protocol uses status 400 in place of 422, and 503 for a
/// full queue.
pub(crate) fn error_answer(mut problem: Problem) -> Answer {
    let status = match status_of(problem.code) {
        _ if problem.code == ErrorCode::QueueFull => StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
        status => status,
    };
    let mut document = std::mem::take(&mut problem.members);
    document.insert("error".into(), std::mem::take(&mut problem.detail).into());
    let mut answer = json(&document);
    *answer.status_mut() = status;
    problem.add_headers(status, answer.headers_mut());
    answer
}
