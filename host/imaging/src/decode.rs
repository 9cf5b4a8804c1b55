//! From a file's bytes to pixels.
//!
//! A picture's [`Header`] is read by code of ours, which says what decoding will cost; the decoder proper is held to it.
//! JPEG, the format that matters for speed, goes straight to zune-jpeg and into a pooled buffer, PNG and GIF row by
//! row, so that no more than a few rows lie in between.

mod canvas;
mod clock;
mod gif;
mod header;
mod jpeg;
mod png;
mod reader;
mod turn;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Cost, ImageError, Limits, Pixels, Stopped, Work};
use header::Header;

/// What to decode into.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// One channel of luma instead of three of colour.
    pub gray: bool,
    /// Turn the picture upright as its EXIF orientation says.
    pub upright: bool,
    /// Make what can be made of a JPEG that is damaged or ends early, instead of refusing it.
    pub lenient: bool,
    /// How large it may be.
    pub limits: Limits,
}

impl DecodeOptions {
    fn channels(self) -> usize {
        if self.gray { 1 } else { 3 }
    }
}

/// What [`decode`] will cost, from the picture's header. Refuses what is too large.
pub fn decode_cost(bytes: &[u8], options: DecodeOptions) -> Result<Cost, ImageError> {
    Ok(Header::read(bytes, options.limits)?.cost(bytes, options))
}

/// Decode a JPEG, PNG, WebP, BMP or (its first frame) GIF.
pub fn decode(work: Work<'_>, bytes: &[u8], options: DecodeOptions) -> Result<Pixels, ImageError> {
    (work.check)()?;
    let header = Header::read(bytes, options.limits)?;
    let decoded = || header.decode(work, bytes, options);
    let pixels = catch_unwind(AssertUnwindSafe(decoded)).unwrap_or_else(|panic| {
        let stopped = panic.downcast_ref::<Stopped>().map(|stopped| (*stopped).into());
        Err(stopped.unwrap_or_else(|| malformed("the decoder failed on it")))
    })?;
    match header.orientation(bytes).filter(|_| options.upright) {
        Some(orientation) => turn::turn(work, &pixels, orientation),
        None => Ok(pixels),
    }
}

fn malformed(error: impl std::fmt::Display) -> ImageError {
    ImageError::Malformed(error.to_string())
}
