//! The handler of a call, up to the service's method: it finds the caller, bounds and meters the
//! call's bytes, and sets its timeout.
//!
//! Invariant: only calls whose caller is known are read beyond [`OPEN_BYTES_MAX`]. All other calls
//! need no credentials, and their messages are almost empty.

use std::net::IpAddr;
use std::time::Instant;

use gristmill_core::{ByteBudget, ErrorCode, Outcome, Receipt};
use gristmill_metrics::Edge;
use gristmill_oip::grpc::proto::grpc_inference_service_server::GrpcInferenceServiceServer;
use gristmill_serve::RequestQuota;
use gristmill_transport::StaysOpen;
use http::HeaderMap;
use hyper::body::Incoming;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower_service::Service;

use super::call::{Admitted, Known};
use super::inflated::{InflatedCall, Inflater};
use super::metered::{MeteredAnswer, metered};
use super::status::status_of;
use crate::inference::Inference;
use crate::observer::{RequestContext, RequestNames, UnderWay};
use crate::rate_limit;

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
    /// Needs a caller. Unknown paths are of this kind, too: the service answers them.
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
    /// The same service with shorter messages, for calls that need no credentials.
    open: GrpcInferenceServiceServer<Inference>,
    health: HealthServer<HealthService>,
    reporter: HealthReporter,
}

/// Add a tenant's quota of requests to the headers of its answer.
fn add_quota(headers: &mut HeaderMap, quota: Option<RequestQuota>) {
    if let Some(quota) = quota {
        rate_limit::add(headers, &quota);
    }
}

/// Make the gRPC plane.
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
    /// End a call whose caller was refused.
    fn refused(&self, receipt: Receipt, code: ErrorCode, path: &str, client: IpAddr) {
        let names = RequestNames {
            edge: Edge::Grpc,
            span: "grpc",
            method: path.rsplit('/').next().unwrap_or_default(),
            path,
            client: Some(client),
        };
        // Its message, which has the id, is not read.
        let mut context = RequestContext::new("".into(), receipt);
        context.receipt.close(Outcome::Failed(code), 0);
        UnderWay::untracked(self.served.observer(), names, context).answered();
    }

    /// Answer one call of the client with this address.
    pub async fn handle(
        mut self,
        mut call: http::Request<Incoming>,
        client: IpAddr,
    ) -> http::Response<MeteredAnswer> {
        let arrived = Instant::now();
        let method = Method::of(call.uri().path());
        let streams = method == Method::Stream;
        let mut known_caller = Known::default();
        // The caller is found before any message is read.
        let admitted = match method.needs_caller() {
            true => self.served.admit(call.headers(), arrived, &mut known_caller).map(Some),
            false => Ok(None),
        };
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err(problem) => {
                let mut receipt = Receipt::open(arrived);
                receipt.note().tenant = known_caller.tenant;
                self.refused(receipt, problem.code, call.uri().path(), client);
                self.served.log_wrong_key(&problem, call.headers(), client);
                let mut refused = status_of(&problem).into_http();
                add_quota(refused.headers_mut(), known_caller.quota);
                return refused.map(|body| MeteredAnswer::new(body, None));
            }
        };
        let caller = admitted.as_ref().map(Admitted::caller);
        let budget = match caller {
            Some(caller) => caller.budget().cloned(),
            None => Some(ByteBudget::new(OPEN_BYTES_MAX)),
        };
        // Messages of calls that need no credentials are short: they are not inflated here.
        let inflater =
            caller.and_then(|caller| Inflater::of(call.headers_mut(), &self.served, caller));
        if let Some(admitted) = admitted {
            call.extensions_mut().insert(admitted);
        }
        let timeout = self.served.timeout();
        let call = metered(call, budget.as_ref(), streams.then_some(timeout));
        let call = call.map(|body| InflatedCall::new(body, inflater));
        let answering = match method {
            Method::Health { .. } => self.health.call(call),
            Method::Open => self.open.call(call),
            Method::Stream | Method::Other => self.inference.call(call),
        };
        let answer = if streams {
            answering.await
        } else {
            // The time for reading its message is included.
            let answering = tokio::time::timeout_at((arrived + timeout).into(), answering);
            answering.await.unwrap_or_else(|_| {
                self.served
                    .observer()
                    .edges()
                    .ended(Edge::Grpc, Outcome::Failed(ErrorCode::DeadlineExceeded));
                Ok(Status::deadline_exceeded("the call took too long").into_http())
            })
        };
        let Ok(mut answer) = answer;
        add_quota(answer.headers_mut(), known_caller.quota);
        if streams || method == (Method::Health { watches: true }) {
            answer.extensions_mut().insert(StaysOpen);
        }
        answer.map(|body| MeteredAnswer::new(body, budget))
    }

    /// Tell health checks that the server is shutting down.
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
