//! ONNX files as protobuf messages. A file is changed field by field, so that all that this host
//! does not know of it stays.
//!
//! `wire` reads and writes fields, `weights` finds and places the tensors whose data lies in other
//! files, and `zip_map` takes the operator away that makes maps of a classifier's output.

pub(crate) mod weights;
mod wire;
pub(crate) mod zip_map;

pub(crate) use wire::Malformed;
