//! The protocols' edges of the data plane: `/v1`, the Open Inference Protocol over HTTP (`/v2`) and
//! over gRPC, and health.
//!
//! In reading order: `plane` answers an HTTP request, `path` is its router, `v1` and `v2` are the
//! two protocols over HTTP, `grpc` is the third, and `inference` is the part that `v2` and `grpc`
//! share. `plugin_error` says why a plugin failed, where a pipeline shows it, `timing`,
//! `rate_limit` and `cors` write headers, and `loading` answers requests until the state is loaded.
//!
//! Refuses to know wasmtime, ONNX Runtime and the store. `serve` decides who may call and how a
//! request runs.
//!
//! Invariants:
//! - a body is read only after its caller was admitted, and never past the limit;
//! - every error becomes a `Problem`, and each protocol has one function that writes it;
//! - a request sees one snapshot, and its caller is found once.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answers;
mod call;
mod cors;
mod grpc;
mod inference;
mod loading;
mod observer;
mod path;
mod plane;
mod plugin_error;
mod rate_limit;
mod receipt_header;
mod slow_request;
mod timing;
mod v1;
mod v2;

pub use grpc::{GrpcPlane, MeteredAnswer, grpc_plane};
pub use inference::{Inference, InferenceConfig, ModelChange, ModelFile, ModelRepository};
pub use loading::Loading;
pub use observer::ObserverConfig;
pub use plane::DataPlane;
