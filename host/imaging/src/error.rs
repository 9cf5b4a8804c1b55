//! Why an operation on an image failed.

/// An operation was told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped")]
pub struct Stopped;

/// Why an operation on an image failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Not in one of the known formats.
    #[error("not a JPEG, PNG, WebP, BMP or GIF")]
    UnknownFormat,
    /// Begins like an image, but cannot be decoded.
    #[error("malformed image: {0}")]
    Malformed(String),
    /// More pixels than allowed, or a side that is too long.
    #[error("{width}x{height} is over the limit of {limit}")]
    TooLarge {
        /// Its width in pixels.
        width: u64,
        /// Its height in pixels.
        height: u64,
        /// The limit.
        limit: Bound,
    },
    /// An argument is out of range.
    #[error("{0}")]
    InvalidArgument(String),
    /// The caller's check refused to go on.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The limit that an image is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Bound {
    /// So many pixels in all.
    #[error("{0} pixels")]
    Pixels(u64),
    /// So many pixels a side.
    #[error("{0} pixels for a side")]
    Side(u32),
    /// So many bytes of a file that is made of it.
    #[error("{0} bytes for its file")]
    FileBytes(usize),
}
