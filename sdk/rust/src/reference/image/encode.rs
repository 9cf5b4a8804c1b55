//! Encoding, by the encoders of the host.

use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::codecs::png::PngEncoder;
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder};

use super::{Blob, Color, Encoding, ImageError, Pixels};

pub(super) fn encode(pixels: &Pixels, format: Encoding) -> Result<Blob, ImageError> {
    let mut file = Cursor::new(Vec::new());
    let (width, height) = (pixels.width, pixels.height);
    let color = match pixels.color {
        Color::Gray => ExtendedColorType::L8,
        Color::Rgb | Color::Bgr => ExtendedColorType::Rgb8,
    };
    let data = &pixels.data;
    let written = match format {
        Encoding::Jpeg(quality) => JpegEncoder::new_with_quality(&mut file, quality)
            .write_image(data, width, height, color),
        Encoding::Png => PngEncoder::new(&mut file).write_image(data, width, height, color),
        Encoding::WebpLossless => {
            WebPEncoder::new_lossless(&mut file).write_image(data, width, height, color)
        }
    };
    written.map_err(|error| {
        ImageError::InvalidArgument(format!("the picture cannot be encoded: {error}"))
    })?;
    Ok(Blob(file.into_inner().into()))
}
