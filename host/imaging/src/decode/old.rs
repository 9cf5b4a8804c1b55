//! What goes through the `image` crate.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};

use super::{DecodeOptions, malformed};
use crate::{ImageError, Pixels, Size, Work};

pub(super) fn decode(
    work: Work<'_>,
    bytes: &[u8],
    format: ImageFormat,
    options: DecodeOptions,
) -> Result<Pixels, ImageError> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = image::Limits::no_limits();
    // Up to 8 bytes a pixel (16-bit RGBA), and as much again for the decoder's own work.
    limits.max_alloc = Some(options.limits.pixels_max.saturating_mul(16));
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(malformed)?;
    let (width, height) = decoder.dimensions();
    let size = Size { width, height };
    options.limits.check(size)?;
    let picture = over_black(DynamicImage::from_decoder(decoder).map_err(malformed)?);
    let data =
        if options.gray { picture.into_luma8().into_raw() } else { picture.into_rgb8().into_raw() };
    Pixels::new(size, options.gray, work.pool.copy_from(&data))
}

/// The picture without its alpha channel, laid over black.
fn over_black(picture: DynamicImage) -> DynamicImage {
    if !picture.color().has_alpha() {
        return picture;
    }
    let mut picture = picture.into_rgba8();
    for pixel in picture.pixels_mut() {
        let [red, green, blue, alpha] = pixel.0;
        let lay = |value: u8| ((u16::from(value) * u16::from(alpha) + 127) / 255) as u8;
        pixel.0 = [lay(red), lay(green), lay(blue), 255];
    }
    DynamicImage::ImageRgba8(picture)
}
