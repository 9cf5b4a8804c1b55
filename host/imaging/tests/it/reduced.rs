//! JPEGs that are decoded at a smaller size: what is made of them, what it holds, and what is
//! refused.

use std::cell::Cell;

use gristmill_core::{BufferPool, PluginLimits};
use gristmill_imaging::{
    DecodeOptions, Encoded, Filter, ImageError, Limits, Pixels, Size, Stopped, Workspace,
};

use crate::allocations::peak_during;
use crate::damaged::{assert_clean, used_pool};
use crate::dice::Dice;
use crate::photo::{Photo, exif};
use crate::sketch::Sketch;
use crate::{options, pool, unstopped};

/// A photo of 509x387 from Pillow, turned by its EXIF data, and the pixels of torchvision's
/// `Resize(48)` and `CenterCrop(40)`. `odd.py` made them.
const ODD: &[u8] = include_bytes!("fixtures/odd.jpg");
const ODD_PIXELS: &[u8] = include_bytes!("fixtures/odd.rgb");

fn large() -> DecodeOptions {
    DecodeOptions { limits: Limits::of_pixels(50_000_000), ..options(false) }
}

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

fn resized(bytes: &[u8], target: Size, how: DecodeOptions) -> Result<Pixels, ImageError> {
    let image = Encoded::read(bytes, how, &|| Ok(()))?;
    image.decode_resized(unstopped(&pool()), target, Filter::Bilinear)
}

/// The same, decoded at the full size.
fn in_two_steps(bytes: &[u8], target: Size, how: DecodeOptions) -> Pixels {
    let image = Encoded::read(bytes, how, &|| Ok(())).unwrap();
    let pool = pool();
    let whole = image.decode(unstopped(&pool)).unwrap();
    whole.resize(unstopped(&pool), target, Filter::Bilinear, how.limits).unwrap()
}

/// The largest difference, and the mean one.
fn difference(pixels: &[u8], other: &[u8]) -> (u8, f64) {
    assert_eq!(pixels.len(), other.len());
    let differences = || pixels.iter().zip(other).map(|(a, b)| a.abs_diff(*b));
    let sum: u64 = differences().map(u64::from).sum();
    (differences().max().unwrap(), sum as f64 / pixels.len() as f64)
}

/// The orientation in `ODD`.
fn turned(orientation: u8) -> Vec<u8> {
    let mut bytes = ODD.to_vec();
    // Its tag, type and count, the most significant byte first.
    let entry = memchr::memmem::find(&bytes, &[0x01, 0x12, 0, 3, 0, 0, 0, 1]).unwrap();
    bytes[entry + 9] = orientation;
    bytes
}

#[test]
fn a_photo_of_an_odd_size_is_as_pillow_and_torchvision_make_it() {
    let image = Encoded::read(ODD, large(), &|| Ok(())).unwrap();
    let target = image.upright_size().with_shorter_side(48);
    assert_eq!((image.upright_size(), target), (size(387, 509), size(48, 63)));
    let small = resized(ODD, target, large()).unwrap();
    let part = small.size().middle(size(40, 40));
    let part = small.crop(unstopped(&pool()), part).unwrap();
    let (max, mean) = difference(part.data(), ODD_PIXELS);
    assert!(max <= 2 && mean <= 0.5, "max {max}, mean {mean}");
}

#[test]
fn each_reduction_of_each_orientation_is_at_its_place() {
    for orientation in 1..=8 {
        let bytes = turned(orientation);
        for gray in [false, true] {
            let how = DecodeOptions { gray, ..large() };
            // A half, a quarter and an eighth.
            for shorter in [70, 40, 20] {
                let image = Encoded::read(&bytes, how, &|| Ok(())).unwrap();
                let target = image.upright_size().with_shorter_side(shorter);
                let cost = image.resized_cost(target, Filter::Bilinear).unwrap();
                assert!(cost.bytes < image.cost().bytes, "{shorter}: it is not reduced");
                let small = resized(&bytes, target, how).unwrap();
                let two_steps = in_two_steps(&bytes, target, how);
                let (max, mean) = difference(small.data(), two_steps.data());
                let what = format!("orientation {orientation}, gray {gray}, {shorter}");
                assert!(max <= 3 && mean <= 0.5, "{what}: max {max}, mean {mean}");
            }
        }
    }
}

