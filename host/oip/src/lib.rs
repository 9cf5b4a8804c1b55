//! The Open Inference Protocol in both encodings: inference requests and responses as JSON with the
//! binary tensor extension, and as gRPC's messages.
//!
//! Refuses to know connections, tenants and models: a body comes in as bytes and goes out as names,
//! shapes and elements, and the other way round.
//!
//! `grpc` has gRPC's messages. Of JSON, `request` reads a body: `wire` is its JSON, `input` one of
//! its tensors. `response` writes a body through `out`. `elements` are a tensor's elements in JSON,
//! `bounded` are the lists and texts of a body, `room` is the memory that its tensors may take.
//!
//! Invariants:
//! - reading any bytes ends with a request or an error that names the fault, and allocates in
//!   proportion to the bytes there are, never to what they claim: lists and names are refused while
//!   they are read, and tensors are made only of memory that was taken from a [`Room`] before;
//! - binary tensors are slices of the body they came in, and go out as they lie in memory.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bounded;
mod elements;
mod error;
pub mod grpc;
mod input;
mod limits;
mod out;
mod request;
mod response;
mod room;
mod unsupported;
mod wire;

pub use elements::from_texts;
pub use error::ParseError;
pub use input::Input;
pub use limits::{DIMENSIONS_MAX, TENSORS_MAX, TEXT_BYTES_MAX};
pub use request::{InferRequest, RequestedOutput};
pub use response::{InferResponse, Output, OutputData, Written};
pub use room::{Reserved, Room};
pub use unsupported::{no_classification, no_shared_memory};

#[cfg(test)]
mod tests;
