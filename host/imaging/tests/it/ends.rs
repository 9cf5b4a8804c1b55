//! Where files end: one with all data of its image is whole, whatever stands behind them and
//! whether or not it says that it ends; one that lacks a part of its image is not.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gristmill_imaging::{DecodeOptions, ImageError, Pixels, Size};
use std::io::Write;

use crate::photo::Photo;
use crate::{decode, options, pool};

fn verdict(bytes: &[u8]) -> Result<Pixels, ImageError> {
    decode(&pool(), bytes, options(false))
}

#[track_caller]
fn assert_like(whole: &Pixels, bytes: &[u8], what: &str) {
    for lenient in [false, true] {
        let pixels = decode(&pool(), bytes, DecodeOptions { lenient, ..options(false) });
        let pixels = pixels.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(pixels.data() == whole.data(), "{what}: other pixels");
    }
}

#[track_caller]
fn assert_cut_short(bytes: &[u8], what: &str) {
    let error = verdict(bytes).map(drop).expect_err(what);
    assert!(matches!(error, ImageError::Malformed(_)), "{what}: {error}");
}

fn photos() -> Vec<(&'static str, Photo)> {
    let photo = Photo::new(100, 75);
    vec![
        ("subsampled", photo.clone()),
        ("full", Photo { is_subsampled: false, ..photo.clone() }),
        ("gray", Photo { names: &[1], ..photo.clone() }),
        ("flat", Photo { details: 0, ..photo.clone() }),
        ("separate", Photo { is_separate: true, is_subsampled: false, ..photo.clone() }),
        ("progressive", Photo { is_progressive: true, ..photo.clone() }),
        ("progressive, gray", Photo { is_progressive: true, names: &[1], ..photo.clone() }),
        ("progressive, full", Photo { is_progressive: true, is_subsampled: false, ..photo }),
    ]
}

/// What cameras and programs leave behind an image in place of its end marker.
fn trailers() -> Vec<(&'static str, Vec<u8>)> {
    let samsung = [b"\0\0\x01\x08\x07\0\0\0Image_UTC_Data1234567890123SEFH", &b"\x11"[..]].concat();
    vec![
        ("nothing", vec![]),
        ("half an end", vec![0xff]),
        ("zeros", vec![0; 64]),
        ("many zeros", vec![0; 200_000]),
        ("ones", vec![0xff; 500]),
        ("a vendor's trailer", [samsung, (0..200).collect(), b"SEFT".to_vec()].concat()),
        ("a broken segment", b"\xff\xc4\xff\xff rest".to_vec()),
        (
            "another frame",
            b"\xff\xc0\0\x0b\x08\0\x40\0\x40\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0rest"
                .to_vec(),
        ),
        ("many segments", b"\xff\xe0\0\x02".repeat(5_000)),
        ("a stuffed byte and restarts", b"\xff\0\xff\xd0\xff\xd1 rest".to_vec()),
    ]
}

#[test]
fn a_jpeg_with_all_its_data_is_whole() {
    for (name, photo) in photos() {
        let whole = photo.whole();
        let pixels = verdict(&whole).unwrap_or_else(|error| panic!("{name}: {error}"));
        for (behind, trailer) in trailers() {
            let what = format!("{name} and {behind}");
            assert_like(&pixels, &[&whole[..whole.len() - 2], &trailer].concat(), &what);
            assert_like(&pixels, &[&whole[..], &trailer].concat(), &format!("{what}, ended"));
        }
    }
}

/// Also if the file is filled up with zeros to the length that it should have.
#[test]
fn a_jpeg_that_lacks_data_is_cut_short() {
    for (name, photo) in photos() {
        let whole = photo.whole();
        let head = photo.parts()[0].len();
        let data = whole.len() - 2;
        // A decoder reads correction bits ahead. The last byte may have only bits that fill it.
        let exact = if photo.is_progressive { 10 } else { 3 };
        for len in (head..data - exact).step_by(97).chain(data - 16..=data - exact) {
            let what = format!("{name}, {len} of {data}");
            let cut = &whole[..len];
            assert_cut_short(cut, &what);
            assert_cut_short(&[cut, &vec![0xff; data - len + 100]].concat(), &what);
            // A byte of zeros can be the end of a block.
            if data - len > 12 {
                assert_cut_short(&[cut, &vec![0; data - len + 100]].concat(), &what);
            }
        }
    }
}

#[test]
fn a_jpeg_without_its_last_scans_is_cut_short_unless_leniently() {
    for (name, photo) in photos().into_iter().filter(|(_, photo)| photo.parts().len() > 4) {
        let parts = photo.parts();
        let scans = (parts.len() - 2) / 2;
        for kept in 1..scans {
            let cut = parts[..1 + 2 * kept].concat();
            let what = format!("{name}, {kept} of {scans} scans");
            assert_cut_short(&cut, &what);
            let early = [&cut[..], b"\xff\xd9"].concat();
            if photo.is_progressive {
                // The file says that it has ended, and each component has a scan.
                verdict(&early).unwrap_or_else(|error| panic!("{what}: {error}"));
                let how = DecodeOptions { lenient: true, ..options(false) };
                let part = decode(&pool(), &cut, how).map(drop);
                part.unwrap_or_else(|error| panic!("{what}: {error}"));
            } else {
                assert_cut_short(&early, &what);
            }
        }
    }
}

