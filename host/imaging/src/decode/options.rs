//! How an image is decoded, and the error of one that cannot be decoded.

use crate::error::ImageError;
use crate::work::Limits;

/// How an image is decoded.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// One channel of luma instead of three of colour.
    pub gray: bool,
    /// Turn the image upright as its EXIF orientation says.
    pub upright: bool,
    /// Blend transparent pixels with black. Otherwise their colours are taken as they are.
    pub over_black: bool,
    /// Decode as much as possible of a JPEG, PNG or GIF whose data are damaged or end early,
    /// instead of refusing it. The rest is black, or gray in a JPEG. Of a JPEG with several
    /// scans, those before a damaged last one are used.
    pub lenient: bool,
    /// How large it may be.
    pub limits: Limits,
}

impl DecodeOptions {
    /// Channels of a pixel.
    pub(super) fn channels(self) -> usize {
        if self.gray { 1 } else { 3 }
    }
}

/// The error of an image that a decoder refuses.
pub(super) fn malformed(error: impl std::fmt::Display) -> ImageError {
    ImageError::Malformed(error.to_string())
}
