//! BMP and WebP, whose decoders write a whole picture.

use image::ImageDecoder;
use image::codecs::bmp::BmpDecoder;
use image_webp::WebPDecoder;

use super::canvas::{Canvas, Format, Place};
use super::clock::Clock;
use super::reader::Reader;
use super::{DecodeOptions, malformed};
use crate::{ImageError, Pixels, Size, Work};

/// A BMP decoder's tables and rows.
const BMP_BYTES: u64 = 256 << 10;

/// Bytes between a BMP and the result: a picture of up to four channels.
pub(super) fn bmp_bytes(size: Size) -> u64 {
    BMP_BYTES + 4 * size.pixels() + 16 * u64::from(size.width)
}

pub(super) fn decode_bmp(
    work: Work<'_>,
    bytes: &[u8],
    size: Size,
    options: DecodeOptions,
) -> Result<Pixels, ImageError> {
    let decoder = BmpDecoder::new(Reader::new(bytes, work)).map_err(malformed)?;
    check_size(decoder.dimensions(), size)?;
    let format = match decoder.color_type() {
        image::ColorType::L8 => Format::Gray,
        image::ColorType::Rgb8 => Format::Rgb,
        image::ColorType::Rgba8 => Format::Rgba,
        other => return Err(malformed(format_args!("colours of type {other:?}"))),
    };
    let mut all = vec![0; size.pixels() as usize * format.channels()];
    decoder.read_image(&mut all).map_err(malformed)?;
    copied(work, &all, format, Shape { size, options })
}

/// A WebP, as far as it has to be known to decode it.
pub(super) struct WebP {
    pub(super) is_lossy: bool,
    pub(super) is_animated: bool,
    /// Whether any of it may be coded losslessly: an alpha channel, another frame.
    pub(super) has_lossless: bool,
}

/// What a frame's coded data may claim to take before the file is found to be too short for them, and tables.
const WEBP_BYTES: u64 = 18 << 20;

/// A group of VP8L's codes with tables of the full size, and how few bytes of a file make one. How
/// many groups there are only the decoder sees, and it makes those as well that no pixel uses: all
/// that the file allows are counted.
const GROUP_BYTES: u64 = 5 * ((4 << 10) + 400);
const CODED_GROUP_BYTES: u64 = 40;

impl WebP {
    /// Bytes between the file and the result.
    pub(super) fn bytes(&self, size: Size, file: u64) -> u64 {
        // Lossy: planes of brightness and colour, and their borders. Lossless: pixels of four channels, once more as
        // the decoder's client sees them, and what transforms and codes are picked by.
        let samples = if self.is_lossy { 2 } else { 4 + 2 };
        let animated = if self.is_animated { 8 } else { 0 };
        let groups = match self.has_lossless {
            true => file.div_ceil(CODED_GROUP_BYTES).min(1 << 16),
            false => 0,
        };
        WEBP_BYTES + 2 * file + (samples + 4 + 5 + animated) * size.pixels() + groups * GROUP_BYTES
    }

    pub(super) fn decode(
        &self,
        work: Work<'_>,
        bytes: &[u8],
        shape: Shape,
    ) -> Result<Pixels, ImageError> {
        let mut decoder = WebPDecoder::new(Reader::new(bytes, work)).map_err(malformed)?;
        check_size(decoder.dimensions(), shape.size)?;
        let format = if decoder.has_alpha() { Format::Rgba } else { Format::Rgb };
        let mut all = vec![0; shape.size.pixels() as usize * format.channels()];
        decoder.read_image(&mut all).map_err(malformed)?;
        copied(work, &all, format, shape)
    }
}

fn check_size((width, height): (u32, u32), size: Size) -> Result<(), ImageError> {
    if (width, height) != (size.width, size.height) {
        return Err(malformed("the header can be read in two ways"));
    }
    Ok(())
}

/// What a picture is copied into.
pub(super) struct Shape {
    pub(super) size: Size,
    pub(super) options: DecodeOptions,
}

fn copied(work: Work<'_>, all: &[u8], format: Format, shape: Shape) -> Result<Pixels, ImageError> {
    let mut canvas = Canvas::new(work, shape.size, shape.options);
    let mut clock = Clock::new(work);
    let stride = shape.size.width as usize * format.channels();
    for (y, row) in all.chunks_exact(stride).enumerate() {
        clock.look();
        canvas.write(Place::row(y), format, row);
    }
    canvas.finish()
}
