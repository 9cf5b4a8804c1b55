//! Pictures of a few bytes to a few hundred KB that ask for hundreds of megabytes or for seconds of
//! work.

use std::io::{self, Read};

use anyhow::Result;
use flate2::Compression;
use flate2::read::ZlibEncoder;

use super::bits::{HighFirst, LowFirst};

/// The side of a square of just under 50 million pixels, the most that a plugin may decode.
const SIDE: u32 = 7_071;
/// The side in blocks of 8 x 8 pixels.
const BLOCKS: u32 = SIDE.div_ceil(8);

/// How a PNG's pixels are stored.
#[derive(Clone, Copy)]
pub enum PngColor {
    Gray8,
    Rgb8,
    Rgba16,
}

impl PngColor {
    /// Bit depth and colour type, as the header has them.
    fn header(self) -> [u8; 2] {
        match self {
            Self::Gray8 => [8, 0],
            Self::Rgb8 => [8, 2],
            Self::Rgba16 => [16, 6],
        }
    }

    fn bytes_per_pixel(self) -> u64 {
        match self {
            Self::Gray8 => 1,
            Self::Rgb8 => 3,
            Self::Rgba16 => 8,
        }
    }
}

/// A black PNG, a thousandth of the size of its pixels.
pub fn png(width: u32, height: u32, color: PngColor) -> Result<Vec<u8>> {
    let mut file = png_head(width, height, color);
    // Each line begins with its filter.
    let bytes = u64::from(height) * (1 + u64::from(width) * color.bytes_per_pixel());
    png_chunk(&mut file, b"IDAT", &deflated_zeros(bytes)?);
    png_chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

/// A PNG of 50 million pixels whose decoder needs 400 MB, in 389 KB.
pub fn png_deep() -> Result<Vec<u8>> {
    png(SIDE, SIDE, PngColor::Rgba16)
}

/// A PNG of 50 million pixels in 146 KB.
pub fn png_large() -> Result<Vec<u8>> {
    png(SIDE, SIDE, PngColor::Rgb8)
}

/// An interlaced PNG of half a million pixels in 123,000 rows, in a kilobyte.
pub fn png_rows() -> Result<Vec<u8>> {
    const HEIGHT: u32 = 65_535;
    // A bit for each pixel, gray, interlaced.
    let mut file = png_begun(8, HEIGHT, [1, 0, 0, 0, 1]);
    // The first row of each pass, and the steps to the next.
    let passes = [(0, 8), (0, 8), (4, 8), (0, 4), (2, 4), (0, 2), (1, 2)];
    let rows: u32 = passes.iter().map(|(first, step)| (HEIGHT - first).div_ceil(*step)).sum();
    // Each has its filter and a byte of pixels.
    png_chunk(&mut file, b"IDAT", &deflated_zeros(2 * u64::from(rows))?);
    png_chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

/// A PNG of one pixel whose colour profile inflates to 250 MB.
pub fn png_profile() -> Result<Vec<u8>> {
    let mut file = png_head(1, 1, PngColor::Rgb8);
    let profile = [&b"profile\0\0"[..], &deflated_zeros(250_000_000)?].concat();
    png_chunk(&mut file, b"iCCP", &profile);
    png_chunk(&mut file, b"IDAT", &deflated_zeros(4)?);
    png_chunk(&mut file, b"IEND", &[]);
    Ok(file)
}

fn png_head(width: u32, height: u32, color: PngColor) -> Vec<u8> {
    let [depth, color] = color.header();
    png_begun(width, height, [depth, color, 0, 0, 0])
}

/// A file up to its header: depth, colour, compression, filter, interlacing.
fn png_begun(width: u32, height: u32, how: [u8; 5]) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    png_chunk(&mut file, b"IHDR", &[&sides[..], &how].concat());
    file
}

fn png_chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    file.extend((data.len() as u32).to_be_bytes());
    file.extend(kind);
    file.extend(data);
    file.extend(crc.sum().to_be_bytes());
}

fn deflated_zeros(bytes: u64) -> io::Result<Vec<u8>> {
    let mut deflated = Vec::new();
    ZlibEncoder::new(io::repeat(0).take(bytes), Compression::best()).read_to_end(&mut deflated)?;
    Ok(deflated)
}

/// A lossless WebP of 50 million pixels in 36 bytes. Each of its codes has one symbol, so a pixel
/// needs no bits.
pub fn webp() -> Vec<u8> {
    let mut bits = LowFirst::default();
    bits.push(0x2f, 8);
    bits.push(SIDE - 1, 14);
    bits.push(SIDE - 1, 14);
    // No alpha, version 0; no transform, no colour cache, no meta code.
    bits.push(0, 1 + 3 + 3);
    for _ in 0..5 {
        // A simple code of one symbol of one bit, which is 0.
        bits.push(1, 4);
    }
    webp_file(bits)
}

