//! What operations say that they cost, and that they stop.

use std::cell::Cell;
use std::time::Duration;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use gristmill_core::Dtype;
use gristmill_imaging::{
    Bound, Channels, DecodeOptions, Encoded, Filter, ImageError, Layout, Limits, Pixels, Rect,
    Size, Stopped, TensorOptions, Workspace, is_decoding,
};
use image::ImageFormat;

use crate::photo::Photo;
use crate::sketch::Sketch;
use crate::{decode_cost, options, pool, unstopped};

const LARGE: Limits = Limits { pixels_max: 50_000_000, side_max: Limits::SIDE_MAX };

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// A black image.
fn black(of: Size) -> Pixels {
    let data = pool().zeroed(of.pixels() as usize * 3).freeze();
    Pixels::new(of, false, data).unwrap()
}

fn large() -> DecodeOptions {
    DecodeOptions { limits: LARGE, ..options(false) }
}

/// The header of a PNG of this size, with nothing behind.
fn png_of(of: Size) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(of.width.to_be_bytes());
    bytes.extend(of.height.to_be_bytes());
    bytes.extend([8, 2, 0, 0, 0]);
    bytes
}

#[test]
fn a_side_is_bounded_as_the_area_is() {
    let refused = |of: Size| decode_cost(&png_of(of), large()).unwrap_err();
    let too_long = refused(size(20_000_000, 1));
    assert!(matches!(too_long, ImageError::TooLarge { limit: Bound::Side(65_535), .. }));
    assert_eq!(too_long.to_string(), "20000000x1 is over the limit of 65535 pixels for a side");
    let limit = Bound::Pixels(50_000_000);
    let (width, height) = (60_000, 60_000);
    assert_eq!(refused(size(60_000, 60_000)), ImageError::TooLarge { width, height, limit });
    assert!(decode_cost(&png_of(size(7_000, 7_000)), large()).is_ok());
}

/// `fast_image_resize` holds the source's width times the target's height.
#[test]
fn what_lies_between_two_sizes_is_bounded() {
    for (from, to) in [
        (size(65_535, 1), size(1, 65_535)),
        (size(1, 65_535), size(65_535, 1)),
        (size(65_535, 700), size(700, 65_535)),
        (size(7_000, 7_000), size(7_000, 7_001)),
    ] {
        let source = black(from);
        for filter in [Filter::Nearest, Filter::Bilinear, Filter::Lanczos3] {
            let cost = source.resize_cost(to, filter, LARGE).unwrap();
            let result = gristmill_core::BufferPool::bytes_taken(to.pixels() as usize * 3);
            assert!(cost.bytes >= result, "{from:?} {to:?}: {cost:?}");
            assert!(cost.bytes <= result + (24 << 20), "{from:?} {to:?}: {cost:?}");
        }
    }
}

/// The image resized in one go.
fn at_once(pixels: &Pixels, to: Size, filter: Filter) -> Vec<u8> {
    let source = ImageRef::new(pixels.width(), pixels.height(), pixels.data(), PixelType::U8x3);
    let mut target = Image::new(to.width, to.height, PixelType::U8x3);
    let algorithm = match filter {
        Filter::Nearest => ResizeAlg::Nearest,
        Filter::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
        Filter::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
        Filter::Lanczos3 => ResizeAlg::Convolution(FilterType::Lanczos3),
    };
    let options = ResizeOptions::new().resize_alg(algorithm).use_alpha(false);
    Resizer::new().resize(&source.unwrap(), &mut target, &options).unwrap();
    target.into_vec()
}

#[test]
fn bands_and_strips_join_without_a_seam() {
    let of = size(900, 700);
    let mut target = pool().begin(of.pixels() as usize * 3);
    target.extend((0..of.pixels() * 3).map(|at| (at * at / 977 % 251) as u8));
    let source = Pixels::new(of, false, target.freeze()).unwrap();
    for to in [size(1, 1), size(301, 207), size(899, 1_400), size(2_000, 700)] {
        for filter in [Filter::Nearest, Filter::Bilinear, Filter::Bicubic, Filter::Lanczos3] {
            let resized = source.resize(unstopped(&pool()), to, filter, LARGE).unwrap();
            let whole = at_once(&source, to, filter);
            let differ = resized.data().iter().zip(&whole).filter(|(a, b)| a.abs_diff(**b) > 2);
            assert_eq!(differ.count(), 0, "{to:?} {filter:?}");
        }
    }
}

/// The header does not say how many scans there are, and each may come to all blocks.
#[test]
fn an_image_of_several_scans_is_not_decoded_on_a_serving_thread() {
    let inline_max = Duration::from_millis(2);
    let photo = Photo { is_subsampled: false, ..Photo::new(16, 16) };
    for (photo, is_long) in [
        (Photo { is_progressive: true, ..photo.clone() }, true),
        (Photo { is_separate: true, ..photo.clone() }, true),
        (photo, false),
    ] {
        let bytes = photo.whole();
        let image = Encoded::read(&bytes, large(), &|| Ok(())).unwrap();
        for cost in [image.cost(), image.resized_cost(size(2, 2), Filter::Bilinear).unwrap()] {
            assert_eq!(cost.cpu > inline_max, is_long, "{cost:?}");
        }
    }
}

