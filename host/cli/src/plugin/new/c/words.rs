//! How C writes texts, element types and shapes.

use std::fmt::Write as _;

use gristmill_core::Dtype;

use crate::plugin::new::signature::sizes;

/// A text of C, in UTF-8.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                let _ = write!(quoted, "\\{}", char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted + "\""
}

pub(super) fn dtype(dtype: Dtype) -> String {
    format!("GM_{}", format!("{dtype:?}").to_uppercase())
}

/// A shape; none for a size is any.
pub(super) fn shape(dims: &[Option<usize>]) -> String {
    match dims.is_empty() {
        // An array of C has an element at least.
        true => "(gm_shape){NULL, 0}".into(),
        false => format!("GM_SHAPE({})", sizes(dims, "GM_ANY").join(", ")),
    }
}
