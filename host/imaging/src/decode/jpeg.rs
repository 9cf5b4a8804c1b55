//! JPEG, through zune-jpeg, which gets only the parts of a file that it needs. At a smaller size it
//! is decoded by our own code ([`reduced`]).
//!
//! zune-jpeg accepts files that end early and data that do not fill the image, and it collects
//! profiles and other data that are not needed. So the file is split here ([`Frame`], [`stream`]).
//! The decoder gets the tables and the scans, and reading past their end is noticed
//! ([`JpegSource`]). Data that end before the image is full are refused; what lies behind a full
//! image is not looked at.

mod colors;
mod frame;
mod marker;
mod progress;
mod reduced;
mod source;
mod stream;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gristmill_core::BufferPool;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;

pub(super) use frame::Frame;
pub(super) use reduced::Reduction;

use self::source::{JpegSource, Overrun};
use self::stream::Extent;
use super::canvas::{Canvas, Format};
use super::options::{DecodeOptions, malformed};
use super::whole::{Shape, copied};
use crate::error::ImageError;
use crate::work::Workspace;

/// The bytes of the decoder and its tables, for any image.
const DECODER_BYTES: u64 = 128 << 10;

/// Nanoseconds for an image of any size, for each byte of data, and for each sample of a pixel and
/// component: if it is decoded at once, and if its coefficients are stored first.
const PICTURE_NS: u64 = 20_000;
const BYTE_NS: u64 = 12;
const SAMPLE_NS: u64 = 3;
const KEPT_SAMPLE_NS: u64 = 8;

/// Nanoseconds to make gray of a pixel's colours.
const LUMA_NS: u64 = 3;

impl Frame {
    /// The bytes that decoding holds besides the file and the result, and its nanoseconds.
    pub(super) fn cost(&self, file: u64, options: DecodeOptions) -> (u64, u64) {
        let samples = self.samples();
        let kept = if self.is_one_scan() { 0 } else { self.coefficient_bytes(options.gray) };
        let per_sample = if self.is_one_scan() { SAMPLE_NS } else { KEPT_SAMPLE_NS };
        let colored = match self.is_colored_first(options) {
            true => BufferPool::bytes_taken(3 * self.size.pixels() as usize) as u64,
            false => 0,
        };
        let bytes = DECODER_BYTES + stream::len_max(file) + self.row_bytes() + kept + colored;
        let weighing = if colored > 0 { self.size.pixels() * LUMA_NS } else { 0 };
        let time = PICTURE_NS + self.scans_ns() + file * BYTE_NS;
        (bytes, time + samples * per_sample + weighing)
    }

    /// Whether a gray image is made of a coloured one. The decoder makes gray only of colours
    /// with a luma of their own.
    fn is_colored_first(&self, options: DecodeOptions) -> bool {
        options.gray && !self.colors.has_luma()
    }

    pub(super) fn decode(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        options: DecodeOptions,
    ) -> Result<Canvas, ImageError> {
        if !options.lenient {
            return self.decode_scans(work, bytes, options, Extent::Whole);
        }
        match self.decode_scans(work, bytes, options, Extent::There) {
            // The scans before the last one also make an image.
            Err(ImageError::Malformed(_)) if !self.is_one_scan() => {
                self.decode_scans(work, bytes, options, Extent::WithoutLast)
            }
            decoded => decoded,
        }
    }

    fn decode_scans(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        options: DecodeOptions,
        extent: Extent,
    ) -> Result<Canvas, ImageError> {
        let stream = stream::assemble(self, bytes, work, extent)?;
        let is_colored_first = self.is_colored_first(options);
        let decoded = DecodeOptions { gray: options.gray && !is_colored_first, ..options };
        // An image of one scan is kept up to the row where its data end.
        let is_partial = options.lenient && stream.is_one_scan;
        let settings = DecoderOptions::default()
            .set_max_width(usize::MAX)
            .set_max_height(usize::MAX)
            .set_strict_mode(!is_partial)
            .jpeg_set_max_scans(stream::SCANS_MAX)
            .jpeg_set_out_colorspace(if decoded.gray { ColorSpace::Luma } else { ColorSpace::RGB });
        let mut decoder = JpegDecoder::new_with_options(JpegSource::new(&stream, work), settings);
        let failed = |error: DecodeErrors| ImageError::Malformed(format!("{error:?}"));
        decoder.decode_headers().map_err(failed)?;
        // The decoder may leave parts of an image unwritten and still report success. They are
        // black.
        let mut canvas = Canvas::new(work, self.size, decoded);
        if decoder.output_buffer_size() != Some(canvas.data.as_mut().len()) {
            return Err(malformed("the header can be read in two ways"));
        }
        let decode = AssertUnwindSafe(|| decoder.decode_into(canvas.data.as_mut()));
        match catch_unwind(decode) {
            Ok(decoded) => decoded.map_err(failed)?,
            Err(unwound) if !unwound.is::<Overrun>() => resume_unwind(unwound),
            Err(_) if is_partial => {}
            Err(_) => return Err(malformed("the data end before the picture is full")),
        }
        (work.check)()?;
        drop(decoder);
        if is_colored_first {
            let shape = Shape { size: self.size, options };
            return Ok(copied(work, canvas.data.as_ref(), Format::Rgb, shape));
        }
        Ok(canvas)
    }
}