/// A file of one lossless picture.
fn webp_file(bits: LowFirst) -> Vec<u8> {
    let mut data = bits.into_bytes();
    let len = data.len() as u32;
    data.resize(data.len().next_multiple_of(2), 0);
    let mut file = b"RIFF".to_vec();
    file.extend((4 + 8 + data.len() as u32).to_le_bytes());
    file.extend(b"WEBPVP8L");
    file.extend(len.to_le_bytes());
    file.extend(data);
    file
}

/// A lossless WebP of one pixel in 690 KB. It has 50,000 groups of codes. The tables of all of them
/// would take 3.4 GB.
pub fn webp_codes() -> Vec<u8> {
    const GROUPS: u32 = 50_000;
    let mut bits = LowFirst::default();
    bits.push(0x2f, 8);
    // Sides of 1, no alpha, version 0, no transform.
    bits.push(0, 14 + 14);
    bits.push(0, 1 + 3 + 1);
    // A colour cache of 2^11 colours; groups for blocks of 2^9 pixels a side; no cache for the
    // picture that assigns groups to blocks.
    bits.push(1 | 11 << 1 | 1 << 5 | 7 << 6, 1 + 4 + 1 + 3 + 1);
    let one_symbol = |bits: &mut LowFirst, symbol: u32| bits.push(0b101 | symbol << 3, 3 + 8);
    let last = GROUPS - 1;
    for symbol in [last & 0xff, last >> 8, 0, 0, 0] {
        one_symbol(&mut bits, symbol);
    }
    for _ in 0..GROUPS {
        // Fifteen lengths follow, of which only the last has a code. All of the first 2^11 symbols
        // have 11 bits.
        bits.push(11 << 1, 1 + 4);
        (0..14).for_each(|_| bits.push(0, 3));
        bits.push(1, 3);
        bits.push(1 | 5 << 1 | ((1 << 11) - 2) << 4, 1 + 3 + 12);
        (0..4).for_each(|_| one_symbol(&mut bits, 0));
    }
    bits.push(0, 32);
    webp_file(bits)
}

/// A JPEG of 16 MB without a picture. Every second byte could begin a marker.
pub fn jpeg_stuffed() -> Vec<u8> {
    [b"\xff\xd8".to_vec(), b"\xff\0".repeat((16 << 20) / 2 - 1)].concat()
}

/// A run-length encoded BMP of 50 million pixels in 1.1 KB. It ends before the first pixel.
pub fn bmp() -> Vec<u8> {
    const HEADERS: u32 = 14 + 40;
    const PALETTE: u32 = 256 * 4;
    let mut file = b"BM".to_vec();
    let fields = [HEADERS + PALETTE + 2, 0, HEADERS + PALETTE, 40, SIDE, SIDE];
    file.extend(fields.map(u32::to_le_bytes).as_flattened());
    // One plane of 8 bits a pixel, run-length encoded.
    file.extend([1, 0, 8, 0, 1, 0, 0, 0]);
    file.extend([0; 20 + PALETTE as usize]);
    // The end of the picture.
    file.extend([0, 1]);
    file
}

/// The picture that large ones are made of by resizing: 1x1, white.
pub fn bmp_1x1() -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.extend([58, 0, 54, 40, 1, 1].map(u32::to_le_bytes).as_flattened());
    file.extend([1, 0, 24, 0]);
    file.extend([0; 24]);
    file.extend([255, 255, 255, 0]);
    file
}

/// A GIF of 50 million pixels in 34 KB. Each code of its compression stands for one pixel more than
/// the code before.
pub fn gif() -> Vec<u8> {
    const COLOR_BITS: u32 = 2;
    const CLEAR: u32 = 1 << COLOR_BITS;
    const CODES: u32 = 1 << 12;
    let side = SIDE as u16;
    let mut file = b"GIF89a".to_vec();
    file.extend([side.to_le_bytes(), side.to_le_bytes()].as_flattened());
    // A palette of four colours.
    file.extend([0b1000_0001, 0, 0]);
    file.extend([0; 3 << COLOR_BITS]);
    file.extend([0x2c, 0, 0, 0, 0]);
    file.extend([side.to_le_bytes(), side.to_le_bytes()].as_flattened());
    file.extend([0, COLOR_BITS as u8]);

    let (mut bits, mut left) = (LowFirst::default(), u64::from(SIDE) * u64::from(SIDE));
    let mut width = COLOR_BITS + 1;
    while left > 0 {
        // The first code after a reset is a colour; the next ones are each the newest of the table.
        bits.push(CLEAR, width);
        bits.push(0, COLOR_BITS + 1);
        left -= 1;
        for (code, pixels) in (CLEAR + 2..CODES).zip(2..) {
            if left == 0 {
                break;
            }
            width = u32::BITS - code.leading_zeros();
            bits.push(code, width);
            left = left.saturating_sub(pixels);
        }
    }
    bits.push(CLEAR + 1, width);
    for block in bits.into_bytes().chunks(255) {
        file.push(block.len() as u8);
        file.extend(block);
    }
    file.extend([0, 0x3b]);
    file
}

