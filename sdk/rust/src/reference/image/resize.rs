//! Resizing, by the same crate as the host's.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};

use super::{Color, Filter, ImageError, Pixels};

pub(super) fn resize(
    pixels: &Pixels,
    width: u32,
    height: u32,
    filter: Filter,
) -> Result<Pixels, ImageError> {
    let mut data = vec![0; width as usize * height as usize * pixels.channels()];
    let algorithm = match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        Filter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Filter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
        Filter::Lanczos3 => ResizeAlg::Convolution(FilterType::Lanczos3),
    };
    if pixels.color == Color::Gray {
        fill::<U8>(pixels, &mut data, (width, height), algorithm)?;
    } else {
        fill::<U8x3>(pixels, &mut data, (width, height), algorithm)?;
    }
    Ok(Pixels { width, height, color: pixels.color, data: data.into() })
}

fn fill<P: PixelTrait>(
    pixels: &Pixels,
    target: &mut [u8],
    (width, height): (u32, u32),
    algorithm: ResizeAlg,
) -> Result<(), ImageError> {
    let source = TypedImageRef::<P>::from_buffer(pixels.width, pixels.height, &pixels.data);
    let target = TypedImage::<P>::from_buffer(width, height, target);
    let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
    let (source, mut target) = (source.map_err(failed)?, target.map_err(failed)?);
    Resizer::new().resize_typed(&source, &mut target, &options).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> ImageError {
    ImageError::InvalidArgument(error.to_string())
}