/// zune-jpeg would decode it to wrong pixels.
#[test]
fn subsampled_components_with_scans_of_their_own_are_refused() {
    let photo = Photo { is_separate: true, ..Photo::new(100, 75) };
    let error = verdict(&photo.whole()).unwrap_err();
    assert!(error.to_string().contains("each in a scan of its own"), "{error}");
}

/// A chunk with its checksum.
fn chunk(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let checked = [name, data].concat();
    let mut sum = flate2::Crc::new();
    sum.update(&checked);
    [&(data.len() as u32).to_be_bytes()[..], &checked, &sum.sum().to_be_bytes()].concat()
}

/// A PNG's chunks: of one colour or of noise, with its data in one chunk or in several ones.
fn png(size: Size, is_flat: bool, data_chunks: usize) -> Vec<Vec<u8>> {
    let mut header = [size.width.to_be_bytes(), size.height.to_be_bytes()].concat();
    header.extend([8, 2, 0, 0, 0]);
    let mut rows = ZlibEncoder::new(vec![], Compression::default());
    for row in 0..size.height {
        let value = |at: u32| if is_flat { 9 } else { (at * at * 7 + row * 31 + at / 3) as u8 };
        rows.write_all(&[0]).unwrap();
        rows.write_all(&(0..size.width * 3).map(value).collect::<Vec<_>>()).unwrap();
    }
    let data = rows.finish().unwrap();
    let mut chunks = vec![b"\x89PNG\r\n\x1a\n".to_vec(), chunk(b"IHDR", &header)];
    let len = data.len().div_ceil(data_chunks);
    chunks.extend(data.chunks(len).map(|part| chunk(b"IDAT", part)));
    chunks.push(chunk(b"IEND", &[]));
    chunks
}

fn pngs() -> Vec<(String, Vec<Vec<u8>>)> {
    let mut all = vec![];
    for (is_flat, data_chunks) in [(true, 1), (true, 3), (false, 1), (false, 3)] {
        for (width, height) in [(16, 16), (160, 120), (700, 900)] {
            let size = Size { width, height };
            let name = format!("{size:?}, flat {is_flat}, {data_chunks} chunks");
            all.push((name, png(size, is_flat, data_chunks)));
        }
    }
    all
}

#[test]
fn a_png_with_all_its_data_is_whole() {
    for (name, chunks) in pngs() {
        let whole = chunks.concat();
        let pixels = verdict(&whole).unwrap_or_else(|error| panic!("{name}: {error}"));
        let data = &whole[..whole.len() - 12];
        // From the whole file to one without the checksums of the data.
        for len in data.len() - 8..whole.len() {
            assert_like(&pixels, &whole[..len], &format!("{name}, {len} of {}", whole.len()));
        }
        let text = chunk(b"tEXt", b"Comment\0a text");
        for tail in
            [&[0; 100][..], b"a vendor's trailer", &text, &text[..9], &text[..text.len() - 1]]
        {
            assert_like(&pixels, &[data, tail].concat(), &format!("{name} and {tail:?}"));
        }
    }
}

#[test]
fn a_png_that_lacks_data_is_cut_short() {
    for (name, chunks) in pngs() {
        let whole = chunks.concat();
        let data = whole.len() - 12 - 8;
        let head = chunks[0].len() + chunks[1].len();
        // The data end with a code of some bits.
        for len in (head..data - 2).step_by(((data - head) / 50).max(1)).chain(data.checked_sub(3))
        {
            let cut = &whole[..len];
            assert_cut_short(cut, &format!("{name}, {len} of {}", whole.len()));
            // Such a chunk seems to lack more than its checksum.
            let end = &chunks[chunks.len() - 1];
            if data + 8 - len > 12 + 8 {
                assert_cut_short(&[cut, &end[..]].concat(), &format!("{name}, {len} and an end"));
            }
        }
        // A wrong checksum is damage, and so is a chunk of data that is not there.
        let mut damaged = whole.clone();
        damaged[whole.len() - 12 - 1] ^= 1;
        assert_cut_short(&damaged, &format!("{name}, damaged"));
        if chunks.len() > 4 {
            let without =
                [&chunks[..chunks.len() - 2], &chunks[chunks.len() - 1..]].concat().concat();
            assert_cut_short(&without, &format!("{name}, a chunk less"));
        }
    }
}

/// Each of them would be decoded.
#[test]
fn a_baseline_image_has_one_scan_of_a_component() {
    let photo = Photo { is_subsampled: false, is_separate: true, ..Photo::new(40, 30) };
    let parts = photo.parts();
    assert!(decode(&pool(), &parts.concat(), options(false)).is_ok());
    let repeated = [&parts[..3], &parts[1..]].concat().concat();
    for lenient in [false, true] {
        let how = DecodeOptions { lenient, ..options(false) };
        let error = decode(&pool(), &repeated, how).unwrap_err();
        assert!(error.to_string().contains("two scans have the same component"), "{error}");
    }
}
