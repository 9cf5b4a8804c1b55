//! The protocol over gRPC: `inference.GRPCInferenceService` and `grpc.health.v1.Health`.
//!
//! `plane` takes a call up to its method. `metered` counts its bytes, `inflated` decompresses its
//! messages, `service` has the methods, `call` has the parts that they share, `stream` runs the
//! requests of a stream, `status` maps errors to gRPC's statuses.

mod call;
mod inflated;
mod metered;
mod plane;
mod service;
mod status;
mod stream;

pub use metered::MeteredAnswer;
pub use plane::{GrpcPlane, grpc_plane};
