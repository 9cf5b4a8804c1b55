//! Images from outside: what is decoded and made of them, what that costs, and what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

mod allocations;
mod bits;
mod colors;
mod costs;
mod crops;
mod damaged;
mod dice;
mod draw;
mod encode;
mod ends;
mod frame;
mod headers;
mod memory;
mod photo;
mod reduced;
mod sketch;
mod turned;

use gristmill_core::{BufferPool, Dtype};
use gristmill_imaging::{
    Bound, ChannelStatistics, Channels, Cost, DecodeOptions, Encoded, Filter, ImageError, Layout,
    Limits, Pixels, Rect, Size, TensorOptions, Workspace,
};
use image::{ImageFormat, RgbImage};

const LIMITS: Limits = Limits { pixels_max: 1 << 20, side_max: Limits::SIDE_MAX };

fn pool() -> BufferPool {
    BufferPool::new(1 << 20)
}

/// Workspace that is never stopped.
fn unstopped(pool: &BufferPool) -> Workspace<'_> {
    Workspace { pool, check: &|| Ok(()) }
}

fn options(gray: bool) -> DecodeOptions {
    DecodeOptions { gray, upright: true, before_0_3: false, lenient: false, limits: LIMITS }
}

fn decode(pool: &BufferPool, bytes: &[u8], options: DecodeOptions) -> Result<Pixels, ImageError> {
    Encoded::read(bytes, options, &|| Ok(()))?.decode(unstopped(pool))
}

fn decode_cost(bytes: &[u8], options: DecodeOptions) -> Result<Cost, ImageError> {
    Ok(Encoded::read(bytes, options, &|| Ok(()))?.cost())
}

fn crop(pixels: &Pixels, at: [u32; 2], size: [u32; 2]) -> Result<Pixels, ImageError> {
    let size = Size { width: size[0], height: size[1] };
    pixels.crop(unstopped(&pool()), Rect { x: at[0], y: at[1], size })
}

fn resize(pixels: &Pixels, size: [u32; 2], filter: Filter) -> Result<Pixels, ImageError> {
    let size = Size { width: size[0], height: size[1] };
    pixels.resize(unstopped(&pool()), size, filter, LIMITS)
}

/// 4x2: the left half red, the right half blue.
fn png() -> Vec<u8> {
    let image =
        RgbImage::from_fn(4, 2, |x, _| image::Rgb(if x < 2 { [255, 0, 0] } else { [0, 0, 255] }));
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    bytes.into_inner()
}

/// Plugins that were built for older contracts get the pixels that they always got.
#[test]
fn of_16_bits_the_upper_8_are_taken_and_rounded_before_contract_0_3() {
    let values = vec![129_u16, 511, 0x7f80, 0xffff];
    let image = image::ImageBuffer::<image::Luma<u16>, _>::from_raw(4, 1, values).unwrap();
    let mut bytes = std::io::Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).unwrap();
    for (before_0_3, expected) in [(false, [0, 1, 127, 255]), (true, [1, 2, 127, 255])] {
        let how = DecodeOptions { before_0_3, ..options(true) };
        assert_eq!(decode(&pool(), bytes.get_ref(), how).unwrap().data(), expected);
    }
}

fn image() -> Pixels {
    decode(&pool(), &png(), options(false)).unwrap()
}

fn to_floats(pixels: &Pixels, layout: Layout, channels: Channels) -> Vec<f32> {
    let options = TensorOptions {
        dtype: Dtype::Float32,
        layout,
        channels,
        scale: 1.0 / 255.0,
        mean: vec![],
        std: vec![],
    };
    pixels.to_tensor(unstopped(&pool()), &options).unwrap().as_f32().unwrap().to_vec()
}

#[test]
fn png_decodes_to_its_pixels() {
    let pixels = image();
    assert_eq!((pixels.width(), pixels.height()), (4, 2));
    assert_eq!(pixels.data()[..12], [255, 0, 0, 255, 0, 0, 0, 0, 255, 0, 0, 255]);
    let gray = decode(&pool(), &png(), options(true)).unwrap();
    assert!(gray.is_gray());
    assert_eq!(gray.data().len(), 8);
    assert!(gray.data()[0] > gray.data()[3], "red is brighter than blue");
}

