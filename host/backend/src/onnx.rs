//! ONNX files as protobuf messages. A file is changed field by field, so that all that this host
//! does not know of it stays.
//!
//! `wire` reads and writes fields, `weights` finds and places the tensors whose data lies in other
//! files, `zip_map` takes the operator away that makes maps of a classifier's output, and
//! `first_dims` opens first dimensions of outputs.

pub(crate) mod first_dims;
pub(crate) mod weights;
mod wire;
pub(crate) mod zip_map;

pub(crate) use wire::Malformed;
