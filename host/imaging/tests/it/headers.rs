//! Headers that are as long as their file: they are looked at in parts.

use std::cell::Cell;

use gristmill_imaging::{DecodeOptions, Encoded, ImageError, Limits, Stopped, Workspace};

use crate::sketch::Sketch;
use crate::{options, pool};

/// How long each header is made.
const LEN: usize = 4 << 20;

/// A JPEG with `between` behind its first table.
fn jpeg_with(between: Vec<u8>) -> Vec<u8> {
    const FIRST_TABLE_END: usize = 2 + 2 + 67;
    let whole = Sketch::plain(8, 8).whole();
    [&whole[..FIRST_TABLE_END], &between, &whole[FIRST_TABLE_END..]].concat()
}

/// A GIF of one pixel behind a comment in blocks of one byte.
fn gif_of_blocks() -> Vec<u8> {
    let mut file = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff\x21\xfe".to_vec();
    file.extend(b"\x01.".repeat(LEN / 2));
    file.extend(b"\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0\x3b");
    file
}

/// A WebP of one pixel whose EXIF data are long.
fn webp_of_exif() -> Vec<u8> {
    let mut file = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
    let data = b"\x2f\0\0\0\0\x88\x88\x08\0";
    file.extend(b"VP8L\x09\0\0\0");
    file.extend(data);
    file.push(0);
    file.extend(b"EXIF");
    file.extend((LEN as u32).to_le_bytes());
    file.resize(file.len() + LEN, b'.');
    let len = file.len() as u32 - 8;
    file[4..8].copy_from_slice(&len.to_le_bytes());
    file
}

fn headers() -> [(&'static str, Vec<u8>); 5] {
    [
        ("no marker", jpeg_with(vec![b'.'; LEN])),
        ("stuffed bytes", jpeg_with(b"\xff\0".repeat(LEN / 2))),
        ("a filled marker", jpeg_with(vec![0xff; LEN])),
        ("blocks of a GIF", gif_of_blocks()),
        ("EXIF data", webp_of_exif()),
    ]
}

#[test]
fn a_long_header_is_not_read_at_once() {
    for (name, bytes) in headers() {
        let outcome = Encoded::read(&bytes, options(false), &|| Err(Stopped)).map(drop);
        assert_eq!(outcome, Err(ImageError::Stopped(Stopped)), "{name}");
    }
}

#[test]
fn a_long_header_is_read_in_parts() {
    for (name, bytes) in headers() {
        let checks = Cell::new(0);
        let count = || {
            checks.set(checks.get() + 1);
            Ok(())
        };
        let image = Encoded::read(&bytes, options(false), &count);
        image.unwrap_or_else(|error| panic!("{name}: {error}"));
        let parts = if name == "EXIF data" { 1 } else { LEN / (128 << 10) };
        assert!(checks.get() >= parts, "{name}: {} checks", checks.get());
    }
}

#[test]
fn an_ordinary_header_is_read_without_a_check() {
    let bytes = Sketch::plain(4_000, 4_000).whole();
    assert!(bytes.len() > 256 << 10, "{} bytes", bytes.len());
    let options = DecodeOptions { limits: Limits::of_pixels(50_000_000), ..options(false) };
    Encoded::read(&bytes, options, &|| Err(Stopped)).map(drop).unwrap();
}

/// What is put together for the decoder is walked through as well.
#[test]
fn a_scan_is_searched_in_parts() {
    let sketch = Sketch::plain(8, 8);
    let stuffed = b"\xff\0".repeat(LEN / 2);
    let bytes = [sketch.head(), sketch.data(1), stuffed, b"\xff\xd9".to_vec()].concat();
    let image = Encoded::read(&bytes, options(false), &|| Err(Stopped)).unwrap();
    let calls = Cell::new(0);
    let check = || {
        calls.set(calls.get() + 1);
        if calls.get() > 10 { Err(Stopped) } else { Ok(()) }
    };
    let pool = pool();
    let outcome = image.decode(Workspace { pool: &pool, check: &check }).map(drop);
    assert_eq!(outcome, Err(ImageError::Stopped(Stopped)));
    assert_eq!(calls.get(), 11);
}
