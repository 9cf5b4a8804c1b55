//! The protocol's methods.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{Stream, StreamExt};
use gristmill_core::HeldBytes;
use gristmill_oip::grpc::proto::grpc_inference_service_server::GrpcInferenceService;
use gristmill_oip::grpc::proto::{self, ModelInferRequest, ModelInferResponse, Unsupported};
use gristmill_serve::readiness;
use gristmill_transport::{Problem, Requests};
use tonic::{Code, Request, Response, Status, Streaming};

use super::call::{Admitted, admitted, hold_contents, own_timeout};
use super::status::status_of;
use crate::inference::{Inference, NO_SHARED_MEMORY, models};

/// The most requests of one stream that run at the same time.
const STREAM_REQUESTS: usize = 64;

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
        let ready = readiness(&self.snapshot(), self.is_shutting_down()).is_ok();
        Ok(Response::new(proto::ServerReadyResponse { ready }))
    }

    async fn model_ready(
        &self,
        request: Request<proto::ModelReadyRequest>,
    ) -> Answer<proto::ModelReadyResponse> {
        let message = request.get_ref();
        match self.describe_for(&request, (&message.name, &message.version), |_, _, _| ()) {
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
        let described =
            self.describe_for(&request, (&message.name, &message.version), |_, visible, target| {
                models::metadata(visible, target)
            });
        described.map(Response::new)
    }

    async fn model_infer(&self, request: Request<ModelInferRequest>) -> Answer<ModelInferResponse> {
        let admitted = admitted(&request)?;
        let own = own_timeout(request.metadata());
        let own = own.map(|own| admitted.arrived + own);
        let call = self.call(admitted.clone(), admitted.arrived, own);
        let mut message = request.into_inner();
        let answer = async {
            hold_contents(&mut message, self.admitted(&call.admitted)?.budget())?;
            self.infer_in(&call, message).await
        };
        answer.await.map(Response::new).map_err(|problem: Problem| status_of(&problem))
    }

    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<proto::ModelStreamInferResponse, Status>> + Send>>;

    /// One response for each request, in their order. A request that fails does not end the stream.
    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Answer<Self::ModelStreamInferStream> {
        let admitted = admitted(&request)?.clone();
        let own = own_timeout(request.metadata());
        let held = request.extensions().get::<Arc<HeldBytes>>().cloned();
        let connection = request.extensions().get::<Arc<Requests>>().cloned();
        let caller = self.admitted(&admitted).map_err(|error| status_of(&error.into()))?;
        let budget = caller.budget().cloned();
        let inference = self.clone();
        let shutdown = self.shutdown().clone();
        let ended = Box::pin(async move { shutdown.begun().await });
        let requests = request.into_inner().take_until(ended);
        let answers = requests.map(move |message| {
            // From here on each request counts its own bytes.
            if let Some(held) = &held {
                held.release();
            }
            let answer = message.map(|message| {
                // Each request sees the models of its own time, and its key must still be valid.
                let now = Admitted { snapshot: inference.snapshot(), ..admitted };
                let own = own.map(|own| admitted.arrived + own);
                let call = inference.call(now, Instant::now(), own);
                let ongoing = connection.as_ref().map(Requests::begin);
                inference.clone().stream_answer((call, ongoing), message, budget.as_ref())
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
        let described =
            self.describe_for(&request, (&message.name, &message.version), |_, visible, target| {
                models::config(visible, target)
            });
        Ok(Response::new(proto::ModelConfigResponse { config: Some(described?) }))
    }

    async fn model_statistics(
        &self,
        request: Request<proto::ModelStatisticsRequest>,
    ) -> Answer<proto::ModelStatisticsResponse> {
        let message = request.get_ref();
        if !message.name.is_empty() {
            let model = (&*message.name, &*message.version);
            let described = self.describe_for(&request, model, models::statistics)?;
            return Ok(Response::new(proto::ModelStatisticsResponse {
                model_stats: vec![described],
            }));
        }
        let admitted = admitted(&request)?;
        let caller = self.admitted(admitted).map_err(|error| status_of(&error.into()))?;
        Ok(Response::new(models::all_statistics(caller, &admitted.snapshot)))
    }

    async fn repository_index(
        &self,
        request: Request<proto::RepositoryIndexRequest>,
    ) -> Answer<proto::RepositoryIndexResponse> {
        let admitted = admitted(&request)?;
        let caller = self.admitted(admitted).map_err(|error| status_of(&error.into()))?;
        Ok(Response::new(models::index(caller, &admitted.snapshot, request.get_ref().ready)))
    }

    async fn repository_model_load(
        &self,
        request: Request<proto::RepositoryModelLoadRequest>,
    ) -> Answer<proto::RepositoryModelLoadResponse> {
        let admitted = admitted(&request)?.clone();
        let message = request.into_inner();
        let change = (message.model_name.as_str(), true);
        self.change_model(&admitted, change, &message.parameters).await?;
        Ok(Response::new(proto::RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<proto::RepositoryModelUnloadRequest>,
    ) -> Answer<proto::RepositoryModelUnloadResponse> {
        let admitted = admitted(&request)?.clone();
        let message = request.into_inner();
        let change = (message.model_name.as_str(), false);
        self.change_model(&admitted, change, &message.parameters).await?;
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
