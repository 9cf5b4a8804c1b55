//! What a picture's header says: its size, what decoding it takes, which way up it is.

use std::ops::Range;

use gristmill_core::BufferPool;
use image::ImageFormat;
use image::metadata::Orientation;

use super::jpeg::Frame;
use super::whole::{self, WebP};
use super::{DecodeOptions, gif, malformed, png};
use crate::{Cost, ImageError, Limits, Pixels, Size, Work};

/// The most chunks of a file that are looked at for what its header does not say.
const CHUNKS_MAX: usize = 1000;

/// A picture before it is decoded.
pub(super) struct Header {
    pub(super) size: Size,
    /// Where its EXIF data are in the file.
    exif: Option<Range<usize>>,
    kind: Kind,
}

enum Kind {
    Jpeg(Frame),
    Png { bits: u64 },
    Gif(gif::Parts),
    Bmp,
    WebP(WebP),
}

impl Header {
    pub(super) fn read(bytes: &[u8], limits: Limits) -> Result<Self, ImageError> {
        let format = image::guess_format(bytes).map_err(|_| ImageError::UnknownFormat)?;
        let header = match format {
            ImageFormat::Jpeg => {
                let frame = Frame::read(bytes)?;
                Self { size: frame.size, exif: frame.exif.clone(), kind: Kind::Jpeg(frame) }
            }
            ImageFormat::Png => png_header(bytes).ok_or_else(cut_short)?,
            ImageFormat::Gif => gif_parts(bytes).ok_or_else(cut_short)?,
            ImageFormat::Bmp => bmp(bytes).ok_or_else(cut_short)?,
            ImageFormat::WebP => webp(bytes).ok_or_else(cut_short)?,
            _ => return Err(ImageError::UnknownFormat),
        };
        limits.check(header.size)?;
        if let Kind::Gif(parts) = &header.kind {
            limits.check(parts.frame)?;
        }
        if header.size.pixels() == 0 {
            return Err(malformed("a side is 0"));
        }
        Ok(header)
    }

    /// The orientation that the EXIF data give, where it is not upright.
    pub(super) fn orientation(&self, bytes: &[u8]) -> Option<Orientation> {
        let exif = bytes.get(self.exif.clone()?)?;
        Orientation::from_exif_chunk(exif).filter(|found| *found != Orientation::NoTransforms)
    }

    pub(super) fn cost(&self, bytes: &[u8], options: DecodeOptions) -> Cost {
        let pixels = self.size.pixels();
        let result = BufferPool::bytes_taken(pixels as usize * options.channels());
        let (between, time) = match &self.kind {
            Kind::Jpeg(frame) => frame.cost(bytes.len() as u64, options),
            kind => kind.cost(self.size, bytes.len() as u64),
        };
        let turned = options.upright && self.orientation(bytes).is_some();
        let (results, turning) = if turned { (2, pixels * 4) } else { (1, 0) };
        Cost::new((result * results).saturating_add(between as usize), time + turning)
    }

    pub(super) fn decode(
        &self,
        work: Work<'_>,
        bytes: &[u8],
        options: DecodeOptions,
    ) -> Result<Pixels, ImageError> {
        match &self.kind {
            Kind::Jpeg(frame) => frame.decode(work, bytes, options),
            Kind::Png { .. } => png::decode(work, bytes, self.size, options),
            Kind::Gif(parts) => parts.decode(work, bytes, options),
            Kind::Bmp => whole::decode_bmp(work, bytes, self.size, options),
            Kind::WebP(webp) => {
                let shape = whole::Shape { size: self.size, options };
                webp.decode(work, bytes, shape)
            }
        }
    }
}

/// Nanoseconds for a picture of any size, and for a byte of compressed data.
const PICTURE_NS: u64 = 20_000;
const BYTE_NS: u64 = 15;

impl Kind {
    /// Bytes between the file and the result, and nanoseconds.
    fn cost(&self, size: Size, file: u64) -> (u64, u64) {
        let pixels = size.pixels();
        let (bytes, time) = match self {
            Self::Jpeg(_) => (0, 0),
            Self::Png { bits } => {
                (png::bytes(size, *bits), pixels * (2 + bits / 4) + file * BYTE_NS)
            }
            Self::Gif(parts) => {
                let time = (pixels + 2 * parts.frame.pixels()) * 4 + file * BYTE_NS;
                (gif::bytes(parts.frame), time)
            }
            // Not compressed, or in runs.
            Self::Bmp => (whole::bmp_bytes(size), pixels * 8 + file),
            Self::WebP(webp) => (webp.bytes(size, file), pixels * 65 + file * BYTE_NS),
        };
        (bytes, PICTURE_NS + time)
    }
}

fn cut_short() -> ImageError {
    malformed("the header is damaged or cut short")
}

fn at<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

fn big_u32(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(u32::from_be_bytes)
}

fn little_u32(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(u32::from_le_bytes)
}

fn little_u16(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(|two| u16::from_le_bytes(two).into())
}

fn little_u24(bytes: &[u8], start: usize) -> Option<u32> {
    at(bytes, start).map(|[a, b, c]| u32::from_le_bytes([a, b, c, 0]))
}