/// Refuses from the given call on.
fn after<'a>(calls: &'a Cell<u32>, limit: u32) -> impl Fn() -> Result<(), Stopped> + 'a {
    move || {
        calls.set(calls.get() + 1);
        if calls.get() > limit { Err(Stopped) } else { Ok(()) }
    }
}

#[test]
fn each_operation_stops_when_it_is_told_to() {
    let image = black(size(3_000, 1_500));
    let pool = pool();
    let tensor = TensorOptions {
        dtype: Dtype::Float32,
        layout: Layout::Nchw,
        channels: Channels::Rgb,
        scale: 1.0,
        mean: vec![],
        std: vec![],
    };
    let part = Rect { x: 0, y: 0, size: image.size() };
    let jpeg = Sketch::plain(4_000, 4_000).whole();
    type Operation<'a> = (&'a str, u32, Box<dyn Fn(Workspace<'_>) -> Result<(), ImageError> + 'a>);
    let operations: [Operation<'_>; 5] = [
        (
            "resize",
            3,
            Box::new(|work| {
                image.resize(work, size(3_001, 3_000), Filter::Lanczos3, LARGE).map(drop)
            }),
        ),
        ("crop", 3, Box::new(|work| image.crop(work, part).map(drop))),
        ("tensor", 3, Box::new(|work| image.to_tensor(work, &tensor).map(drop))),
        ("statistics", 3, Box::new(|work| Ok(image.statistics(work.check).map(drop)?))),
        (
            "decode",
            3,
            Box::new(|work| Encoded::read(&jpeg, large(), &|| Ok(()))?.decode(work).map(drop)),
        ),
    ];
    for (name, limit, operation) in operations {
        let calls = Cell::new(0);
        let check = after(&calls, limit);
        let outcome = operation(Workspace { pool: &pool, check: &check });
        assert_eq!(outcome, Err(ImageError::Stopped(Stopped)), "{name}");
        assert_eq!(calls.get(), limit + 1, "{name} went on");
    }
}

/// Decoders end by a panic, which a decoder that catches panics would turn into an error.
#[test]
fn the_decoder_of_each_format_stops_when_it_is_told_to() {
    let noise = image::RgbImage::from_fn(900, 700, |x, y| {
        let value = x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503).rotate_left(7);
        image::Rgb([(value >> 24) as u8, (value >> 16) as u8, (value >> 8) as u8])
    });
    let encoded = |format| {
        let mut bytes = std::io::Cursor::new(vec![]);
        noise.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let photo = Photo::new(1_600, 1_200);
    let images = [
        ("jpeg", photo.whole()),
        ("progressive jpeg", Photo { is_progressive: true, ..photo.clone() }.whole()),
        (
            "jpeg of several scans",
            Photo { is_separate: true, is_subsampled: false, ..photo }.whole(),
        ),
        ("png", encoded(ImageFormat::Png)),
        ("gif", encoded(ImageFormat::Gif)),
        ("webp", encoded(ImageFormat::WebP)),
        ("bmp", encoded(ImageFormat::Bmp)),
    ];
    for (name, bytes) in images {
        let calls = Cell::new(0);
        let check = || {
            calls.set(calls.get() + 1);
            if is_decoding() { Err(Stopped) } else { Ok(()) }
        };
        let pool = pool();
        let image = Encoded::read(&bytes, large(), &|| Ok(())).unwrap();
        let outcome = image.decode(Workspace { pool: &pool, check: &check }).map(drop);
        assert_eq!(outcome, Err(ImageError::Stopped(Stopped)), "{name}");
        assert_eq!(calls.get(), 2, "{name} went on");
        assert!(!is_decoding());
    }
}

/// A lossy WebP, up to its first partition, with `len` bytes that say what the image is.
fn lossy_webp(of: Size, len: usize) -> Vec<u8> {
    let mut bytes = b"RIFF".to_vec();
    bytes.extend((12 + 10 + len as u32).to_le_bytes());
    bytes.extend(b"WEBPVP8 ");
    bytes.extend((10 + len as u32).to_le_bytes());
    bytes.extend([0x10, 0, 0, 0x9d, 0x01, 0x2a]);
    bytes.extend([of.width as u16, of.height as u16].map(u16::to_le_bytes).as_flattened());
    bytes.resize(bytes.len() + len, 0);
    bytes
}

/// Its decoder cannot be stopped. Nanoseconds for a pixel, as a file made for it takes them on an
/// ordinary processor, by the bytes for a pixel that it has.
#[test]
fn a_lossy_webp_costs_what_its_bytes_can_make_of_it() {
    let of = size(1_600, 1_600);
    for (bytes_per_pixel, nanoseconds) in [
        (0.004, 48),
        (0.193, 72),
        (0.199, 102),
        (0.328, 115),
        (0.619, 155),
        (0.949, 174),
        (1.274, 237),
    ] {
        let bytes = lossy_webp(of, (of.pixels() as f64 * bytes_per_pixel) as usize);
        let cost = decode_cost(&bytes, large()).unwrap().cpu.as_nanos() as u64 / of.pixels();
        assert!(cost >= nanoseconds, "{bytes_per_pixel} bytes a pixel: {cost} ns a pixel");
        assert!(cost <= nanoseconds + 60, "{bytes_per_pixel} bytes a pixel: {cost} ns a pixel");
    }
}
