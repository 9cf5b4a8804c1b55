//! From a file's bytes to pixels.
//!
//! Our own code reads an image's [`Header`] and estimates from it the cost of decoding, which the
//! decoder itself must then keep. JPEG is the format whose speed matters most: zune-jpeg decodes it
//! directly into a pooled buffer. PNG and GIF are decoded row by row, so that only a few rows are
//! held besides the result.

mod bytes;
mod canvas;
mod clock;
mod gif;
mod guard;
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

use self::guard::guarded;
pub use self::guard::is_decoding;
use self::header::Header;
pub use self::options::DecodeOptions;
use self::walk::Walk;
use crate::error::{ImageError, Stopped};
use crate::pixels::Pixels;
use crate::work::{Cost, Size, Workspace};

/// The file of a JPEG, PNG, WebP, BMP or (its first frame) GIF whose header was read.
pub struct Encoded<'a> {
    bytes: &'a [u8],
    options: DecodeOptions,
    header: Header,
}

impl<'a> Encoded<'a> {
    /// Read the header.
    ///
    /// Some headers are as long as their file. So `check` is called after about each 64 KiB of the
    /// header, and not before the first.
    ///
    /// # Errors
    /// [`ImageError::Stopped`] if `check` refuses, [`ImageError::TooLarge`] if the image is over
    /// the limits, [`ImageError::UnknownFormat`] or [`ImageError::Malformed`] if the header cannot
    /// be read.
    pub fn read(
        bytes: &'a [u8],
        options: DecodeOptions,
        check: &dyn Fn() -> Result<(), Stopped>,
    ) -> Result<Self, ImageError> {
        let read = || Header::read(bytes, options.limits, &mut Walk::new(check));
        let header = guarded(read)?;
        Ok(Self { bytes, options, header })
    }

    /// Its size as it is coded, before it is turned upright.
    pub fn size(&self) -> Size {
        self.header.size
    }

    /// The cost of decoding.
    pub fn cost(&self) -> Cost {
        self.header.cost(self.bytes, self.options)
    }

    /// Decode the image.
    ///
    /// # Errors
    /// [`ImageError::Malformed`] if the decoder refuses it, [`ImageError::Stopped`] if the check of
    /// `work` does.
    pub fn decode(&self, work: Workspace<'_>) -> Result<Pixels, ImageError> {
        (work.check)()?;
        let mut canvas = guarded(|| self.header.decode(work, self.bytes, self.options))?;
        if let Some(orientation) = self.header.orientation.filter(|_| self.options.upright) {
            turn::turn(work, &mut canvas, orientation)?;
        }
        canvas.finish()
    }
}
