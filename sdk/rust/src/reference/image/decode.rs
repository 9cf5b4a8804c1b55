//! Decoding. JPEG goes through zune-jpeg, as in the host; the other formats through `image`.

use std::io::Cursor;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{Color, DecodeOptions, ImageError, Pixels, check_size, luma};

pub(super) fn decode(file: &[u8], options: DecodeOptions) -> Result<Pixels, ImageError> {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, WebP};
    let known = |format: &ImageFormat| [Jpeg, Png, WebP, Bmp, Gif].contains(format);
    let format = image::guess_format(file).ok().filter(known).ok_or(ImageError::UnknownFormat)?;
    let reader = ImageReader::with_format(Cursor::new(file), format);
    let mut decoder = reader.into_decoder().map_err(malformed)?;
    let (width, height) = decoder.dimensions();
    check_size(width, height)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let gray = options.color == Color::Gray;
    let mut picture = if format == Jpeg {
        jpeg(file, gray)?
    } else {
        let decoded = DynamicImage::from_decoder(decoder).map_err(malformed)?;
        opaque(&decoded, gray)
    };
    if options.upright {
        picture.apply_orientation(orientation);
    }
    let (width, height) = (picture.width(), picture.height());
    let color = if gray { Color::Gray } else { Color::Rgb };
    Ok(Pixels { width, height, color, data: picture.into_bytes().into() })
}

fn jpeg(file: &[u8], gray: bool) -> Result<DynamicImage, ImageError> {
    let color = if gray { ColorSpace::Luma } else { ColorSpace::RGB };
    let settings = DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(color);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(file), settings);
    let data = decoder.decode().map_err(malformed)?;
    let size = decoder.dimensions().ok_or_else(|| malformed("it has no size"))?;
    picture((size.0 as u32, size.1 as u32), gray, data)
        .ok_or_else(|| malformed("the data do not fill the picture"))
}

/// Transparency is left out; colours become luma if `gray`. Of 16 bits the upper 8 are taken.
fn opaque(decoded: &DynamicImage, gray: bool) -> DynamicImage {
    let (size, is_gray) = ((decoded.width(), decoded.height()), !decoded.color().has_color());
    let rgba = decoded.to_rgba16();
    let colours = rgba.pixels().map(|pixel| {
        let [red, green, blue, _] = pixel.0;
        [red, green, blue].map(|value| (value >> 8) as u8)
    });
    let data: Vec<u8> = match (gray, is_gray) {
        (true, true) => colours.map(|[value, ..]| value).collect(),
        (true, false) => colours.map(luma).collect(),
        (false, _) => colours.flatten().collect(),
    };
    picture(size, gray, data).unwrap_or_default()
}

fn picture((width, height): (u32, u32), gray: bool, data: Vec<u8>) -> Option<DynamicImage> {
    if gray {
        image::GrayImage::from_raw(width, height, data).map(DynamicImage::ImageLuma8)
    } else {
        image::RgbImage::from_raw(width, height, data).map(DynamicImage::ImageRgb8)
    }
}

fn malformed(error: impl std::fmt::Display) -> ImageError {
    ImageError::Malformed(error.to_string())
}
