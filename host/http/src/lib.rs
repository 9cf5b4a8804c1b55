//! The listeners: the data plane's `/v1`, `/v2` and health on hyper, gRPC on tonic, the admin plane on axum.
//! Credentials, and the one mapping from error codes to statuses.
//!
//! Refuses to know wasmtime, ONNX Runtime and the store.
//!
//! Invariants:
//! - a body is read only after its tenant was found and its key admitted, and never past the
//!   pipeline's limit;
//! - every error is a `problem`, which leaves as the protocol at hand has it;
//! - shutdown stops accepting first, then waits for what is under way.

#![forbid(unsafe_code)]

pub mod admin;
mod body;
mod credentials;
pub mod data;
mod encoding;
mod line_rate;
mod listener;
mod loading;
mod method;
mod offload;
pub mod oip;
mod percent;
mod problem;
mod readiness;
mod request_id;

pub use admin::{AdminPlane, UploadLimits};
pub use data::DataPlane;
pub use listener::{Connections, ListenerConfig, Protocol, Shutdown, serve};
pub use loading::Loading;
pub use oip::grpc::{GrpcPlane, grpc_plane};
pub use oip::{Inference, InferenceConfig};
pub use problem::{ErrorCodeRow, error_codes};
