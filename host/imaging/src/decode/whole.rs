//! BMP, and the code that it shares with decoders that write a whole image at once.

use image::ImageDecoder;
use image::codecs::bmp::BmpDecoder;

use super::canvas::{Canvas, Format, RowPixels};
use super::clock::Clock;
use super::options::{DecodeOptions, malformed};
use super::reader::Reader;
use crate::error::ImageError;
use crate::work::{Size, Workspace};

/// A BMP decoder's tables and rows.
const BMP_BYTES: u64 = 256 << 10;

/// The bytes that decoding a BMP holds besides the file and the result: an image of up to four
/// channels.
pub(super) fn bmp_bytes(size: Size) -> u64 {
    BMP_BYTES + 4 * size.pixels() + 16 * u64::from(size.width)
}

pub(super) fn decode_bmp(
    work: Workspace<'_>,
    bytes: &[u8],
    size: Size,
    options: DecodeOptions,
) -> Result<Canvas, ImageError> {
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
    Ok(copied(work, &all, format, Shape { size, options }))
}

pub(super) fn check_size((width, height): (u32, u32), size: Size) -> Result<(), ImageError> {
    if (width, height) != (size.width, size.height) {
        return Err(malformed("the header can be read in two ways"));
    }
    Ok(())
}

/// The size and the options of an image that is copied.
pub(super) struct Shape {
    pub(super) size: Size,
    pub(super) options: DecodeOptions,
}

/// The image of all rows that a decoder wrote.
pub(super) fn copied(work: Workspace<'_>, all: &[u8], format: Format, shape: Shape) -> Canvas {
    let mut canvas = Canvas::new(work, shape.size, shape.options);
    let mut clock = Clock::new(work);
    let stride = shape.size.width as usize * format.channels();
    for (y, row) in all.chunks_exact(stride).enumerate() {
        clock.poll_before_row(row.len());
        canvas.write(RowPixels::row(y), format, row);
    }
    canvas
}
