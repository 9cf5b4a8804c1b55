//! How Python writes names and texts.

use gristmill_core::TensorInfo;
use serde_json::Value;

/// A text of Python.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The element type, as Python's SDK names it.
pub(super) fn dtype(tensor: &TensorInfo) -> String {
    format!("Dtype.{}", format!("{:?}", tensor.dtype).to_uppercase())
}
