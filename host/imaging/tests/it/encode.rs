//! Files that are made of images: what they show, how long they are, and what making them takes.

use std::cell::Cell;

use gristmill_core::BufferPool;
use gristmill_imaging::{
    DecodeOptions, Encoding, ImageError, Limits, Pixels, Size, Stopped, Workspace,
};

use super::{decode, options, pool, unstopped};
use crate::allocations::peak_during;
use crate::dice::Dice;

const ALL: [Encoding; 5] = [
    Encoding::Jpeg { quality: 1 },
    Encoding::Jpeg { quality: 85 },
    Encoding::Jpeg { quality: 100 },
    Encoding::Png,
    Encoding::WebpLossless,
];

const LOSSLESS: [Encoding; 2] = [Encoding::Png, Encoding::WebpLossless];

fn image(width: u32, height: u32, gray: bool, value: impl FnMut(usize) -> u8) -> Pixels {
    let size = Size { width, height };
    let bytes = size.pixels() as usize * if gray { 1 } else { 3 };
    let data: Vec<_> = (0..bytes).map(value).collect();
    Pixels::new(size, gray, pool().copy_from(&data)).unwrap()
}

/// An image in which no pixel is like another.
fn noise(width: u32, height: u32, gray: bool) -> Pixels {
    let mut dice = Dice(1);
    image(width, height, gray, |_| dice.below(256) as u8)
}

/// The worst image for a JPEG: each value is 0 or 255.
fn extremes(width: u32, height: u32, gray: bool) -> Pixels {
    let mut dice = Dice(1);
    image(width, height, gray, |_| dice.below(2) as u8 * 255)
}

/// A smooth image, as a photo has it.
fn smooth(width: u32, height: u32, gray: bool) -> Pixels {
    let channels = if gray { 1 } else { 3 };
    image(width, height, gray, |at| {
        let (pixel, channel) = (at / channels, at % channels);
        let (x, y) = (pixel % width as usize, pixel / width as usize);
        (60 + x + y / 2 + 20 * channel).min(255) as u8
    })
}

fn encoded(pixels: &Pixels, format: Encoding) -> Result<Vec<u8>, ImageError> {
    pixels.encode(unstopped(&pool()), format)
}

fn large(gray: bool) -> DecodeOptions {
    DecodeOptions { limits: Limits::of_pixels(50_000_000), ..options(gray) }
}

#[test]
fn files_without_loss_are_decoded_to_the_same_pixels() {
    for (width, height) in [(1, 1), (7, 5), (130, 97), (1_000, 3), (1, 500)] {
        for gray in [false, true] {
            for pixels in [noise(width, height, gray), smooth(width, height, gray)] {
                for format in LOSSLESS {
                    let file = encoded(&pixels, format).unwrap();
                    let again = decode(&pool(), &file, options(gray)).unwrap();
                    assert_eq!(again.size(), pixels.size());
                    assert!(again.data() == pixels.data(), "{format:?} {width}x{height} {gray}");
                }
            }
        }
    }
}

#[test]
fn a_jpeg_is_near_to_the_picture_by_its_quality() {
    for (width, height) in [(1, 1), (8, 8), (61, 43), (100, 75)] {
        for gray in [false, true] {
            let pixels = smooth(width, height, gray);
            for (quality, distance) in [(100, 8), (85, 16), (30, 60)] {
                let file = encoded(&pixels, Encoding::Jpeg { quality }).unwrap();
                let again = decode(&pool(), &file, options(gray)).unwrap();
                assert_eq!(again.size(), pixels.size());
                let differ = pixels.data().iter().zip(again.data());
                let largest = differ.map(|(a, b)| a.abs_diff(*b)).max().unwrap();
                let what = format!("{width}x{height} {gray} of {quality}");
                assert!(largest <= distance, "{what}: {largest}");
            }
        }
    }
    let pixels = smooth(100, 75, false);
    let bytes = |quality| encoded(&pixels, Encoding::Jpeg { quality }).unwrap().len();
    assert!(bytes(10) < bytes(75) && bytes(75) < bytes(100));
}

#[test]
fn qualities_and_sizes_that_a_format_lacks_are_refused() {
    for quality in [0, 101, 255] {
        let error = encoded(&smooth(1, 1, true), Encoding::Jpeg { quality }).unwrap_err();
        assert_eq!(error.to_string(), format!("the quality of a JPEG is 1 to 100, not {quality}"));
    }
    let error = encoded(&smooth(16_385, 1, true), Encoding::WebpLossless).unwrap_err();
    assert!(error.to_string().contains("16384 pixels: this picture has 16385x1"), "{error}");
    for format in [Encoding::Png, Encoding::Jpeg { quality: 50 }] {
        let pixels = smooth(1, 65_535, true);
        let file = encoded(&pixels, format).unwrap();
        assert_eq!(decode(&pool(), &file, large(true)).unwrap().size(), pixels.size());
    }
}

#[test]
fn encoding_takes_at_most_what_is_said() {
    for gray in [false, true] {
        for pixels in [
            noise(400, 300, gray),
            extremes(400, 300, gray),
            smooth(1_200, 900, gray),
            noise(1, 1, gray),
        ] {
            for format in ALL {
                let cost = pixels.encode_cost(format).unwrap().bytes;
                let pool = BufferPool::new(0);
                let (file, peak) = peak_during(|| pixels.encode(unstopped(&pool), format).unwrap());
                assert!(peak <= cost, "{format:?}: {peak} bytes taken, {cost} said");
                assert!(file.capacity() <= 2 * file.len(), "{format:?}: {}", file.capacity());
            }
        }
    }
}

/// The check is called for each part of a picture. The WebP encoder cannot be stopped, so its cost
/// must be known.
#[test]
fn encoding_stops_when_it_is_told_to() {
    for pixels in [noise(2_000, 1_500, false), image(4_000, 3_000, false, |_| 90)] {
        for format in [Encoding::Jpeg { quality: 90 }, Encoding::Png] {
            let calls = Cell::new(0);
            let check = || {
                calls.set(calls.get() + 1);
                if calls.get() > 3 { Err(Stopped) } else { Ok(()) }
            };
            let pool = pool();
            let work = Workspace { pool: &pool, check: &check };
            let outcome = pixels.encode(work, format).map(drop);
            assert_eq!(outcome, Err(ImageError::Stopped(Stopped)), "{format:?}");
            assert_eq!(calls.get(), 4, "{format:?} went on");
        }
    }
    let cost = noise(1_000, 1_000, false).encode_cost(Encoding::WebpLossless).unwrap();
    assert!(cost.cpu.as_millis() >= 40, "{:?}", cost.cpu);
}
