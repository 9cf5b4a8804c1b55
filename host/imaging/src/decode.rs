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
use self::jpeg::Reduction;
pub use self::options::DecodeOptions;
use self::walk::Walk;
use crate::error::{ImageError, Stopped};
use crate::pixels::Pixels;
use crate::resize::{Filter, Resize, Window};
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

    /// Its size when it is decoded: turned upright, if the options say so.
    pub fn upright_size(&self) -> Size {
        self.turned(self.header.size)
    }

    /// The cost of decoding.
    pub fn cost(&self) -> Cost {
        self.header.cost(self.bytes, self.options, None)
    }

    /// The cost of [`decode_resized`](Self::decode_resized).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if the target is empty, [`ImageError::TooLarge`] if it is
    /// over the limits.
    pub fn resized_cost(&self, target: Size, filter: Filter) -> Result<Cost, ImageError> {
        let (reduction, resize) = self.plan(target, filter)?;
        let decode = self.header.cost(self.bytes, self.options, reduction);
        let (held, resize) = (resize.source_bytes(), resize.cost());
        let bytes = decode.bytes.max(held.saturating_add(resize.bytes));
        Ok(Cost { bytes, cpu: decode.cpu + resize.cpu })
    }

    /// Decode the image.
    ///
    /// # Errors
    /// [`ImageError::Malformed`] if the decoder refuses it, [`ImageError::Stopped`] if the check of
    /// `work` does.
    pub fn decode(&self, work: Workspace<'_>) -> Result<Pixels, ImageError> {
        self.decode_reduced(work, None)
    }

    /// Decode the image and resize it. A JPEG is decoded at a half, a quarter or an eighth of its
    /// size if both sides stay at least twice as long as those of the target, and if the filter is
    /// not [`Filter::Nearest`], whose pixels are those of the image.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode) and [`resized_cost`](Self::resized_cost).
    pub fn decode_resized(
        &self,
        work: Workspace<'_>,
        target: Size,
        filter: Filter,
    ) -> Result<Pixels, ImageError> {
        let (reduction, resize) = self.plan(target, filter)?;
        let decoded = self.decode_reduced(work, reduction)?;
        resize.apply(work, &decoded)
    }

    /// How the image is decoded, and how it is resized then.
    fn plan(
        &self,
        target: Size,
        filter: Filter,
    ) -> Result<(Option<Reduction>, Resize), ImageError> {
        let Header { size, .. } = self.header;
        // Turning twice is no turn of sizes.
        let reduction = match filter {
            Filter::Nearest => None,
            _ => self.header.reduction(self.turned(target), self.options),
        };
        let decoded = self.header.decoded_size(reduction);
        // The last column and row can stand for a part of a pixel.
        let divisor = f64::from(reduction.map_or(1, Reduction::divisor));
        let side = |side: u32| f64::from(side) / divisor;
        let (width, height) = (side(size.width), side(size.height));
        let window = Window { left: 0.0, top: 0.0, width, height };
        let window = match self.header.turn(self.options) {
            Some(orientation) => turn::turned_window(window, decoded, orientation),
            None => window,
        };
        let (source, options) = (self.turned(decoded), self.options);
        let resize = Resize::new(source, options.channels(), target, filter, options.limits)?;
        Ok((reduction, resize.of(window)))
    }

    fn turned(&self, size: Size) -> Size {
        match self.header.turn(self.options) {
            Some(orientation) => turn::turned_size(size, orientation),
            None => size,
        }
    }

    fn decode_reduced(
        &self,
        work: Workspace<'_>,
        reduction: Option<Reduction>,
    ) -> Result<Pixels, ImageError> {
        (work.check)()?;
        let decode = || self.header.decode(work, self.bytes, self.options, reduction);
        let mut canvas = guarded(decode)?;
        if let Some(orientation) = self.header.turn(self.options) {
            turn::turn(work, &mut canvas, orientation)?;
        }
        canvas.finish()
    }
}
