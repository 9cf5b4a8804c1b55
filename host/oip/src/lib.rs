//! The Open Inference Protocol in both encodings: inference requests and responses as JSON with the
//! binary tensor extension, and as gRPC's messages.
//!
//! Refuses to know connections, tenants and models. It turns the bytes of a body into names, shapes
//! and elements, and the other way round.
//!
//! `grpc` has gRPC's messages. For JSON, `request` reads a body: `wire` has its JSON, and `input`
//! is one of its tensors. `response` writes a body through `out`, `classes` makes the classes of an
//! output. `elements` reads and writes the elements of a tensor in JSON, `row_value` reads those of
//! one row from a value of any document, `bounded` reads lists and texts, `object` objects and
//! numbers, `json` says what is wrong with a text, and `room` counts the memory of tensors.
//!
//! Invariants:
//! - reading any bytes ends with a request, or with an error that names the fault;
//! - reading allocates in proportion to the bytes that are there, never to the sizes that they
//!   claim: long lists and names are refused while they are read, and the memory of a tensor is
//!   taken from a [`Room`] before it is made;
//! - binary tensors are not copied: they are slices of the request's body, and an answer sends them
//!   from where they are in memory.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod bounded;
mod classes;
mod elements;
mod error;
pub mod grpc;
mod input;
mod json;
mod limits;
mod object;
mod out;
mod request;
mod response;
mod room;
mod row_value;
mod unsupported;
mod wire;

pub use classes::Classes;
pub use elements::from_texts;
pub use error::ParseError;
pub use input::{Input, PipelineParameters};
pub use json::document;
pub use limits::{DIMENSIONS_MAX, TENSORS_MAX, TEXT_BYTES_MAX};
pub use request::{InferRequest, RequestedOutput};
pub use response::{InferResponse, Output, OutputData, Written};
pub use room::{Reserved, Room};
pub use row_value::RowValue;
pub use unsupported::no_shared_memory;

#[cfg(test)]
mod tests;
