//! What a picture's header says: its size, what decoding it takes, which way up it is.

use std::ops::Range;

use gristmill_core::BufferPool;
use image::ImageFormat;
use image::metadata::Orientation;

use super::jpeg::Frame;
use super::{DecodeOptions, malformed, old};
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
    Gif { frame: Size },
    Bmp { bits: u64 },
    WebP { is_lossy: bool },
}

impl Header {
    pub(super) fn read(bytes: &[u8], limits: Limits) -> Result<Self, ImageError> {
        let format = image::guess_format(bytes).map_err(|_| ImageError::UnknownFormat)?;
        let header = match format {
            ImageFormat::Jpeg => {
                let frame = Frame::read(bytes)?;
                Self { size: frame.size, exif: frame.exif.clone(), kind: Kind::Jpeg(frame) }
            }
            ImageFormat::Png => png(bytes).ok_or_else(cut_short)?,
            ImageFormat::Gif => gif(bytes).ok_or_else(cut_short)?,
            ImageFormat::Bmp => bmp(bytes).ok_or_else(cut_short)?,
            ImageFormat::WebP => webp(bytes).ok_or_else(cut_short)?,
            _ => return Err(ImageError::UnknownFormat),
        };
        limits.check(header.size)?;
        if let Kind::Gif { frame } = header.kind {
            limits.check(frame)?;
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
            Kind::Png { .. } => old::decode(work, bytes, ImageFormat::Png, options),
            Kind::Gif { .. } => old::decode(work, bytes, ImageFormat::Gif, options),
            Kind::Bmp { .. } => old::decode(work, bytes, ImageFormat::Bmp, options),
            Kind::WebP { .. } => old::decode(work, bytes, ImageFormat::WebP, options),
        }
    }
}

impl Kind {
    /// Bytes between the file and the result, and nanoseconds.
    fn cost(&self, size: Size, file: u64) -> (u64, u64) {
        let pixels = size.pixels();
        match self {
            Self::Jpeg(_) => (0, 0),
            Self::Png { bits } => {
                (pixels * bits / 4 + 8 * pixels + (1 << 20), 20_000 + 20 * pixels + 10 * file)
            }
            Self::Gif { frame } => {
                let pixels = pixels + frame.pixels();
                (12 * pixels + (1 << 20), 20_000 + 10 * pixels + 10 * file)
            }
            Self::Bmp { bits } => {
                (pixels * bits / 8 + 8 * pixels + (1 << 20), 20_000 + 10 * pixels + 10 * file)
            }
            Self::WebP { .. } => {
                (20 * pixels + 2 * file + (17 << 20), 50_000 + 30 * pixels + 10 * file)
            }
        }
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
fn png(bytes: &[u8]) -> Option<Header> {
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
fn gif(bytes: &[u8]) -> Option<Header> {
    let screen = Size { width: little_u16(bytes, 6)?, height: little_u16(bytes, 8)? };
    let flags = *bytes.get(10)?;
    let mut start = 13 + if flags & 0x80 == 0 { 0 } else { 6 << (flags & 7) };
    for _ in 0..CHUNKS_MAX {
        match *bytes.get(start)? {
            // An extension: its label, then blocks up to an empty one.
            0x21 => {
                start += 2;
                loop {
                    let len = usize::from(*bytes.get(start)?);
                    start += 1 + len;
                    if len == 0 {
                        break;
                    }
                }
            }
            0x2c => {
                let width = little_u16(bytes, start + 5)?;
                let frame = Size { width, height: little_u16(bytes, start + 7)? };
                return Some(Header { size: screen, exif: None, kind: Kind::Gif { frame } });
            }
            _ => break,
        }
    }
    None
}

/// The older header has sides of 16 bits; a negative height stands for a picture from top to bottom.
fn bmp(bytes: &[u8]) -> Option<Header> {
    if little_u32(bytes, 14)? == 12 {
        let size = Size { width: little_u16(bytes, 18)?, height: little_u16(bytes, 20)? };
        return Some(Header { size, exif: None, kind: Kind::Bmp { bits: 24 } });
    }
    let side = |start| little_u32(bytes, start).map(|side| side.cast_signed().unsigned_abs());
    let size = Size { width: side(18)?, height: side(22)? };
    Some(Header { size, exif: None, kind: Kind::Bmp { bits: little_u16(bytes, 28)?.into() } })
}

/// One of three: lossy or lossless alone, or a canvas with chunks.
fn webp(bytes: &[u8]) -> Option<Header> {
    let chunk = Chunk::at(bytes, 12)?;
    if &chunk.name != b"VP8X" {
        let (size, is_lossy) = chunk.picture(bytes)?;
        return Some(Header { size, exif: None, kind: Kind::WebP { is_lossy } });
    }
    let start = chunk.data.start;
    let canvas = Size {
        width: little_u24(bytes, start + 4)? + 1,
        height: little_u24(bytes, start + 7)? + 1,
    };
    let (mut exif, mut picture) = (None, None);
    let mut next = chunk.end;
    for _ in 0..CHUNKS_MAX {
        let Some(chunk) = Chunk::at(bytes, next) else { break };
        next = chunk.end;
        match &chunk.name {
            b"EXIF" => exif = exif.or(Some(chunk.data)),
            // The frame's place, then the chunks of its picture.
            b"ANMF" if picture.is_none() => picture = frame(bytes, chunk.data.start + 16),
            b"VP8 " | b"VP8L" if picture.is_none() => picture = chunk.picture(bytes),
            _ => {}
        }
    }
    let (size, is_lossy) = picture?;
    // The decoder decodes it before it sees that it does not fit.
    let fits = size.width <= canvas.width && size.height <= canvas.height;
    fits.then_some(Header { size: canvas, exif, kind: Kind::WebP { is_lossy } })
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
