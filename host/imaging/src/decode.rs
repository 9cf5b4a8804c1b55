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
mod vp8l;
mod walk;
mod webp;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{Cost, ImageError, Limits, Pixels, Stopped, Work};
use header::Header;
use walk::Walk;

/// What to decode into.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// One channel of luma instead of three of colour.
    pub gray: bool,
    /// Turn the picture upright as its EXIF orientation says.
    pub upright: bool,
    /// Make what can be made of a JPEG, PNG or GIF whose data are damaged or end early, instead of refusing it: the
    /// rest is black, or gray in a JPEG. Of a progressive JPEG the scans before the last one are used.
    pub lenient: bool,
    /// How large it may be.
    pub limits: Limits,
}

impl DecodeOptions {
    fn channels(self) -> usize {
        if self.gray { 1 } else { 3 }
    }
}

/// The file of a JPEG, PNG, WebP, BMP or (its first frame) GIF whose header was read.
pub struct Encoded<'a> {
    bytes: &'a [u8],
    options: DecodeOptions,
    header: Header,
}

impl<'a> Encoded<'a> {
    /// Read the header. Refuses what is too large.
    ///
    /// Some headers are as long as their file. So `check` is called after each 64 KiB or so that were looked at, and
    /// where it refuses, this ends with [`ImageError::Stopped`]; before, it is not called.
    pub fn read(
        bytes: &'a [u8],
        options: DecodeOptions,
        check: &dyn Fn() -> Result<(), Stopped>,
    ) -> Result<Self, ImageError> {
        let header = Header::read(bytes, options.limits, &mut Walk::new(check))?;
        Ok(Self { bytes, options, header })
    }

    /// What decoding will cost.
    pub fn cost(&self) -> Cost {
        self.header.cost(self.bytes, self.options)
    }

    /// Decode the picture.
    pub fn decode(&self, work: Work<'_>) -> Result<Pixels, ImageError> {
        (work.check)()?;
        let decoded = || self.header.decode(work, self.bytes, self.options);
        let pixels = catch_unwind(AssertUnwindSafe(decoded)).unwrap_or_else(|panic| {
            let stopped = panic.downcast_ref::<Stopped>().map(|stopped| (*stopped).into());
            Err(stopped.unwrap_or_else(|| malformed("the decoder failed on it")))
        })?;
        match self.header.orientation.filter(|_| self.options.upright) {
            Some(orientation) => turn::turn(work, &pixels, orientation),
            None => Ok(pixels),
        }
    }
}

fn malformed(error: impl std::fmt::Display) -> ImageError {
    ImageError::Malformed(error.to_string())
}