#[test]
fn no_image_is_reduced_where_its_pixels_are_asked_for() {
    let target = size(20, 15);
    let nearest = |bytes: &[u8]| {
        let image = Encoded::read(bytes, large(), &|| Ok(())).unwrap();
        let pool = pool();
        let small = image.decode_resized(unstopped(&pool), target, Filter::Nearest).unwrap();
        let whole = image.decode(unstopped(&pool)).unwrap();
        let two_steps = whole.resize(unstopped(&pool), target, Filter::Nearest, large().limits);
        (small.data().to_vec(), two_steps.unwrap().data().to_vec())
    };
    let (small, two_steps) = nearest(ODD);
    assert!(small == two_steps);
    // Less than four times as long.
    let target = size(100, 130);
    let small = resized(ODD, target, large()).unwrap();
    assert!(small.data() == in_two_steps(ODD, target, large()).data());
}

/// Images of the same coefficients.
#[test]
fn all_ways_of_coding_make_the_same_pixels() {
    for (width, height) in [(203, 131), (64, 64), (33, 200)] {
        let target = size(width / 4 - 1, height / 4 - 1);
        for names in [&[1_u8][..], &[1, 2, 3], b"RGB"] {
            for is_subsampled in [false, true] {
                let photo = Photo { names, is_subsampled, ..Photo::new(width, height) };
                let baseline = resized(&photo.whole(), target, large()).unwrap();
                let mut others = vec![Photo { is_progressive: true, ..photo.clone() }];
                if !is_subsampled {
                    others.push(Photo { is_separate: true, ..photo.clone() });
                }
                for other in others {
                    let pixels = resized(&other.whole(), target, large()).unwrap();
                    let what = format!("{width}x{height} {names:?} {is_subsampled}");
                    assert!(pixels.data() == baseline.data(), "{what}");
                }
            }
        }
    }
}

/// Blocks of one colour each.
#[test]
fn restart_markers_are_read() {
    for is_subsampled in [false, true] {
        for restart in [0, 1, 3, 40] {
            let sketch = Sketch { is_subsampled, restart, ..Sketch::plain(200, 150) }.whole();
            let small = resized(&sketch, size(11, 9), large()).unwrap();
            let two_steps = in_two_steps(&sketch, size(11, 9), large());
            let (max, mean) = difference(small.data(), two_steps.data());
            assert!(max <= 10 && mean <= 3.0, "{is_subsampled} {restart}: {max}, {mean}");
        }
    }
}

fn variants() -> Vec<Photo> {
    let photo = Photo::new(190, 141);
    vec![
        Photo { is_progressive: true, before: exif(6), ..photo.clone() },
        Photo { is_subsampled: false, is_separate: true, ..photo.clone() },
        Photo { names: &[1], ..photo.clone() },
        photo,
    ]
}

#[test]
fn data_that_end_early_are_refused() {
    for photo in variants() {
        let parts = photo.parts();
        let whole = parts.concat();
        resized(&whole, size(20, 15), large()).unwrap();
        let needed = whole.len() - 6;
        for len in (0..needed).step_by(needed / 150).chain([needed]) {
            let error = resized(&whole[..len], size(20, 15), large()).unwrap_err();
            let is_expected = matches!(error, ImageError::Malformed(_) | ImageError::UnknownFormat);
            assert!(is_expected, "cut at {len}: {error}");
        }
        // What follows the image is not looked at.
        resized(&[whole, vec![0xff; 99]].concat(), size(20, 15), large()).unwrap();
    }
}

