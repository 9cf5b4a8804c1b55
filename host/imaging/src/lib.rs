//! Pictures, worked on natively: decode, resize, crop, and turn into tensors.
//!
//! Plugins reach this through the `image` interface. Each operation says before it runs what it will cost
//! ([`Cost`]), so that the caller can charge for it or refuse, and looks every millisecond or so whether it is to
//! go on ([`Work::check`]). Refuses to know wasmtime, HTTP, and budgets.
//!
//! Invariants: nothing is allocated for a picture before its header's width and height were held against the
//! limits; an operation allocates at most what its cost says; a panic of a decoder is that picture's error.

#![forbid(unsafe_code)]

mod decode;
mod pixels;
mod resize;
mod tensor;
mod work;

pub use decode::{DecodeOptions, Encoded};
pub use pixels::{Pixels, Rect};
pub use resize::Filter;
pub use tensor::{Channels, Layout, TensorOptions};
pub use work::{Cost, Limits, Size, Stopped, Work};

/// Why an operation on a picture failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// None of the formats known.
    #[error("not a JPEG, PNG, WebP, BMP or GIF")]
    UnknownFormat,
    /// Begins like a picture, but cannot be decoded.
    #[error("malformed image: {0}")]
    Malformed(String),
    /// More pixels than allowed, or a side that is too long.
    #[error("{width}x{height} is over the limit of {limit}")]
    TooLarge { width: u64, height: u64, limit: Bound },
    /// An argument is out of range.
    #[error("{0}")]
    InvalidArgument(String),
    /// The caller's check said so.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The limit that a picture is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// So many pixels in all.
    #[error("{0} pixels")]
    Pixels(u64),
    /// So many pixels a side.
    #[error("{0} pixels for a side")]
    Side(u32),
}
