//! Damaged images: refused as Pillow refuses them, and none shows what lay in its memory before.

use gristmill_core::{BufferPool, POISON};
use gristmill_imaging::{DecodeOptions, ImageError, Pixels};
use image::{ImageFormat, RgbaImage};

use crate::dice::Dice;
use crate::sketch::Sketch;
use crate::{decode, options};

const SECRET: &[u8; 8] = b"\xf3secret\x9b";

/// A pool in which another left buffers of all sizes.
pub(crate) fn used_pool() -> BufferPool {
    let pool = BufferPool::new(64 << 20);
    let secrets: Vec<_> =
        (12..22).map(|bits| pool.copy_from(&SECRET.repeat(1 << (bits - 3)))).collect();
    drop(secrets);
    pool
}

pub(crate) fn assert_clean(pixels: &Pixels, what: &str) {
    for leftover in [&SECRET[..], &POISON] {
        let position = memchr::memmem::find(pixels.data(), leftover);
        assert_eq!(position, None, "{what}: another's bytes");
    }
}

fn sketches() -> Vec<Sketch> {
    let mut sketches = vec![Sketch::plain(568, 568), Sketch::plain(8, 8), Sketch::plain(100, 75)];
    for (is_subsampled, restart) in [(true, 0), (false, 4), (true, 3)] {
        sketches.push(Sketch { is_subsampled, restart, ..Sketch::plain(100, 75) });
    }
    sketches
}

/// Images of every format.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let mut corpus: Vec<_> = sketches().iter().map(|sketch| ("jpeg", sketch.whole())).collect();
    let formats =
        [("png", ImageFormat::Png), ("webp", ImageFormat::WebP), ("gif", ImageFormat::Gif)];
    for size in [7, 130] {
        let paint =
            |x: u32, y: u32| image::Rgba([(x * y) as u8, x as u8, y as u8, 255 - x as u8 / 3]);
        let image = RgbaImage::from_fn(size, size / 2 + 1, paint);
        for (name, format) in formats {
            let mut bytes = std::io::Cursor::new(Vec::new());
            image.write_to(&mut bytes, format).unwrap();
            corpus.push((name, bytes.into_inner()));
        }
        let mut bytes = std::io::Cursor::new(Vec::new());
        let opaque = image::DynamicImage::from(image).into_rgb8();
        opaque.write_to(&mut bytes, ImageFormat::Bmp).unwrap();
        corpus.push(("bmp", bytes.into_inner()));
    }
    corpus
}

fn verdict(bytes: &[u8], lenient: bool) -> Result<Pixels, ImageError> {
    let pool = used_pool();
    let pixels = decode(&pool, bytes, DecodeOptions { lenient, ..options(false) })?;
    assert_clean(&pixels, "a picture");
    Ok(pixels)
}

#[test]
fn whole_images_are_decoded() {
    for (name, bytes) in corpus() {
        verdict(&bytes, false).unwrap_or_else(|error| panic!("{name} of {}: {error}", bytes.len()));
    }
}

/// Pillow: "image file is truncated".
#[test]
fn an_image_that_is_cut_short_is_refused() {
    for (name, bytes) in corpus() {
        // The last bytes of these say only that they end.
        let needed = match name {
            "png" | "gif" => bytes.len() - 24,
            "jpeg" => bytes.len() - 4,
            _ => bytes.len() - 2,
        };
        for len in (0..needed).step_by((needed / 40).max(1)).chain([needed]) {
            let error = verdict(&bytes[..len], false).expect_err(name);
            assert!(
                matches!(error, ImageError::Malformed(_) | ImageError::UnknownFormat),
                "{name} cut at {len}: {error}"
            );
        }
    }
}

/// libjpeg: "premature end of data segment"; Pillow makes the rest gray.
#[test]
fn a_jpeg_whose_data_end_early_is_refused_unless_leniently() {
    for sketch in sketches() {
        let (head, data) = (sketch.head(), sketch.data(sketch.rows()));
        let ends: [&[u8]; 4] = [
            b"\xff\xd9",
            b"\xff\xfe\x00\x02\xff\xd9",
            b"\xff\xda\x00\x0c\x03\x01\x00\x02\x00\x03\x00\x00\x3f\x00\xff\xd9",
            b"\xff\xdd\x00\x04\x00\x00\xff\xd9",
        ];
        for end in ends {
            for len in (0..data.len().saturating_sub(8)).step_by((data.len() / 12).max(1)) {
                // Not between 0xff and what stuffs it.
                let len = if len > 0 && data[len - 1] == 0xff { len + 1 } else { len };
                let early = [&head, &data[..len], end].concat();
                verdict(&early, false).expect_err("ends early");
                if let Err(error) = verdict(&early, true) {
                    assert!(matches!(error, ImageError::Malformed(_)), "{error}");
                }
            }
        }
    }
}