/// `IHDR` comes first; `eXIf` somewhere.
fn png_header(bytes: &[u8]) -> Option<Header> {
    let size = Size { width: big_u32(bytes, 16)?, height: big_u32(bytes, 20)? };
    let [depth, color] = at(bytes, 24)?;
    let channels = match color {
        2 => 3,
        4 => 2,
        6 => 4,
        _ => 1,
    };
    let kind = Kind::Png { bits: u64::from(depth.clamp(1, 16)) * channels };
    let mut start = 8;
    let mut exif = None;
    for _ in 0..CHUNKS_MAX {
        let (Some(len), Some(name)) = (big_u32(bytes, start), at::<4>(bytes, start + 4)) else {
            break;
        };
        let data = start + 8..(start + 8).saturating_add(len as usize);
        start = data.end.saturating_add(4);
        if &name == b"eXIf" {
            exif = Some(data);
            break;
        }
    }
    Some(Header { size, exif, kind })
}

/// The screen's size, and that of the first frame on it.
fn gif_parts(bytes: &[u8]) -> Option<Header> {
    let parts = gif::Parts::find(bytes, CHUNKS_MAX)?;
    Some(Header { size: parts.screen, exif: None, kind: Kind::Gif(parts) })
}

/// The older header has sides of 16 bits; a negative height stands for a picture from top to bottom.
fn bmp(bytes: &[u8]) -> Option<Header> {
    if little_u32(bytes, 14)? == 12 {
        let size = Size { width: little_u16(bytes, 18)?, height: little_u16(bytes, 20)? };
        return Some(Header { size, exif: None, kind: Kind::Bmp });
    }
    let side = |start| little_u32(bytes, start).map(|side| side.cast_signed().unsigned_abs());
    let size = Size { width: side(18)?, height: side(22)? };
    Some(Header { size, exif: None, kind: Kind::Bmp })
}

/// One of three: lossy or lossless alone, or a canvas with chunks.
fn webp(bytes: &[u8]) -> Option<Header> {
    // The decoder does not look whether all is there that it need not read.
    bytes.get(8..8 + little_u32(bytes, 4)? as usize)?;
    let chunk = Chunk::at(bytes, 12)?;
    if &chunk.name != b"VP8X" {
        let (size, is_lossy) = chunk.picture(bytes)?;
        let webp = WebP { is_lossy, is_animated: false, has_lossless: !is_lossy };
        return Some(Header { size, exif: None, kind: Kind::WebP(webp) });
    }
    let start = chunk.data.start;
    let canvas = Size {
        width: little_u24(bytes, start + 4)? + 1,
        height: little_u24(bytes, start + 7)? + 1,
    };
    let (mut exif, mut picture, mut is_animated) = (None, None, false);
    let mut has_lossless = false;
    let mut next = chunk.end;
    for seen in 0.. {
        let Some(chunk) = Chunk::at(bytes, next) else { break };
        next = chunk.end;
        // Which of several pictures the decoder takes is its own affair.
        has_lossless |= seen >= CHUNKS_MAX || matches!(&chunk.name, b"VP8L" | b"ALPH" | b"ANMF");
        if seen >= CHUNKS_MAX {
            break;
        }
        match &chunk.name {
            b"EXIF" => exif = exif.or(Some(chunk.data)),
            // The frame's place, then the chunks of its picture.
            b"ANMF" if picture.is_none() => {
                is_animated = true;
                picture = frame(bytes, chunk.data.start + 16);
            }
            b"VP8 " | b"VP8L" if picture.is_none() => picture = chunk.picture(bytes),
            _ => {}
        }
    }
    let (size, is_lossy) = picture?;
    // The decoder decodes it before it sees that it does not fit.
    let fits = size.width <= canvas.width && size.height <= canvas.height;
    let webp = WebP { is_lossy, is_animated, has_lossless };
    fits.then_some(Header { size: canvas, exif, kind: Kind::WebP(webp) })
}

/// The picture of an animation's frame, which may stand behind its alpha channel.
fn frame(bytes: &[u8], start: usize) -> Option<(Size, bool)> {
    let first = Chunk::at(bytes, start)?;
    if &first.name == b"ALPH" {
        Chunk::at(bytes, first.end)?.picture(bytes)
    } else {
        first.picture(bytes)
    }
}

/// A chunk of a WebP file.
struct Chunk {
    name: [u8; 4],
    data: Range<usize>,
    /// Where the next one begins.
    end: usize,
}

impl Chunk {
    fn at(bytes: &[u8], start: usize) -> Option<Self> {
        let name = at(bytes, start)?;
        let len = little_u32(bytes, start + 4)? as usize;
        let data = start + 8..start + 8 + len;
        Some(Self { name, end: data.end + len % 2, data })
    }

    /// Size of a picture, and whether it is lossy.
    fn picture(&self, bytes: &[u8]) -> Option<(Size, bool)> {
        let start = self.data.start;
        match &self.name {
            b"VP8 " => {
                let side = |start| little_u16(bytes, start).map(|side| side & 0x3fff);
                Some((Size { width: side(start + 6)?, height: side(start + 8)? }, true))
            }
            b"VP8L" => {
                let sides = little_u32(bytes, start + 1)?;
                let (width, height) = (1 + (sides & 0x3fff), 1 + (sides >> 14 & 0x3fff));
                Some((Size { width, height }, false))
            }
            _ => None,
        }
    }
}
