//! What is wrong with a text that is not the JSON it should be.

use gristmill_core::NotJson;
use serde::Deserialize;

use crate::bounded::cut;
use crate::error::ParseError;
use crate::object::Object;

/// A document of the protocol beside inference requests. An empty body is an empty document.
///
/// # Errors
/// [`ParseError::Json`].
pub fn document<'a, T: Default + Deserialize<'a>>(body: &'a [u8]) -> Result<T, ParseError> {
    if body.is_empty() {
        return Ok(T::default());
    }
    let read = serde_json::from_slice::<Object<T>>(body);
    read.map(|Object(document)| document).map_err(|error| unreadable(body, &error))
}

/// The error of `body`, which the reader refused with `error`.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> ParseError {
    ParseError::Json(fault(body, error))
}

fn fault(body: &[u8], error: &serde_json::Error) -> String {
    match NotJson::of(body, error.line(), error.column()) {
        Some(reason @ NotJson::Float { .. }) => format!(
            "{reason}: send a tensor with NaN or infinity as binary data (binary_data_size, and \
             the header Inference-Header-Content-Length)"
        ),
        Some(reason) => reason.to_string(),
        None => cut(error),
    }
}