#[test]
fn what_is_no_image_is_refused() {
    let error = decode(&pool(), b"hello, this is text", options(false)).unwrap_err();
    assert_eq!(error, ImageError::UnknownFormat);
    let error = decode(&pool(), &png()[..40], options(false)).unwrap_err();
    assert!(matches!(error, ImageError::Malformed(_)), "{error}");
    let error = decode(&pool(), b"\xff\xd8\xff\xe0 not really", options(false)).unwrap_err();
    assert!(matches!(error, ImageError::Malformed(_)), "{error}");
}

#[test]
fn a_bomb_is_refused_by_its_header() {
    let mut small = options(false);
    small.limits.pixels_max = 7;
    let error = decode(&pool(), &png(), small).unwrap_err();
    assert_eq!(error, ImageError::TooLarge { width: 4, height: 2, limit: Bound::Pixels(7) });
    let error = resize(&image(), [60_000, 60_000], Filter::Bilinear).unwrap_err();
    assert!(matches!(error, ImageError::TooLarge { limit: Bound::Pixels(_), .. }));
    let error = resize(&image(), [1, 100_000], Filter::Bilinear).unwrap_err();
    assert!(matches!(error, ImageError::TooLarge { limit: Bound::Side(65_535), .. }));
}

#[test]
fn crop_and_resize_keep_the_right_part() {
    let blue = crop(&image(), [2, 0], [2, 2]).unwrap();
    assert_eq!(blue.data(), [0, 0, 255].repeat(4));
    let one = resize(&blue, [1, 1], Filter::Lanczos3).unwrap();
    assert_eq!(one.data(), [0, 0, 255]);
    for (at, size) in [([3, 0], [2, 1]), ([0, 0], [0, 1]), ([u32::MAX, 0], [2, 1])] {
        assert!(crop(&image(), at, size).is_err());
    }
}

#[test]
fn layouts_and_channel_orders() {
    let pixels = crop(&image(), [1, 0], [2, 1]).unwrap();
    assert_eq!(to_floats(&pixels, Layout::Nchw, Channels::Rgb), [1., 0., 0., 0., 0., 1.]);
    assert_eq!(to_floats(&pixels, Layout::Nhwc, Channels::Rgb), [1., 0., 0., 0., 0., 1.]);
    assert_eq!(to_floats(&pixels, Layout::Nchw, Channels::Bgr), [0., 1., 0., 0., 1., 0.]);
    assert_eq!(to_floats(&pixels, Layout::Nhwc, Channels::Bgr), [0., 0., 1., 1., 0., 0.]);
    assert_eq!(to_floats(&pixels, Layout::Nchw, Channels::Gray).len(), 2);
}

#[test]
fn mean_and_std_normalise_each_channel() {
    let mut options = TensorOptions {
        dtype: Dtype::Float32,
        layout: Layout::Nchw,
        channels: Channels::Rgb,
        scale: 1.0 / 255.0,
        mean: vec![0.5, 0.0, 0.0],
        std: vec![0.5, 1.0, 2.0],
    };
    let pixels = crop(&image(), [1, 0], [2, 1]).unwrap();
    let tensor = pixels.to_tensor(unstopped(&pool()), &options).unwrap();
    let expected = [1., -1., 0., 0., 0., 0.5];
    for (value, expected) in tensor.as_f32().unwrap().iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    }
    options.std = vec![1.0];
    assert!(pixels.to_tensor(unstopped(&pool()), &options).is_err());
    options.std = vec![1.0, 0.0, 1.0];
    assert!(pixels.to_tensor(unstopped(&pool()), &options).is_err());
}

#[test]
fn statistics_are_of_each_channel() {
    let of = |min, max, mean| ChannelStatistics { min, max, mean };
    let statistics = |pixels: &Pixels| pixels.statistics(&|| Ok(())).unwrap();
    // A third of it is red.
    let pixels = crop(&image(), [1, 0], [3, 2]).unwrap();
    assert_eq!(statistics(&pixels), [of(0, 255, 85.0), of(0, 0, 0.0), of(0, 255, 170.0)]);
    // More than one part.
    let size = Size { width: 1_000, height: 1_000 };
    let mut data = vec![200; 1_000_000];
    data[999_999] = 255;
    let pixels = Pixels::new(size, true, pool().copy_from(&data)).unwrap();
    assert_eq!(statistics(&pixels), [of(200, 255, 200.000_06)]);
}
