//! The protocol over gRPC: `inference.GRPCInferenceService` and `grpc.health.v1.Health`.

mod messages;
mod metered;
mod stream;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{Stream, StreamExt};
use gristmill_core::{ByteBudget, Deadline, ErrorCode, HeldBytes};
use gristmill_oip::InferRequest;
use gristmill_snapshot::Snapshot;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use tonic::codec::CompressionEncoding;
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower_service::Service;

use self::messages::{Counted, number, output_of, requested_output, tensors};
pub(crate) use self::metered::MeteredAnswer;
use self::metered::metered;
use super::access::{Caller, Target, Visible};
use super::inference::{Answered, Asked};
use super::proto::grpc_inference_service_server::{
    GrpcInferenceService, GrpcInferenceServiceServer,
};
use super::proto::{
    self, ModelInferRequest, ModelInferResponse, ModelRepositoryParameter, Unsupported,
};
use super::{Inference, NO_SHARED_MEMORY, models};
use crate::body::RequestBody;
use crate::credentials;
use crate::problem::Problem;
use crate::readiness::readiness;

/// The longest message of a call that needs no credentials: they say next to nothing.
const OPEN_BYTES_MAX: usize = 64 << 10;

/// How many requests of one stream run at the same time.
const STREAM_REQUESTS: usize = 64;

/// The longest text of an error: clients refuse trailers of more than a few KiB.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// The service's name, as health checks ask for it.
const SERVICE: &str = "inference.GRPCInferenceService";

/// The gRPC plane's handler; clones share everything.
#[derive(Clone)]
pub struct GrpcPlane {
    served: Inference,
    inference: GrpcInferenceServiceServer<Inference>,
    /// The same, for calls that need no credentials.
    open: GrpcInferenceServiceServer<Inference>,
    health: HealthServer<HealthService>,
    reporter: HealthReporter,
}

/// The gRPC plane.
pub async fn grpc_plane(inference: Inference) -> GrpcPlane {
    let reporter = HealthReporter::new();
    let health = HealthServer::new(HealthService::from_health_reporter(reporter.clone()));
    reporter.set_service_status(SERVICE, tonic_health::ServingStatus::Serving).await;
    let bytes_max = inference.parts.config.message_bytes_max;
    let service = GrpcInferenceServiceServer::new(inference.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Deflate)
        .max_encoding_message_size(usize::MAX);
    GrpcPlane {
        served: inference,
        inference: service.clone().max_decoding_message_size(bytes_max),
        open: service.max_decoding_message_size(OPEN_BYTES_MAX),
        health: health.max_decoding_message_size(OPEN_BYTES_MAX),
        reporter,
    }
}

impl GrpcPlane {
    /// Answer one call.
    pub async fn handle(
        mut self,
        call: http::Request<RequestBody>,
    ) -> http::Response<MeteredAnswer> {
        let path = call.uri().path();
        let is_health = path.starts_with("/grpc.health.v1.Health/");
        let opens = ["/ServerLive", "/ServerReady", "/ServerMetadata"];
        let is_open = is_health || opens.iter().any(|method| path.ends_with(method));
        let streams = path.ends_with("/ModelStreamInfer");
        let budget = match self.admit(is_open, call.headers()) {
            Ok(budget) => budget,
            Err(problem) => {
                let refused = status_of(&problem).into_http();
                return refused.map(|body| MeteredAnswer::new(body, None));
            }
        };
        let call = metered(call, budget.as_ref(), streams);
        let answering = match (is_health, is_open) {
            (true, _) => self.health.call(call),
            (_, true) => self.open.call(call),
            _ => self.inference.call(call),
        };
        let answer = if streams {
            answering.await
        } else {
            // Its message is read within it, too.
            let timeout = self.served.parts.config.timeout;
            tokio::time::timeout(timeout, answering).await.unwrap_or_else(|_| {
                Ok(Status::deadline_exceeded("the call took too long").into_http())
            })
        };
        let Ok(answer) = answer;
        answer.map(|body| MeteredAnswer::new(body, budget))
    }