#[test]
fn no_damage_shows_what_another_left() {
    let pool = used_pool();
    let corpus: Vec<_> = variants().iter().map(Photo::whole).chain([ODD.to_vec()]).collect();
    let mut dice = Dice(11);
    let mut decoded = 0;
    for round in 0..3_000 {
        let mut bytes = corpus[round % corpus.len()].clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len());
            match dice.below(4) {
                0 => bytes[at] ^= 1 << dice.below(8),
                1 => bytes[at] = dice.below(256) as u8,
                2 => drop(bytes.splice(at..at, [0xff, 0xd0 + dice.below(16) as u8])),
                _ => {
                    let end = (at + 1 + dice.below(40)).min(bytes.len());
                    bytes.drain(at..end);
                }
            }
        }
        let how = DecodeOptions { gray: round % 5 == 0, ..options(false) };
        let Ok(image) = Encoded::read(&bytes, how, &|| Ok(())) else { continue };
        let work = unstopped(&pool);
        if let Ok(pixels) = image.decode_resized(work, size(19, 17), Filter::Bilinear) {
            decoded += 1;
            assert_eq!(pixels.size(), size(19, 17));
            assert_clean(&pixels, "a smaller picture");
        }
    }
    assert!(decoded > 300, "only {decoded} were decoded: the test sees too little");
}

#[test]
fn a_photo_holds_about_what_it_says() {
    let photo = Photo { details: 2, ..Photo::new(4_000, 3_000) };
    for is_progressive in [false, true] {
        for before in [vec![], exif(6)] {
            let bytes = Photo { is_progressive, before, ..photo.clone() }.whole();
            let image = Encoded::read(&bytes, large(), &|| Ok(())).unwrap();
            for shorter in [256, 640] {
                let target = image.upright_size().with_shorter_side(shorter);
                let estimate = image.resized_cost(target, Filter::Bilinear).unwrap().bytes;
                let pool = BufferPool::new(0);
                let work = unstopped(&pool);
                let decode = || image.decode_resized(work, target, Filter::Bilinear).unwrap();
                let (_, peak) = peak_during(decode);
                let what = format!("progressive {is_progressive}, {shorter}");
                assert!(peak <= estimate, "{what}: {peak} bytes held, {estimate} said");
                assert!(estimate <= peak + peak / 4, "{what}: {peak} held, {estimate} said");
                assert!(estimate < image.cost().bytes * 3 / 5, "{what}: {estimate} said");
            }
        }
    }
}

/// The header of a photo of this size, before 12 MiB.
fn header(of: Size, photo: Photo) -> Vec<u8> {
    let mut bytes = photo.whole();
    let frame = memchr::memmem::find(&bytes, &[0, 17, 8]).unwrap();
    bytes[frame + 3..frame + 5].copy_from_slice(&(of.height as u16).to_be_bytes());
    bytes[frame + 5..frame + 7].copy_from_slice(&(of.width as u16).to_be_bytes());
    bytes.resize(12 << 20, 0);
    bytes
}

#[test]
fn photos_of_phones_are_within_the_default_limits() {
    let limits = PluginLimits::default();
    let turned = Photo { before: exif(6), ..Photo::new(64, 64) };
    let progressive = Photo { is_progressive: true, ..turned.clone() };
    for (of, photo, is_whole) in [
        (size(6_000, 4_000), turned.clone(), true),
        (size(8_000, 6_000), turned, true),
        (size(6_000, 4_000), progressive.clone(), true),
        (size(8_000, 6_000), progressive, false),
    ] {
        let bytes = header(of, photo);
        let image = Encoded::read(&bytes, large(), &|| Ok(())).unwrap();
        let resized = image.resized_cost(size(640, 480), Filter::Bilinear).unwrap();
        for cost in [is_whole.then(|| image.cost()), Some(resized)].into_iter().flatten() {
            assert!(cost.bytes <= limits.host_memory_bytes, "{of:?}: {} bytes", cost.bytes);
            assert!(cost.cpu <= limits.cpu_decoding / 2, "{of:?}: {:?}", cost.cpu);
        }
    }
}

#[test]
fn decoding_stops_when_it_is_told_to() {
    for is_progressive in [false, true] {
        let bytes = Photo { is_progressive, ..Photo::new(2_000, 1_500) }.whole();
        let image = Encoded::read(&bytes, large(), &|| Ok(())).unwrap();
        let calls = Cell::new(0);
        let check = || {
            calls.set(calls.get() + 1);
            if calls.get() > 3 { Err(Stopped) } else { Ok(()) }
        };
        let pool = pool();
        let work = Workspace { pool: &pool, check: &check };
        let outcome = image.decode_resized(work, size(100, 75), Filter::Bilinear).map(drop);
        assert_eq!(outcome, Err(ImageError::Stopped(Stopped)));
        assert_eq!(calls.get(), 4, "it went on");
    }
}
