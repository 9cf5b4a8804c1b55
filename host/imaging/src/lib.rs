//! Pictures, worked on natively: decode, resize, crop, and turn into tensors.
//!
//! Plugins reach this through the `image` interface; the sandbox charges its time to them. Refuses
//! to know wasmtime and HTTP.
//!
//! Invariant: nothing is allocated for a picture before its header's width and height were held
//! against the limit, so a decompression bomb costs its header.

#![forbid(unsafe_code)]

mod decode;
mod pixels;
mod tensor;

pub use decode::{DecodeOptions, decode};
pub use pixels::{Filter, Pixels};
pub use tensor::{Channels, Layout, TensorOptions};

/// Why an operation on a picture failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// None of the formats known.
    #[error("not a JPEG, PNG, WebP, BMP or GIF")]
    UnknownFormat,
    /// Begins like a picture, but cannot be decoded.
    #[error("malformed image: {0}")]
    Malformed(String),
    /// More pixels than allowed.
    #[error("{width}x{height} is over the limit of {limit} pixels")]
    TooLarge { width: u64, height: u64, limit: u64 },
    /// An argument is out of range.
    #[error("{0}")]
    InvalidArgument(String),
}

fn check_size(width: u64, height: u64, limit: u64) -> Result<(), ImageError> {
    match width.checked_mul(height) {
        Some(pixels) if pixels <= limit => Ok(()),
        _ => Err(ImageError::TooLarge { width, height, limit }),
    }
}

#[cfg(test)]
mod tests;
