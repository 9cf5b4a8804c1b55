//! The protocol over gRPC: `inference.GRPCInferenceService` and `grpc.health.v1.Health`.
//!
//! `plane` handles a call up to its method. `metered` counts the call's bytes, and `inflated`
//! decompresses its messages. `service` has the methods, `call` has the parts that they share,
//! `stream` runs the requests of a stream, and `status` maps errors to gRPC's statuses.

mod call;
mod inflated;
mod metered;
mod plane;
mod service;
mod status;
mod stream;

pub use metered::MeteredAnswer;
pub use plane::{GrpcPlane, grpc_plane};
