//! The protocol over gRPC: `inference.GRPCInferenceService` and `grpc.health.v1.Health`.
//!
//! `plane` is the way of a call up to its method. `metered` counts its bytes, `inflated` undoes the
//! compression of its messages, `service` has the methods, `call` what they have in common,
//! `stream` the requests of a stream, `status` gRPC's words for errors.

mod call;
mod inflated;
mod metered;
mod plane;
mod service;
mod status;
mod stream;

pub use metered::MeteredAnswer;
pub use plane::{GrpcPlane, grpc_plane};
