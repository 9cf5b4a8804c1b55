//! Images that are turned upright: every pixel is at its place, and no second image is held.

use std::cell::Cell;

use gristmill_core::BufferPool;
use gristmill_imaging::{
    DecodeOptions, Encoded, ImageError, Limits, Stopped, Workspace, is_decoding,
};
use image::metadata::Orientation;
use image::{DynamicImage, GrayImage, RgbImage};

use crate::allocations::peak_during;
use crate::photo::{Photo, exif};
use crate::{decode, options, pool, unstopped};

#[test]
fn every_pixel_is_at_its_place() {
    let sizes =
        [(1, 1), (1, 70), (70, 1), (31, 33), (32, 32), (33, 31), (64, 96), (200, 131), (97, 260)];
    for (width, height) in sizes {
        let photo = Photo { is_subsampled: false, ..Photo::new(width, height) };
        for gray in [false, true] {
            let plain = decode(&pool(), &photo.whole(), options(gray)).unwrap().data().to_vec();
            for number in 1..=8 {
                let turned = Photo { before: exif(number), ..photo.clone() }.whole();
                let turned = decode(&pool(), &turned, options(gray)).unwrap();
                let mut expected: DynamicImage = match gray {
                    true => GrayImage::from_raw(width, height, plain.clone()).unwrap().into(),
                    false => RgbImage::from_raw(width, height, plain.clone()).unwrap().into(),
                };
                expected.apply_orientation(Orientation::from_exif(number).unwrap());
                let what = format!("{width}x{height}, gray {gray}, orientation {number}");
                let size = (turned.width(), turned.height());
                assert_eq!(size, (expected.width(), expected.height()), "{what}");
                assert!(turned.data() == expected.as_bytes(), "{what}");
            }
        }
    }
}

fn large() -> DecodeOptions {
    DecodeOptions { limits: Limits::of_pixels(50_000_000), ..options(false) }
}

/// Peak bytes that decoding a photo held, those that it says it may hold, and those of the
/// result.
fn held(photo: &Photo, how: DecodeOptions) -> [usize; 3] {
    let bytes = photo.whole();
    let pool = BufferPool::new(0);
    let encoded = Encoded::read(&bytes, how, &|| Ok(())).unwrap();
    let (decoded, peak) = peak_during(|| encoded.decode(unstopped(&pool)));
    [peak, encoded.cost().bytes, decoded.unwrap().data().len()]
}

#[test]
fn a_photo_holds_about_what_it_says() {
    let photo = Photo { details: 2, ..Photo::new(4_000, 3_000) };
    for is_progressive in [false, true] {
        for before in [vec![], exif(3), exif(6)] {
            for gray in [false, true] {
                let photo = Photo { is_progressive, before: before.clone(), ..photo.clone() };
                let [peak, estimate, result] = held(&photo, DecodeOptions { gray, ..large() });
                let what = format!("progressive {is_progressive}, gray {gray}, {before:?}");
                assert!(peak <= estimate, "{what}: {peak} bytes held, {estimate} said");
                assert!(estimate <= peak + peak / 5, "{what}: {peak} bytes held, {estimate} said");
                // The coefficients of a progressive image take as much as its pixels.
                let most = result * 9 / 8 + (8 << 20) + if is_progressive { 36_200_000 } else { 0 };
                assert!(estimate <= most, "{what}: {estimate} bytes for {result}");
            }
        }
    }
}

#[test]
fn gray_of_other_colours_holds_what_it_says() {
    for is_progressive in [false, true] {
        let photo = Photo { is_progressive, names: b"RGB", details: 2, ..Photo::new(3_000, 2_000) };
        let [peak, estimate, _] = held(&photo, DecodeOptions { gray: true, ..large() });
        assert!(
            peak <= estimate && estimate <= peak + peak / 5,
            "{peak} bytes held, {estimate} said"
        );
    }
}

#[test]
fn turning_stops_when_it_is_told_to() {
    let photo = Photo { details: 0, before: exif(6), ..Photo::new(3_000, 2_000) }.whole();
    let encoded = Encoded::read(&photo, large(), &|| Ok(())).unwrap();
    let calls = Cell::new(0);
    let check = || {
        calls.set(calls.get() + 1);
        // The first check is made before the decoder runs.
        if calls.get() > 1 && !is_decoding() { Err(Stopped) } else { Ok(()) }
    };
    let pool = pool();
    let stopped = encoded.decode(Workspace { pool: &pool, check: &check }).map(drop);
    assert_eq!(stopped, Err(ImageError::Stopped(Stopped)));
}