    /// Whether the call's message may be read: not before its credentials are known to be good. If
    /// so, what its bytes count against.
    fn admit(
        &self,
        is_open: bool,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<ByteBudget>>, Problem> {
        if is_open {
            return Ok(Some(ByteBudget::new(OPEN_BYTES_MAX)));
        }
        let snapshot = self.served.snapshot();
        let caller = self.served.caller(&snapshot, credentials::bearer(headers), None)?;
        Ok(caller.budget().cloned())
    }

    /// Tell health checks that the server is about to end.
    pub async fn announce_shutdown(&mut self) {
        let ended = tonic_health::ServingStatus::NotServing;
        for service in [SERVICE, ""] {
            self.reporter.set_service_status(service, ended).await;
        }
    }

    /// Tell those who watch the health that they heard the last of it.
    pub async fn shut_down(&mut self) {
        for service in [SERVICE, ""] {
            self.reporter.clear_service_status(service).await;
        }
    }
}

/// A call's credentials and times.
struct Call {
    token: Option<String>,
    arrived: Instant,
    deadline: Deadline,
}

impl Inference {
    /// A message of a call that began at `began`, from when on the client's own timeout counts.
    fn call(&self, metadata: &MetadataMap, began: Instant) -> Call {
        let arrived = Instant::now();
        let mut deadline = self.deadline(arrived);
        if let Some(timeout) =
            metadata.get("grpc-timeout").and_then(|text| timeout(text.to_str().ok()?))
        {
            let own = began.checked_add(timeout).map(Deadline::at);
            deadline = own.filter(|own| own.instant() < deadline.instant()).unwrap_or(deadline);
        }
        Call { token: token(metadata), arrived, deadline }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.parts.control.cell().load()
    }

    async fn infer_in(
        &self,
        snapshot: &Snapshot,
        caller: Caller<'_>,
        call: &Call,
        message: Counted,
    ) -> Result<ModelInferResponse, Problem> {
        let Counted { message, _typed } = message;
        let ModelInferRequest {
            model_name,
            model_version,
            id,
            parameters,
            inputs,
            outputs,
            raw_input_contents,
        } = message;
        let asked = Asked {
            caller,
            model: &model_name,
            version: &model_version,
            id: &id,
            arrived: call.arrived,
            deadline: call.deadline,
        };
        let target = self.target(snapshot, &asked)?;
        let outputs = outputs.into_iter().map(requested_output);
        let request = InferRequest {
            id: None,
            inputs: tensors(inputs, raw_input_contents)?,
            outputs: outputs.collect::<Result<_, _>>()?,
            binary_output: true,
            priority: number(&parameters, "priority")?
                .unwrap_or_default()
                .try_into()
                .unwrap_or(u32::MAX),
            timeout: number(&parameters, "timeout")?
                .filter(|us| *us > 0)
                .map(Duration::from_micros),
        };
        let Answered { version, outputs, .. } = self.run(&asked, &target, &request).await?;
        let (outputs, raw_output_contents) = outputs.into_iter().map(output_of).unzip();
        Ok(ModelInferResponse {
            model_name,
            model_version: version.to_string(),
            id,
            parameters: HashMap::new(),
            outputs,
            raw_output_contents,
        })
    }

