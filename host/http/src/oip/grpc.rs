//! The protocol over gRPC: `inference.GRPCInferenceService` and `grpc.health.v1.Health`.
//!
//! Here is the way of a call up to its method. `metered` counts its bytes, `inflated` has them as
//! they were before they were compressed, `service` are the methods, `call` is what they have in
//! common, `stream` are the requests of a stream, `messages` and `contents` take requests apart,
//! `status` has gRPC's words for errors.

mod call;
mod contents;
mod inflated;
mod messages;
mod metered;
mod service;
mod status;
mod stream;

use std::sync::Arc;
use std::time::Instant;

use gristmill_core::{ByteBudget, Name};
use hyper::body::Incoming;
use tonic::Status;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower_service::Service;

use self::call::Admitted;
use self::inflated::{InflatedCall, encoding_of};
pub(crate) use self::metered::MeteredAnswer;
use self::metered::metered;
use self::status::status_of;
use super::Inference;
use super::proto::grpc_inference_service_server::GrpcInferenceServiceServer;
use crate::credentials;
use crate::listener::StaysOpen;
use crate::problem::Problem;

/// The longest message of a call that needs no credentials: they say next to nothing.
const OPEN_BYTES_MAX: usize = 64 << 10;

/// The service's name, as health checks ask for it.
const SERVICE: &str = "inference.GRPCInferenceService";

/// The method whose answer ends only when its client has heard enough.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

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
        mut call: http::Request<Incoming>,
    ) -> http::Response<MeteredAnswer> {
        let arrived = Instant::now();
        let path = call.uri().path();
        let is_health = path.starts_with("/grpc.health.v1.Health/");
        let opens = ["/ServerLive", "/ServerReady", "/ServerMetadata"];
        let is_open = is_health || opens.iter().any(|method| path.ends_with(method));
        let streams = path.ends_with("/ModelStreamInfer");
        let stays_open = streams || path == WATCH;
        let (tenant, budget) = match self.admit(is_open, &mut call, arrived) {
            Ok(admitted) => admitted,
            Err(problem) => {
                let refused = status_of(&problem).into_http();
                return refused.map(|body| MeteredAnswer::new(body, None));
            }
        };
        let timeout = self.served.parts.config.timeout;
        // Of calls that need no credentials messages are short.
        let encoding = if is_open { None } else { encoding_of(call.headers_mut()) };
        let call = metered(call, budget.as_ref(), streams.then_some(timeout));
        let call = call.map(|body| match encoding {
            None => InflatedCall::plain(body),
            Some(encoding) => {
                InflatedCall::new(body, encoding, &self.served, (tenant, budget.clone()))
            }
        });
        let answering = match (is_health, is_open) {
            (true, _) => self.health.call(call),
            (_, true) => self.open.call(call),
            _ => self.inference.call(call),
        };
        let answer = if streams {
            answering.await
        } else {
            // Its message is read within it, too.
            tokio::time::timeout_at((arrived + timeout).into(), answering).await.unwrap_or_else(
                |_| Ok(Status::deadline_exceeded("the call took too long").into_http()),
            )
        };
        let Ok(mut answer) = answer;
        if stays_open {
            answer.extensions_mut().insert(StaysOpen);
        }
        answer.map(|body| MeteredAnswer::new(body, budget))
    }

    /// Whether the call's message may be read: not before its credentials are known to be good. If
    /// so, for which tenant, and what its bytes count against; its methods find the caller among
    /// its extensions.
    fn admit(
        &self,
        is_open: bool,
        call: &mut http::Request<Incoming>,
        arrived: Instant,
    ) -> Result<(Option<Name>, Option<Arc<ByteBudget>>), Problem> {
        if is_open {
            return Ok((None, Some(ByteBudget::new(OPEN_BYTES_MAX))));
        }
        let key = credentials::bearer(call.headers()).map(credentials::digest);
        let admitted = Admitted { snapshot: self.served.snapshot(), arrived, key };
        let caller = self.served.admitted(&admitted)?;
        let (tenant, budget) = (caller.name().cloned(), caller.budget().cloned());
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

    /// Tell those who watch the health that they heard the last of it.
    pub async fn shut_down(&mut self) {
        for service in [SERVICE, ""] {
            self.reporter.clear_service_status(service).await;
        }
    }
}
