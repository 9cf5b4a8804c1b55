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
    /// Decode as contracts before 0.3 say: blend transparent pixels with black, and round values of
    /// 16 bits to 8. Otherwise colours are taken as they are, and of 16 bits the upper 8.
    pub before_0_3: bool,
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