#[test]
fn rows_before_the_damage_are_kept_where_the_caller_is_lenient() {
    let mut corpus = corpus();
    // Of the small ones the cut takes more than rows.
    corpus.retain(|(name, bytes)| ["png", "gif"].contains(name) && bytes.len() > 1000);
    assert_eq!(corpus.len(), 2);
    for (name, bytes) in corpus {
        let early = &bytes[..bytes.len() * 4 / 5];
        verdict(early, false).expect_err(name);
        let (whole, part) = (verdict(&bytes, true).unwrap(), verdict(early, true).unwrap());
        assert_eq!((whole.width(), whole.height()), (part.width(), part.height()));
        let kept = whole.data().iter().zip(part.data()).take_while(|(byte, other)| byte == other);
        let kept = kept.count();
        assert!((1..whole.data().len()).contains(&kept), "{name}: {kept} bytes");
    }
}

/// Pixels without data are black or gray.
#[test]
fn a_jpeg_ends_with_its_data_where_the_caller_is_lenient() {
    for sketch in sketches().into_iter().filter(|sketch| sketch.height > 16) {
        let (head, data) = (sketch.head(), sketch.data(sketch.rows()));
        let end = data.len() / 2;
        let end = if data[end - 1] == 0xff { end + 1 } else { end };
        let whole = verdict(&[&head, &data[..], b"\xff\xd9"].concat(), true).unwrap();
        for tail in [&b"\xff\xd9"[..], b""] {
            let part = verdict(&[&head, &data[..end], tail].concat(), true).unwrap();
            let row = part.width() as usize * 3;
            assert_eq!(part.data().len(), whole.data().len());
            assert_eq!(part.data()[..row], whole.data()[..row]);
            let last = &part.data()[part.data().len() - row..];
            let is_blank = |blank| last.iter().all(|byte| *byte == blank);
            assert!(is_blank(0) || is_blank(128), "{:?}", &last[..12]);
        }
    }
}

/// The image of 208 bytes or so that showed a megabyte of another tenant's request.
#[test]
fn the_first_row_of_blocks_and_a_comment_is_not_an_image() {
    let sketch = Sketch::plain(568, 568);
    let end = b"\xff\xfe\x00\x02\xff\xd9".to_vec();
    let bytes = [sketch.head(), sketch.data(1), end].concat();
    verdict(&bytes, false).unwrap_err();
    let _ = verdict(&bytes, true);
}

#[test]
fn no_damage_shows_what_another_left() {
    let pool = used_pool();
    let corpus = corpus();
    let mut dice = Dice(7);
    let mut decoded = 0;
    for round in 0..6_000 {
        let (name, whole) = &corpus[round % corpus.len()];
        let mut bytes = whole.clone();
        for _ in 0..=dice.below(3) {
            let at = dice.below(bytes.len());
            match dice.below(7) {
                0 => bytes.truncate(at.max(1)),
                1 => bytes[at] ^= 1 << dice.below(8),
                2 => bytes[at] = dice.below(256) as u8,
                3 => drop(bytes.splice(at..at, [0xff, 0xd0 + dice.below(16) as u8])),
                4 => drop(bytes.splice(at..at, [0xff, 0xfe, 0, 2, 0xff, 0xd9])),
                5 => {
                    let end = (at + 1 + dice.below(200)).min(bytes.len());
                    bytes.drain(at..end);
                }
                _ => {
                    let end = (at + 1 + dice.below(200)).min(bytes.len());
                    bytes[at..end].fill(0);
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        let how = DecodeOptions { gray: round % 5 == 0, lenient: round % 3 == 0, ..options(false) };
        if let Ok(pixels) = decode(&pool, &bytes, how) {
            decoded += 1;
            assert_clean(&pixels, name);
        }
    }
    assert!(decoded > 300, "only {decoded} were decoded: the test sees too little");
}
