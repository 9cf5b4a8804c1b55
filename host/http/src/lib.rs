//! The listeners: the data plane's `/v1` and health on hyper, the admin plane on axum. Wire types,
//! credentials, and the one mapping from error codes to statuses.
//!
//! Refuses to know wasmtime, ONNX Runtime and the store.
//!
//! Invariants:
//! - a body is read only after its tenant was found and its key admitted, and never past the
//!   pipeline's limit;
//! - every error leaves through `problem`, with a stable code and the request's id;
//! - shutdown stops accepting first, then waits for what is under way.

#![forbid(unsafe_code)]

pub mod admin;
mod credentials;
pub mod data;
mod listener;
mod problem;
mod request_id;

pub use admin::AdminPlane;
pub use data::DataPlane;
pub use listener::{ListenerConfig, Shutdown, serve};
