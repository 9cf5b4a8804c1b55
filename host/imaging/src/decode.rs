//! From a file's bytes to pixels.
//!
//! JPEG, the format that matters for speed, goes straight to zune-jpeg and into a pooled buffer; the
//! others go through the `image` crate.

use std::io::Cursor;

use gristmill_core::BufferPool;
use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, ImageDecoder, ImageFormat, ImageReader, RgbImage};
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use crate::{ImageError, Pixels, check_size};

/// What to decode into.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    /// One channel of luma instead of three of colour.
    pub gray: bool,
    /// Turn the picture upright as its EXIF orientation says.
    pub upright: bool,
    /// The most pixels a picture may have.
    pub pixels_max: u64,
}

/// Decode a JPEG, PNG, WebP, BMP or (its first frame) GIF.
pub fn decode(
    pool: &BufferPool,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<Pixels, ImageError> {
    let format = image::guess_format(bytes).map_err(|_| ImageError::UnknownFormat)?;
    let (pixels, orientation) = match format {
        ImageFormat::Jpeg => decode_jpeg(pool, bytes, options)?,
        ImageFormat::Png | ImageFormat::WebP | ImageFormat::Bmp | ImageFormat::Gif => {
            decode_other(pool, bytes, format, options)?
        }
        _ => return Err(ImageError::UnknownFormat),
    };
    if options.upright && orientation != Orientation::NoTransforms {
        return turn(pool, &pixels, orientation);
    }
    Ok(pixels)
}

fn decode_jpeg(
    pool: &BufferPool,
    bytes: &[u8],
    options: DecodeOptions,
) -> Result<(Pixels, Orientation), ImageError> {
    let malformed = |error| ImageError::Malformed(format!("{error:?}"));
    let channels = if options.gray { ColorSpace::Luma } else { ColorSpace::RGB };
    let settings = DecoderOptions::default()
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX)
        .jpeg_set_out_colorspace(channels);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), settings);
    decoder.decode_headers().map_err(malformed)?;
    let info = decoder.info().ok_or_else(|| ImageError::Malformed("no header".into()))?;
    check_size(info.width.into(), info.height.into(), options.pixels_max)?;
    let orientation = decoder
        .exif()
        .and_then(|chunk| Orientation::from_exif_chunk(chunk))
        .unwrap_or(Orientation::NoTransforms);
    let len = decoder.output_buffer_size().unwrap_or(0);
    let data = pool.try_fill(len, |target| decoder.decode_into(target)).map_err(malformed)?;
    let pixels = Pixels::new(info.width.into(), info.height.into(), options.gray, data)?;
    Ok((pixels, orientation))
}

fn decode_other(
    pool: &BufferPool,
    bytes: &[u8],
    format: ImageFormat,
    options: DecodeOptions,
) -> Result<(Pixels, Orientation), ImageError> {
    let malformed = |error: image::ImageError| ImageError::Malformed(error.to_string());
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = image::Limits::no_limits();
    // Up to 8 bytes a pixel (16-bit RGBA), and as much again for the decoder's own work.
    limits.max_alloc = Some(options.pixels_max.saturating_mul(16));
    reader.limits(limits);
    let mut decoder = reader.into_decoder().map_err(malformed)?;
    let (width, height) = decoder.dimensions();
    check_size(width.into(), height.into(), options.pixels_max)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = over_black(DynamicImage::from_decoder(decoder).map_err(malformed)?);
    let data =
        if options.gray { picture.into_luma8().into_raw() } else { picture.into_rgb8().into_raw() };
    let pixels = Pixels::new(width, height, options.gray, pool.copy_from(&data))?;
    Ok((pixels, orientation))
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

fn turn(
    pool: &BufferPool,
    pixels: &Pixels,
    orientation: Orientation,
) -> Result<Pixels, ImageError> {
    let (width, height, data) = (pixels.width(), pixels.height(), pixels.data().to_vec());
    let picture = if pixels.is_gray() {
        GrayImage::from_raw(width, height, data).map(DynamicImage::ImageLuma8)
    } else {
        RgbImage::from_raw(width, height, data).map(DynamicImage::ImageRgb8)
    };
    let mut picture =
        picture.ok_or_else(|| ImageError::Malformed("pixels do not fill the picture".into()))?;
    picture.apply_orientation(orientation);
    let data = pool.copy_from(picture.as_bytes());
    Pixels::new(picture.width(), picture.height(), pixels.is_gray(), data)
}
