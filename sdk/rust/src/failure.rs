//! Making failures: from texts, and from the errors of JSON, tensors and pictures.

use crate::bindings::image::ImageError;
use crate::{Failure, TensorError};

impl Failure {
    /// The request cannot be understood: 400 with `text`.
    pub fn invalid_input(text: impl Into<String>) -> Self {
        Self::InvalidInput(text.into())
    }

    /// This plugin does not take the request's media type: 415 with `text`.
    pub fn unsupported_media_type(text: impl Into<String>) -> Self {
        Self::UnsupportedMediaType(text.into())
    }

    /// The request is understood, but cannot be served: 422 with `text`.
    pub fn unprocessable(text: impl Into<String>) -> Self {
        Self::Unprocessable(text.into())
    }

    /// The plugin's own fault: 500, with `text` in the host's log only.
    pub fn internal(text: impl Into<String>) -> Self {
        Self::Internal(text.into())
    }
}

/// JSON that does not fit the type is the client's fault.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::InvalidInput(format!("invalid JSON: {error}"))
    }
}

/// A tensor that cannot be made is the plugin's fault.
impl From<TensorError> for Failure {
    fn from(error: TensorError) -> Self {
        Self::Internal(match error {
            TensorError::LengthMismatch(lengths) => format!(
                "tensor data is {} bytes long, but dtype and shape need {}",
                lengths.actual, lengths.expected
            ),
            TensorError::TooLarge(text) | TensorError::InvalidElement(text) => text,
        })
    }
}

/// A picture that cannot be read is the client's fault; a wrong argument is the plugin's.
impl From<ImageError> for Failure {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::UnknownFormat => {
                Self::UnsupportedMediaType("not a JPEG, PNG, WebP, BMP or GIF".into())
            }
            ImageError::Malformed(text) => Self::InvalidInput(format!("malformed image: {text}")),
            ImageError::TooLarge(text) => Self::Unprocessable(text),
            ImageError::InvalidArgument(text) => Self::Internal(text),
        }
    }
}
