//! What decoding takes at its peak, held against what was said before that it may take.

use std::io::Cursor;

use gristmill_core::{BufferPool, PluginLimits};
use gristmill_imaging::{Cost, DecodeOptions, Encoded, ImageError, Limits};
use image::{ImageFormat, RgbImage};

use crate::allocations::peak_during;
use crate::bits::{Bits, LENGTHS};
use crate::unstopped;

fn read(bytes: &[u8]) -> Result<Encoded<'_>, ImageError> {
    let limits = Limits::of_pixels(PluginLimits::default().pixels);
    let options = DecodeOptions { limits, ..crate::options(false) };
    Encoded::read(bytes, options, &|| Ok(()))
}

fn cost_of(bytes: &[u8]) -> Result<Cost, ImageError> {
    Ok(read(bytes)?.cost())
}

/// Bytes taken at the peak of decoding.
fn peak_of(bytes: &[u8]) -> usize {
    let pool = BufferPool::new(0);
    peak_during(|| drop(read(bytes).unwrap().decode(unstopped(&pool)).unwrap())).1
}

/// An image in which no pixel is like another.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1_u64;
    RgbImage::from_fn(width, height, |_, _| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        image::Rgb([(state >> 33) as u8, (state >> 41) as u8, (state >> 49) as u8])
    })
}

fn encoded(image: &RgbImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A code whose first symbols have codes of 1, 2, 3 and so on bits, up to 15.
fn steep(bits: &mut Bits) {
    bits.push(0, 1).push(15, 4);
    // Lengths of 1 to 15 have codes of four bits, but for that of 1, which has three.
    for length in LENGTHS {
        bits.push(if length == 1 { 3 } else { u32::from((2..16).contains(&length)) * 4 }, 3);
    }
    bits.push(1, 1).push(1, 3).push(14, 4);
    bits.push(0, 3);
    (2..=15).chain([15]).for_each(|length: u32| {
        // Codes are written with their highest bit first.
        bits.push((length.reverse_bits()) >> 28, 4);
    });
}

/// A lossless WebP of 14x14 with so many groups of codes, which all have these codes.
fn grouped(groups: u32, cache_bits: u32, codes: [fn(&mut Bits); 5]) -> Vec<u8> {
    let mut bits = Bits::default();
    bits.push(0x2f, 8).push(13, 14).push(13, 14).push(0, 4);
    // No transform; a colour cache; groups for blocks as large as they can be: the image has one.
    bits.push(0, 1).push(1, 1).push(cache_bits, 4).push(1, 1).push(7, 3);
    bits.push(0, 1);
    let last = groups - 1;
    [last & 0xff, last >> 8, 0, 0, 0].into_iter().for_each(|symbol| bits.one_symbol(symbol));
    for _ in 0..groups {
        codes.iter().for_each(|code| code(&mut bits));
    }
    let mut data = bits.bytes;
    // The pixels: whatever has codes of zeros.
    data.resize(data.len() + 1_600, 0);
    let mut file = b"RIFF".to_vec();
    file.extend((12 + data.len() as u32).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(&data);
    file
}

fn black(bits: &mut Bits) {
    bits.one_symbol(0);
}

fn flat_8(bits: &mut Bits) {
    bits.flat(8);
}

fn flat_11(bits: &mut Bits) {
    bits.flat(11);
}

const STEEP: [fn(&mut Bits); 5] = [steep; 5];
const WIDE: [fn(&mut Bits); 5] = [flat_11, black, black, black, black];
const FLAT: [fn(&mut Bits); 5] = [flat_8, flat_8, flat_8, flat_8, black];

#[test]
fn decoding_takes_at_most_what_is_said() {
    let photo = noise(400, 300);
    let formats = [ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Gif, ImageFormat::WebP];
    for format in formats {
        let bytes = encoded(&photo, format);
        let (cost, peak) = (cost_of(&bytes).unwrap(), peak_of(&bytes));
        assert!(peak <= cost.bytes, "{format:?}: {peak} bytes taken, {} said", cost.bytes);
    }
    // From libwebp, with an entropy image.
    let bytes = include_bytes!("fixtures/groups.webp");
    let (cost, peak) = (cost_of(bytes).unwrap(), peak_of(bytes));
    assert!(peak <= cost.bytes, "groups: {peak} bytes taken, {} said", cost.bytes);
}

#[test]
fn a_webp_pays_for_the_codes_that_it_has() {
    for (name, groups, codes) in [
        ("steep", 2_000, STEEP),
        ("wide", 500, WIDE),
        ("flat", 5_000, FLAT),
        ("one", 60_000, [black; 5]),
    ] {
        let bytes = grouped(groups, 11, codes);
        let (cost, peak) = (cost_of(&bytes).unwrap(), peak_of(&bytes));
        let estimate = cost.bytes;
        assert!(peak <= estimate, "{name}: {peak} bytes taken, {estimate} said");
        assert!(peak > 8 << 20, "{name}: its codes took only {peak} bytes");
        assert!(estimate <= 2 * peak, "{name}: {peak} bytes taken, {estimate} said");
    }
}

/// The decoder would make tables of gigabytes of it.
#[test]
fn a_small_webp_that_asks_for_gigabytes_says_so() {
    let bytes = grouped(1 << 16, 11, WIDE);
    assert!(bytes.len() < 1 << 20, "{} bytes", bytes.len());
    let cost = cost_of(&bytes).unwrap();
    assert!(cost.bytes > 4 << 30, "{} bytes", cost.bytes);
}

#[test]
fn a_lossless_photo_of_a_megabyte_is_within_the_default_limits() {
    let bytes = encoded(&noise(640, 560), ImageFormat::WebP);
    assert!(bytes.len() > 1 << 20, "{} bytes", bytes.len());
    let (cost, limits) = (cost_of(&bytes).unwrap(), PluginLimits::default());
    assert!(cost.bytes <= limits.host_memory_bytes / 4, "{} bytes", cost.bytes);
    assert!(cost.cpu <= limits.cpu / 2, "{:?}", cost.cpu);
    peak_of(&bytes);
}

#[test]
fn codes_that_are_none_are_refused() {
    let whole = grouped(50, 11, FLAT);
    for len in (30..whole.len() - 1_700).step_by(37) {
        let mut bytes = whole[..len].to_vec();
        let (all, data) = (len as u32 - 8, len as u32 - 20);
        bytes[4..8].copy_from_slice(&all.to_le_bytes());
        bytes[16..20].copy_from_slice(&data.to_le_bytes());
        let error = cost_of(&bytes).unwrap_err();
        assert!(matches!(error, ImageError::Malformed(_)), "cut at {len}: {error}");
    }
}
