//! PNG, row by row. Texts and profiles are not inflated, because they can be decompression bombs.

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::canvas::{Canvas, Format, Place};
use super::clock::Clock;
use super::options::{DecodeOptions, malformed};
use super::reader::Reader;
use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::work::{Size, Workspace};

/// The most bytes of the decoder's chunks.
const CHUNK_BYTES: u64 = 1 << 20;

/// The bytes for inflating and for rows that are read ahead.
const INFLATING_BYTES: u64 = 512 << 10;

/// The bytes that decoding holds besides the file and the result, for a picture of `bits` bits for
/// each pixel.
pub(super) fn bytes(size: Size, bits: u64) -> u64 {
    // A palette's index becomes up to four bytes. A row is held before and after it is expanded.
    let row = u64::from(size.width) * bits.max(32).div_ceil(8);
    CHUNK_BYTES + INFLATING_BYTES + 6 * row
}

/// The passes of an interlaced picture: the first column and row, and the steps to the next.
const PASSES: [[usize; 4]; 7] = [
    [0, 0, 8, 8],
    [4, 0, 8, 8],
    [0, 4, 4, 8],
    [2, 0, 4, 4],
    [0, 2, 2, 4],
    [1, 0, 2, 2],
    [0, 1, 1, 2],
];

pub(super) fn decode(
    work: Workspace<'_>,
    bytes: &[u8],
    size: Size,
    options: DecodeOptions,
) -> Result<Pixels, ImageError> {
    let limits = Limits { bytes: CHUNK_BYTES as usize };
    let mut decoder = Decoder::new_with_limits(Reader::new(bytes, work), limits);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let mut reader = decoder.read_info().map_err(malformed)?;
    if reader.info().size() != (size.width, size.height) {
        return Err(malformed("the header can be read in two ways"));
    }
    let (color, depth) = reader.output_color_type();
    let format = match color {
        ColorType::Grayscale => Format::Gray,
        ColorType::GrayscaleAlpha => Format::GrayAlpha,
        ColorType::Rgb => Format::Rgb,
        ColorType::Rgba => Format::Rgba,
        ColorType::Indexed => return Err(malformed("no palette")),
    };
    let mut row =
        vec![0; reader.output_line_size(size.width).ok_or_else(|| malformed("its rows"))?];
    let mut canvas = Canvas::new(work, size, options);
    let mut clock = Clock::new(work);
    let (width, height) = (size.width as usize, size.height as usize);
    let passes = if reader.info().interlaced { &PASSES[..] } else { &[[0, 0, 1, 1]] };
    for &[x, top, step, down] in passes {
        if x >= width {
            continue;
        }
        for y in (top..height).step_by(down) {
            clock.look_before_row(row.len());
            if let Err(error) = reader.read_row(&mut row) {
                return if options.lenient { canvas.finish() } else { Err(malformed(error)) };
            }
            let samples = (width - x).div_ceil(step) * format.channels();
            let row = if depth == BitDepth::Sixteen {
                to_8_bits(&mut row, samples)
            } else {
                &row[..samples]
            };
            canvas.write(Place { y, x, step }, format, row);
        }
    }
    // Reads the rest of the data and their checksum.
    match reader.read_row(&mut row) {
        Ok(None) => canvas.finish(),
        _ if options.lenient => canvas.finish(),
        Ok(Some(_)) => Err(malformed("more rows than its height")),
        Err(error) => Err(malformed(error)),
    }
}

/// The first `samples` of a row, rounded to 8 bits in place.
fn to_8_bits(row: &mut [u8], samples: usize) -> &[u8] {
    for at in 0..samples {
        let value = u16::from_be_bytes([row[2 * at], row[2 * at + 1]]);
        row[at] = ((u32::from(value) + 128) / 257) as u8;
    }
    &row[..samples]
}