    /// What `tell` says of a model that the caller may see.
    fn tell<T>(
        &self,
        metadata: &MetadataMap,
        name: &str,
        version: &str,
        tell: impl FnOnce(Caller<'_>, Visible<'_>, &Target<'_>) -> T,
    ) -> Result<T, Status> {
        let snapshot = self.snapshot();
        let caller = self.caller(&snapshot, token(metadata).as_deref(), None);
        let told = caller.and_then(|caller| {
            let visible = caller.find(&snapshot, name, version)?;
            Ok(tell(caller, visible, &visible.served()?))
        });
        told.map_err(|problem| status_of(&problem))
    }

    async fn change_model(
        &self,
        metadata: &MetadataMap,
        (model, load): (&str, bool),
        parameters: &HashMap<String, ModelRepositoryParameter>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot();
        let token = token(metadata);
        let change = async {
            let caller = self.caller(&snapshot, token.as_deref(), None)?;
            self.set_loaded(caller, model, load, parameters.keys().map(String::as_str)).await
        };
        change.await.map_err(|problem| status_of(&problem))
    }
}

fn token(metadata: &MetadataMap) -> Option<String> {
    let value = metadata.get(AUTHORIZATION.as_str())?.to_str().unwrap_or_default();
    Some(credentials::bearer_in(value).to_owned())
}

/// gRPC's own notation: up to 8 digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let value: u64 = digits.parse().ok().filter(|_| digits.len() <= 8)?;
    Some(match unit {
        "H" => Duration::from_secs(value * 3600),
        "M" => Duration::from_secs(value * 60),
        "S" => Duration::from_secs(value),
        "m" => Duration::from_millis(value),
        "u" => Duration::from_micros(value),
        "n" => Duration::from_nanos(value),
        _ => return None,
    })
}

/// The one mapping from problems to gRPC's codes.
fn status_of(problem: &Problem) -> Status {
    let code = match problem.code {
        ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::Unprocessable
        | ErrorCode::InvalidPlugin
        | ErrorCode::InvalidModel => Code::InvalidArgument,
        ErrorCode::Unauthenticated => Code::Unauthenticated,
        ErrorCode::Forbidden => Code::PermissionDenied,
        ErrorCode::NotFound | ErrorCode::TenantNotFound | ErrorCode::PipelineNotFound => {
            Code::NotFound
        }
        ErrorCode::Unsupported | ErrorCode::MethodNotAllowed => Code::Unimplemented,
        ErrorCode::RequestTimeout | ErrorCode::PluginTimeout | ErrorCode::DeadlineExceeded => {
            Code::DeadlineExceeded
        }
        ErrorCode::Conflict => Code::Aborted,
        ErrorCode::BodyTooLarge | ErrorCode::QueueFull | ErrorCode::TenantBusy => {
            Code::ResourceExhausted
        }
        ErrorCode::Overloaded | ErrorCode::Unavailable => Code::Unavailable,
        ErrorCode::PluginFailed
        | ErrorCode::PluginTrapped
        | ErrorCode::PluginOutOfMemory
        | ErrorCode::PluginInvalidOutput
        | ErrorCode::ModelFailed
        | ErrorCode::InsufficientStorage
        | ErrorCode::Internal => Code::Internal,
    };
    if code == Code::Internal {
        tracing::warn!(detail = problem.detail, "call failed");
    }
    let detail = &problem.detail;
    Status::new(code, &detail[..detail.floor_char_boundary(MESSAGE_BYTES_MAX)])
}

fn no_regions() -> Status {
    Status::unimplemented(NO_SHARED_MEMORY)
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl GrpcInferenceService for Inference {
    async fn server_live(
        &self,
        _: Request<proto::ServerLiveRequest>,
    ) -> Answer<proto::ServerLiveResponse> {
        Ok(Response::new(proto::ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<proto::ServerReadyRequest>,
    ) -> Answer<proto::ServerReadyResponse> {
        let ready = readiness(&self.snapshot(), &self.parts.shutdown).is_ok();
        Ok(Response::new(proto::ServerReadyResponse { ready }))
    }

    async fn model_ready(
        &self,
        request: Request<proto::ModelReadyRequest>,
    ) -> Answer<proto::ModelReadyResponse> {
        let message = request.get_ref();
        match self.tell(request.metadata(), &message.name, &message.version, |_, _, _| ()) {
            Ok(()) => Ok(Response::new(proto::ModelReadyResponse { ready: true })),
            Err(status) if matches!(status.code(), Code::NotFound | Code::Unavailable) => {
                Ok(Response::new(proto::ModelReadyResponse { ready: false }))
            }
            Err(status) => Err(status),
        }
    }

    async fn server_metadata(
        &self,
        _: Request<proto::ServerMetadataRequest>,
    ) -> Answer<proto::ServerMetadataResponse> {
        Ok(Response::new(models::server()))
    }

    async fn model_metadata(
        &self,
        request: Request<proto::ModelMetadataRequest>,
    ) -> Answer<proto::ModelMetadataResponse> {
        let message = request.get_ref();
        let told =
            self.tell(request.metadata(), &message.name, &message.version, |_, visible, target| {
                models::metadata(visible, target)
            });
        told.map(Response::new)
    }

    async fn model_infer(&self, request: Request<ModelInferRequest>) -> Answer<ModelInferResponse> {
        let call = self.call(request.metadata(), Instant::now());
        let snapshot = self.snapshot();
        let answer = async {
            let caller = self.caller(&snapshot, call.token.as_deref(), None)?;
            let message = Counted::new(request.into_inner(), caller.budget())?;
            self.infer_in(&snapshot, caller, &call, message).await
        };
        answer.await.map(Response::new).map_err(|problem| status_of(&problem))
    }

    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<proto::ModelStreamInferResponse, Status>> + Send>>;

    /// One response for each request, in their order; a request that fails ends nothing.
    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Answer<Self::ModelStreamInferStream> {
        let (metadata, began) = (request.metadata().clone(), Instant::now());
        let held = request.extensions().get::<Arc<HeldBytes>>().cloned();
        let snapshot = self.snapshot();
        let caller = self.caller(&snapshot, token(&metadata).as_deref(), None);
        let caller = caller.map_err(|problem| status_of(&problem))?;
        let budget = caller.budget().cloned();
        let inference = self.clone();
        let shutdown = self.parts.shutdown.clone();
        let ended = Box::pin(async move { shutdown.begun().await });
        let requests = request.into_inner().take_until(ended);
        let answers = requests.map(move |message| {
            // From here on each request counts its own.
            if let Some(held) = &held {
                held.release();
            }
            let answer = message.map(|message| {
                let (inference, call) = (inference.clone(), inference.call(&metadata, began));
                inference.stream_answer(call, message, budget.as_ref())
            });
            async {
                match answer {
                    Ok(answer) => answer.await,
                    Err(status) => Err(status),
                }
            }
        });
        Ok(Response::new(Box::pin(answers.buffered(STREAM_REQUESTS))))
    }

    async fn model_config(
        &self,
        request: Request<proto::ModelConfigRequest>,
    ) -> Answer<proto::ModelConfigResponse> {
        let message = request.get_ref();
        let told =
            self.tell(request.metadata(), &message.name, &message.version, |_, visible, target| {
                models::config(visible, target)
            });
        Ok(Response::new(proto::ModelConfigResponse { config: Some(told?) }))
    }

    async fn model_statistics(
        &self,
        request: Request<proto::ModelStatisticsRequest>,
    ) -> Answer<proto::ModelStatisticsResponse> {
        let message = request.get_ref();
        if !message.name.is_empty() {
            let (name, version) = (&message.name, &message.version);
            let told = self.tell(request.metadata(), name, version, models::statistics)?;
            return Ok(Response::new(proto::ModelStatisticsResponse { model_stats: vec![told] }));
        }
        let snapshot = self.snapshot();
        let caller = self.caller(&snapshot, token(request.metadata()).as_deref(), None);
        let caller = caller.map_err(|problem| status_of(&problem))?;
        Ok(Response::new(models::all_statistics(caller, &snapshot)))
    }

    async fn repository_index(
        &self,
        request: Request<proto::RepositoryIndexRequest>,
    ) -> Answer<proto::RepositoryIndexResponse> {
        let snapshot = self.snapshot();
        let caller = self.caller(&snapshot, token(request.metadata()).as_deref(), None);
        let caller = caller.map_err(|problem| status_of(&problem))?;
        Ok(Response::new(models::index(caller, &snapshot, request.get_ref().ready)))
    }

    async fn repository_model_load(
        &self,
        request: Request<proto::RepositoryModelLoadRequest>,
    ) -> Answer<proto::RepositoryModelLoadResponse> {
        let message = request.get_ref();
        let change = (message.model_name.as_str(), true);
        self.change_model(request.metadata(), change, &message.parameters).await?;
        Ok(Response::new(proto::RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<proto::RepositoryModelUnloadRequest>,
    ) -> Answer<proto::RepositoryModelUnloadResponse> {
        let message = request.get_ref();
        let change = (message.model_name.as_str(), false);
        self.change_model(request.metadata(), change, &message.parameters).await?;
        Ok(Response::new(proto::RepositoryModelUnloadResponse {}))
    }

    async fn system_shared_memory_status(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(no_regions())
    }

    async fn system_shared_memory_register(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(no_regions())
    }

    async fn system_shared_memory_unregister(
        &self,
        _: Request<Unsupported>,
    ) -> Answer<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_status(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_register(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_unregister(&self, _: Request<Unsupported>) -> Answer<Unsupported> {
        Err(no_regions())
    }
}