/// A JPEG of 50 million pixels in 104 KB. Each of its 95 scans covers all blocks.
pub fn jpeg_scans() -> Vec<u8> {
    const SCANS: u32 = 95;
    const RUN_MAX: u32 = (1 << 15) - 1;
    let mut file = jpeg_head();
    jpeg_segment(&mut file, 0xc2, &jpeg_frame(SIDE, 1));
    // One symbol of one bit in either table: no difference of the first coefficient; and the end of
    // a run of blocks, whose length is in the 14 bits that follow.
    jpeg_segment(&mut file, 0xc4, &jpeg_table(0x00, 0));
    jpeg_segment(&mut file, 0xc4, &jpeg_table(0x10, 0xe0));
    let blocks = BLOCKS * BLOCKS;
    jpeg_segment(&mut file, 0xda, &[1, 1, 0x00, 0, 0, 0]);
    let mut bits = HighFirst::default();
    (0..blocks).for_each(|_| bits.push(0, 1));
    file.extend(bits.into_bytes());
    for scan in 1..SCANS {
        let coefficient = 1 + (scan - 1) % 63;
        jpeg_segment(&mut file, 0xda, &[1, 1, 0x00, coefficient as u8, coefficient as u8, 0]);
        let (mut bits, mut left) = (HighFirst::default(), blocks);
        while left >= 1 << 14 {
            let run = left.min(RUN_MAX);
            bits.push(0, 1);
            bits.push(run - (1 << 14), 14);
            left -= run;
        }
        // The scan ends before its last blocks.
        file.extend(bits.into_bytes());
    }
    file.extend([0xff, 0xd9]);
    file
}

/// A JPEG of 568x568 in 208 bytes that ends after its first row of blocks. A decoder that does not
/// check this leaves the rest of its output unwritten.
pub fn jpeg_early_end() -> Vec<u8> {
    const SIDE: u32 = 568;
    let mut file = jpeg_head();
    jpeg_segment(&mut file, 0xc0, &jpeg_frame(SIDE, 3));
    // One symbol of one bit in either table: no difference, and the end of the block.
    jpeg_segment(&mut file, 0xc4, &jpeg_table(0x00, 0));
    jpeg_segment(&mut file, 0xc4, &jpeg_table(0x10, 0));
    jpeg_segment(&mut file, 0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]);
    let mut bits = HighFirst::default();
    (0..SIDE / 8 * 3).for_each(|_| bits.push(0, 2));
    file.extend(bits.into_bytes());
    // A comment without text, and the end.
    file.extend([0xff, 0xfe, 0x00, 0x02, 0xff, 0xd9]);
    file
}

/// The start of a JPEG and its one table of quantisation.
fn jpeg_head() -> Vec<u8> {
    let mut file = vec![0xff, 0xd8];
    let mut table = vec![0];
    table.extend([1; 64]);
    jpeg_segment(&mut file, 0xdb, &table);
    file
}

fn jpeg_segment(file: &mut Vec<u8>, marker: u8, data: &[u8]) {
    file.extend([0xff, marker]);
    file.extend((data.len() as u16 + 2).to_be_bytes());
    file.extend(data);
}

/// A square frame of components that are not subsampled.
fn jpeg_frame(side: u32, components: u8) -> Vec<u8> {
    let side = (side as u16).to_be_bytes();
    let mut frame = vec![8, side[0], side[1], side[0], side[1], components];
    (1..=components).for_each(|id| frame.extend([id, 0x11, 0]));
    frame
}

/// A Huffman table of one symbol of one bit.
fn jpeg_table(class_and_id: u8, symbol: u8) -> Vec<u8> {
    let mut table = vec![class_and_id, 1];
    table.extend([0; 15]);
    table.push(symbol);
    table
}

#[cfg(test)]
mod tests;
