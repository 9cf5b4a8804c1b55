//! From a file's bytes to pixels.
//!
//! Our own code reads a picture's [`Header`] and foresees from it what decoding will cost; the
//! decoder proper is bound to that. JPEG, the format that matters for speed, goes straight to
//! zune-jpeg and into a pooled buffer. PNG and GIF go row by row, so that only a few rows lie in
//! between.

mod bytes;
mod canvas;
mod clock;
mod gif;
mod header;
mod jpeg;
mod options;
mod png;
mod reader;
mod turn;
mod vp8l;
mod walk;
mod webp;
mod whole;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::header::Header;
pub use self::options::DecodeOptions;
use self::options::malformed;
use self::walk::Walk;
use crate::error::{ImageError, Stopped};
use crate::pixels::Pixels;
use crate::work::{Cost, Work};

/// The file of a JPEG, PNG, WebP, BMP or (its first frame) GIF whose header was read.
pub struct Encoded<'a> {
    bytes: &'a [u8],
    options: DecodeOptions,
    header: Header,
}

impl<'a> Encoded<'a> {
    /// Read the header.
    ///
    /// Some headers are as long as their file. So `check` is called after each 64 KiB or so that
    /// were read, and not before.
    ///
    /// # Errors
    /// [`ImageError::Stopped`] where `check` refuses, [`ImageError::TooLarge`] where the picture is
    /// over the limits, and [`ImageError::UnknownFormat`] or [`ImageError::Malformed`] for other
    /// files.
    pub fn read(
        bytes: &'a [u8],
        options: DecodeOptions,
        check: &dyn Fn() -> Result<(), Stopped>,
    ) -> Result<Self, ImageError> {
        let header = Header::read(bytes, options.limits, &mut Walk::new(check))?;
        Ok(Self { bytes, options, header })
    }

    /// The cost of decoding.
    pub fn cost(&self) -> Cost {
        self.header.cost(self.bytes, self.options)
    }

    /// Decode the picture.
    ///
    /// # Errors
    /// [`ImageError::Malformed`] where the decoder refuses it, [`ImageError::Stopped`] where the
    /// check of `work` does.
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
