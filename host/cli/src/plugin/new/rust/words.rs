//! How Rust writes names.

use gristmill_core::TensorInfo;

/// The element type, as the SDK names it.
pub(super) fn dtype(tensor: &TensorInfo) -> String {
    format!("Dtype::{:?}", tensor.dtype)
}
