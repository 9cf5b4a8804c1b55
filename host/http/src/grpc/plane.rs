//! Taking a call up to its method.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gristmill_core::{ByteBudget, Name};
use gristmill_oip::grpc::proto::grpc_inference_service_server::GrpcInferenceServiceServer;
use gristmill_transport::{Problem, StaysOpen};
use hyper::body::Incoming;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower_service::Service;

use super::call::Admitted;
use super::inflated::{InflatedCall, encoding_of};
use super::metered::{MeteredAnswer, metered};
use super::status::status_of;
use crate::answers::key_of;
use crate::inference::Inference;

/// The longest message of a call that needs no credentials: such messages are almost empty.
const OPEN_BYTES_MAX: usize = 64 << 10;

/// The service's name, as health checks ask for it.
const SERVICE: &str = "inference.GRPCInferenceService";

/// The kind of a call, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// Health: needs no credentials. The answer to `Watch` ends only when its client leaves.
    Health { watches: bool },
    /// Describes the server: needs no credentials.
    Open,
    /// A stream of inferences.
    Stream,
    /// Needs a caller. This includes paths that the service does not know; the service answers
    /// them.
    Other,
}

impl Method {
    fn of(path: &str) -> Self {
        match path {
            "/grpc.health.v1.Health/Watch" => Self::Health { watches: true },
            "/inference.GRPCInferenceService/ServerLive"
            | "/inference.GRPCInferenceService/ServerReady"
            | "/inference.GRPCInferenceService/ServerMetadata" => Self::Open,
            "/inference.GRPCInferenceService/ModelStreamInfer" => Self::Stream,
            path if path.starts_with("/grpc.health.v1.Health/") => Self::Health { watches: false },
            _ => Self::Other,
        }
    }

    fn needs_caller(self) -> bool {
        matches!(self, Self::Stream | Self::Other)
    }
}

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
    let bytes_max = inference.message_bytes_max();
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
        mut call: http::Request<Incoming>,
    ) -> http::Response<MeteredAnswer> {
        let arrived = Instant::now();
        let method = Method::of(call.uri().path());
        let streams = method == Method::Stream;
        let admitted = match method.needs_caller() {
            true => self.admit(&mut call, arrived),
            false => Ok((None, Some(ByteBudget::new(OPEN_BYTES_MAX)))),
        };
        let (tenant, budget) = match admitted {
            Ok(admitted) => admitted,
            Err(problem) => {
                let refused = status_of(&problem).into_http();
                return refused.map(|body| MeteredAnswer::new(body, None));
            }
        };
        let timeout = self.served.timeout();
        // Messages of calls that need no credentials are short.
        let encoding = method.needs_caller().then(|| encoding_of(call.headers_mut())).flatten();
        let call = metered(call, budget.as_ref(), streams.then_some(timeout));
        let call = call.map(|body| match encoding {
            None => InflatedCall::plain(body),
            Some(encoding) => {
                InflatedCall::new(body, encoding, &self.served, (tenant, budget.clone()))
            }
        });
        let answering = match method {
            Method::Health { .. } => self.health.call(call),
            Method::Open => self.open.call(call),
            Method::Stream | Method::Other => self.inference.call(call),
        };
        let answer = if streams {
            answering.await
        } else {
            // The time for reading its message is included.
            tokio::time::timeout_at((arrived + timeout).into(), answering).await.unwrap_or_else(
                |_| Ok(Status::deadline_exceeded("the call took too long").into_http()),
            )
        };
        let Ok(mut answer) = answer;
        if streams || method == (Method::Health { watches: true }) {
            answer.extensions_mut().insert(StaysOpen);
        }
        answer.map(|body| MeteredAnswer::new(body, budget))
    }

    /// Find the caller before any message is read. Returns its tenant and the budget that the
    /// call's bytes count against. The methods find the caller among the call's extensions.
    fn admit(
        &self,
        call: &mut http::Request<Incoming>,
        arrived: Instant,
    ) -> Result<(Option<Name>, Option<Arc<ByteBudget>>), Problem> {
        let key = key_of(call.headers());
        let snapshot = self.served.snapshot();
        let mut admitted = Admitted { snapshot, arrived, auth: Duration::ZERO, key };
        let caller = self.served.admitted(&admitted)?;
        let (tenant, budget) = (caller.name().cloned(), caller.budget().cloned());
        admitted.auth = arrived.elapsed();
        call.extensions_mut().insert(admitted);
        Ok((tenant, budget))
    }

    /// Tell health checks that the server is about to end.
    pub async fn announce_shutdown(&mut self) {
        let ended = tonic_health::ServingStatus::NotServing;
        for service in [SERVICE, ""] {
            self.reporter.set_service_status(service, ended).await;
        }
    }

    /// Close open health watches.
    pub async fn shut_down(&mut self) {
        for service in [SERVICE, ""] {
            self.reporter.clear_service_status(service).await;
        }
    }
}
