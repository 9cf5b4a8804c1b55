//! PNG, row by row. Texts and profiles are not inflated, because they can be decompression bombs.
//!
//! A file is whole if it has all data of the image: its end and the checksums of its last data
//! may be missing. For the decoder, zeros stand in their place.

use png::{BitDepth, ColorType, DecodeOptions as Checks, Decoder, Limits, Transformations};

use super::bytes::{at, big_u32};
use super::canvas::{Canvas, Format, RowPixels};
use super::clock::Clock;
use super::options::{DecodeOptions, malformed};
use super::reader::Reader;
use super::walk::Walk;
use crate::error::{ImageError, Stopped};
use crate::work::{Size, Workspace};

/// Maximum bytes of the decoder's chunks.
const CHUNK_BYTES: u64 = 1 << 20;

/// The bytes for inflating and for rows that are read ahead.
const INFLATING_BYTES: u64 = 512 << 10;

/// The bytes that decoding holds besides the file and the result, for an image of `bits` bits for
/// each pixel.
pub(super) fn bytes(size: Size, bits: u64) -> u64 {
    // A palette's index becomes up to four bytes. A row is held before and after it is expanded.
    let row = u64::from(size.width) * bits.max(32).div_ceil(8);
    CHUNK_BYTES + INFLATING_BYTES + 6 * row
}

/// The checksums at the end of the image's data: zlib's, and that of the last chunk.
const CRC_BYTES: usize = 4;
const CHECKSUM_BYTES: usize = 4 + CRC_BYTES;

/// Zeros that stand for the checksums and for the beginning of the next chunk.
const TAIL_BYTES: usize = CHECKSUM_BYTES + 8;

/// The bytes of a chunk besides its data: its length, its name and its checksum. The cost of
/// looking at a chunk, in steps of a walk.
const CHUNK_OWN_BYTES: usize = 12;
const CHUNK_STEPS: usize = 8;

/// The bytes that the file lacks at the end of its last chunk of the image's data.
fn lacking(bytes: &[u8], walk: &mut Walk<'_>) -> Result<usize, Stopped> {
    let mut start = 8;
    while let (Some(len), Some(name)) = (big_u32(bytes, start), at::<4>(bytes, start + 4)) {
        walk.steps(CHUNK_STEPS)?;
        let end = start + CHUNK_OWN_BYTES + len as usize;
        if end > bytes.len() {
            return Ok(if &name == b"IDAT" { end - bytes.len() } else { 0 });
        }
        start = end;
    }
    Ok(0)
}

/// The passes of an interlaced image: the first column and row, and the steps to the next.
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
) -> Result<Canvas, ImageError> {
    let limits = Limits { bytes: CHUNK_BYTES as usize };
    let lacks = lacking(bytes, &mut Walk::new(work.check))?;
    let tail = if lacks <= CHECKSUM_BYTES { &[0; TAIL_BYTES][..] } else { &[] };
    let mut checks = Checks::default();
    checks.set_ignore_crc((1..=CHECKSUM_BYTES).contains(&lacks));
    // Where zlib's checksum is there and that of its chunk is not, it is checked instead.
    checks.set_ignore_adler32(!(1..=CRC_BYTES).contains(&lacks));
    let reader = Reader::new(bytes, work).followed_by(tail);
    let mut decoder = Decoder::new_with_options(reader, checks);
    decoder.set_limits(limits);
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
            clock.poll_before_row(row.len());
            if let Err(error) = reader.read_row(&mut row) {
                return if options.lenient { Ok(canvas) } else { Err(malformed(error)) };
            }
            let samples = (width - x).div_ceil(step) * format.channels();
            let row = if depth == BitDepth::Sixteen {
                bytes_of(&mut row, samples, options.before_0_3)
            } else {
                &row[..samples]
            };
            canvas.write(RowPixels { y, x, step }, format, row);
        }
    }
    // Reads the rest of the data and their checksum.
    match reader.read_row(&mut row) {
        Ok(None) => Ok(canvas),
        _ if options.lenient => Ok(canvas),
        Ok(Some(_)) => Err(malformed("more rows than its height")),
        Err(error) => Err(malformed(error)),
    }
}

/// A byte for each of the first `samples` of a row, in place: the upper one, or the sample rounded.
fn bytes_of(row: &mut [u8], samples: usize, is_rounded: bool) -> &[u8] {
    for at in 0..samples {
        let sample = u32::from(u16::from_be_bytes([row[2 * at], row[2 * at + 1]]));
        row[at] = if is_rounded { ((sample + 128) / 257) as u8 } else { (sample >> 8) as u8 };
    }
    &row[..samples]
}
