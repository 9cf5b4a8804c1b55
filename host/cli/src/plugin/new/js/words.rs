//! How JavaScript writes names and texts.

use gristmill_core::TensorInfo;
use serde_json::Value;

/// A text of JavaScript.
pub(super) fn quoted(text: &str) -> String {
    let text = Value::from(text).to_string();
    match text.contains(['\'', '\\']) {
        true => text,
        false => format!("'{}'", &text[1..text.len() - 1]),
    }
}

/// A text as the key of an object.
pub(super) fn key(text: &str) -> String {
    match text {
        // Otherwise it would be the object's prototype.
        "__proto__" => "['__proto__']".into(),
        text => quoted(text),
    }
}

/// The element type, as the SDK names it.
pub(super) fn dtype(tensor: &TensorInfo) -> String {
    quoted(&format!("{:?}", tensor.dtype).to_lowercase())
}
