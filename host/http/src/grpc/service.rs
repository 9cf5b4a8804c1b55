//! The methods of the protocol's service.

use std::pin::Pin;

use futures_util::stream::{Stream, StreamExt};
use gristmill_oip::grpc::proto::grpc_inference_service_server::GrpcInferenceService;
use gristmill_oip::grpc::proto::{self, ModelInferRequest, ModelInferResponse, Unsupported};
use gristmill_serve::{NamedModel, readiness};
use gristmill_transport::Problem;
use tonic::{Code, Request, Response, Status, Streaming};

use super::call::{admitted, client_deadline, describe, hold_contents, take_admitted};
use super::status::status_of;
use super::stream::Requester;
use crate::inference::config::config;
use crate::inference::{Inference, NO_SHARED_MEMORY, RepositoryChange, models};

/// The most requests of one stream that run at the same time.
const STREAM_REQUESTS: usize = 64;

fn no_regions() -> Status {
    Status::unimplemented(NO_SHARED_MEMORY)
}

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl GrpcInferenceService for Inference {
    async fn server_live(
        &self,
        _: Request<proto::ServerLiveRequest>,
    ) -> RpcResult<proto::ServerLiveResponse> {
        Ok(Response::new(proto::ServerLiveResponse { live: true }))
    }

    async fn server_ready(
        &self,
        _: Request<proto::ServerReadyRequest>,
    ) -> RpcResult<proto::ServerReadyResponse> {
        let ready = readiness(&self.snapshot(), self.is_shutting_down()).is_ok();
        Ok(Response::new(proto::ServerReadyResponse { ready }))
    }

    async fn model_ready(
        &self,
        request: Request<proto::ModelReadyRequest>,
    ) -> RpcResult<proto::ModelReadyResponse> {
        let proto::ModelReadyRequest { name, version } = request.get_ref();
        match describe(&request, NamedModel { name, version }, |_, _, _| ()) {
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
    ) -> RpcResult<proto::ServerMetadataResponse> {
        Ok(Response::new(models::server()))
    }

    async fn model_metadata(
        &self,
        request: Request<proto::ModelMetadataRequest>,
    ) -> RpcResult<proto::ModelMetadataResponse> {
        let proto::ModelMetadataRequest { name, version } = request.get_ref();
        let described = describe(&request, NamedModel { name, version }, |_, visible, target| {
            models::metadata(visible, target)
        });
        described.map(Response::new)
    }

    async fn model_infer(
        &self,
        request: Request<ModelInferRequest>,
    ) -> RpcResult<ModelInferResponse> {
        let (metadata, mut extensions, mut message) = request.into_parts();
        let admitted = take_admitted(&mut extensions)?;
        let own_deadline = client_deadline(&metadata, admitted.arrived);
        // No budget counts them.
        drop((metadata, extensions));
        let request = self.request(admitted, own_deadline);
        let answer = async {
            hold_contents(&mut message, request.admitted.caller().budget())?;
            self.infer_in(&request, message).await
        };
        answer.await.map(Response::new).map_err(|problem: Problem| status_of(&problem))
    }

    type ModelStreamInferStream =
        Pin<Box<dyn Stream<Item = Result<proto::ModelStreamInferResponse, Status>> + Send>>;

    /// Answer each request with one response, in the requests' order. A request that fails does not
    /// end the stream.
    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> RpcResult<Self::ModelStreamInferStream> {
        let requester = Requester::of(self.clone(), &request)?;
        let shutdown = self.shutdown().clone();
        let ended = Box::pin(async move { shutdown.begun().await });
        let requests = request.into_inner().take_until(ended);
        let answers = requests.map(move |message| {
            let answer = message.map(|message| requester.answer(message));
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
    ) -> RpcResult<proto::ModelConfigResponse> {
        let proto::ModelConfigRequest { name, version } = request.get_ref();
        let described = describe(&request, NamedModel { name, version }, |_, visible, target| {
            config(visible, target)
        });
        Ok(Response::new(proto::ModelConfigResponse { config: Some(described?) }))
    }

    async fn model_statistics(
        &self,
        request: Request<proto::ModelStatisticsRequest>,
    ) -> RpcResult<proto::ModelStatisticsResponse> {
        let proto::ModelStatisticsRequest { name, version } = request.get_ref();
        if !name.is_empty() {
            let model = NamedModel { name, version };
            let described = describe(&request, model, models::statistics)?;
            return Ok(Response::new(proto::ModelStatisticsResponse {
                model_stats: vec![described],
            }));
        }
        let admitted = admitted(&request)?;
        Ok(Response::new(models::all_statistics(admitted.caller(), &admitted.snapshot)))
    }

    async fn repository_index(
        &self,
        request: Request<proto::RepositoryIndexRequest>,
    ) -> RpcResult<proto::RepositoryIndexResponse> {
        let admitted = admitted(&request)?;
        let ready_only = request.get_ref().ready;
        Ok(Response::new(models::index(admitted.caller(), &admitted.snapshot, ready_only)))
    }

    async fn repository_model_load(
        &self,
        request: Request<proto::RepositoryModelLoadRequest>,
    ) -> RpcResult<proto::RepositoryModelLoadResponse> {
        let (caller, message) = (admitted(&request)?.caller(), request.get_ref());
        let change = RepositoryChange::Load(&message.model_name);
        self.change_repository(caller, change, &message.parameters).await?;
        Ok(Response::new(proto::RepositoryModelLoadResponse {}))
    }

    async fn repository_model_unload(
        &self,
        request: Request<proto::RepositoryModelUnloadRequest>,
    ) -> RpcResult<proto::RepositoryModelUnloadResponse> {
        let (caller, message) = (admitted(&request)?.caller(), request.get_ref());
        let change = RepositoryChange::Unload(&message.model_name);
        self.change_repository(caller, change, &message.parameters).await?;
        Ok(Response::new(proto::RepositoryModelUnloadResponse {}))
    }

    async fn system_shared_memory_status(&self, _: Request<Unsupported>) -> RpcResult<Unsupported> {
        Err(no_regions())
    }

    async fn system_shared_memory_register(
        &self,
        _: Request<Unsupported>,
    ) -> RpcResult<Unsupported> {
        Err(no_regions())
    }

    async fn system_shared_memory_unregister(
        &self,
        _: Request<Unsupported>,
    ) -> RpcResult<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_status(&self, _: Request<Unsupported>) -> RpcResult<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_register(&self, _: Request<Unsupported>) -> RpcResult<Unsupported> {
        Err(no_regions())
    }

    async fn cuda_shared_memory_unregister(
        &self,
        _: Request<Unsupported>,
    ) -> RpcResult<Unsupported> {
        Err(no_regions())
    }
}
