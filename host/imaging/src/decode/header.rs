//! An image's header: its size, the cost of decoding it, its orientation.

use std::ops::Range;

use gristmill_core::BufferPool;
use image::ImageFormat;
use image::metadata::Orientation;

use super::bytes::{CHUNKS_MAX, at, big_u32, little_u16, little_u32};
use super::canvas::Canvas;
use super::jpeg::{Frame, Reduction};
use super::options::{DecodeOptions, malformed};
use super::walk::Walk;
use super::webp::{Layout, WebP};
use super::{gif, png, turn, whole};
use crate::error::ImageError;
use crate::work::{Cost, Limits, Size, Workspace};

/// The header of an image.
pub(super) struct Header {
    pub(super) size: Size,
    /// The orientation in the EXIF data, if it is not upright.
    pub(super) orientation: Option<Orientation>,
    kind: Kind,
}

/// A header before it is checked against the limits.
struct Found {
    size: Size,
    /// The place of the EXIF data in the file.
    exif: Option<Range<usize>>,
    kind: Kind,
}

enum Kind {
    Jpeg(Frame),
    Png { bits: u64 },
    Gif(gif::FrameParts),
    Bmp,
    WebP(WebP),
}

impl Header {
    pub(super) fn read(
        bytes: &[u8],
        limits: Limits,
        walk: &mut Walk<'_>,
    ) -> Result<Self, ImageError> {
        let format = image::guess_format(bytes).map_err(|_| ImageError::UnknownFormat)?;
        let Found { size, exif, kind } = match format {
            ImageFormat::Jpeg => {
                let frame = Frame::read(bytes, walk)?;
                Found { size: frame.size, exif: frame.exif.clone(), kind: Kind::Jpeg(frame) }
            }
            ImageFormat::Png => png_header(bytes).ok_or_else(cut_short)?,
            ImageFormat::Gif => {
                let parts =
                    gif::FrameParts::find(bytes, CHUNKS_MAX, walk)?.ok_or_else(cut_short)?;
                limits.check(parts.frame)?;
                Found { size: parts.screen, exif: None, kind: Kind::Gif(parts) }
            }
            ImageFormat::Bmp => bmp(bytes).ok_or_else(cut_short)?,
            ImageFormat::WebP => {
                let layout = Layout::find(bytes).ok_or_else(cut_short)?;
                limits.check(layout.canvas)?;
                let kind = Kind::WebP(layout.measure(walk)?);
                Found { size: layout.canvas, exif: layout.exif, kind }
            }
            _ => return Err(ImageError::UnknownFormat),
        };
        limits.check(size)?;
        if size.pixels() == 0 {
            return Err(malformed("a side is 0"));
        }
        let exif = exif.and_then(|exif| bytes.get(exif)).unwrap_or_default();
        walk.steps(exif.len())?;
        let orientation = Orientation::from_exif_chunk(exif)
            .filter(|orientation| *orientation != Orientation::NoTransforms);
        Ok(Self { size, orientation, kind })
    }

    /// How its pixels are turned.
    pub(super) fn turn(&self, options: DecodeOptions) -> Option<Orientation> {
        self.orientation.filter(|_| options.upright)
    }

    /// The strongest reduction at which both sides stay at least twice as long as those of `size`.
    pub(super) fn reduction(&self, size: Size, options: DecodeOptions) -> Option<Reduction> {
        let Kind::Jpeg(frame) = &self.kind else { return None };
        let is_large = |reduction: Reduction| {
            let needed = |side: u32| 2 * u64::from(reduction.divisor()) * u64::from(side);
            let Size { width, height } = self.size;
            u64::from(width) >= needed(size.width) && u64::from(height) >= needed(size.height)
        };
        let mut reductions = Reduction::ALL.into_iter();
        reductions.find(|other| is_large(*other) && frame.is_reducible(*other, options))
    }

    /// The size that it is decoded to.
    pub(super) fn decoded_size(&self, reduction: Option<Reduction>) -> Size {
        reduction.map_or(self.size, |reduction| reduction.of(self.size))
    }

    pub(super) fn cost(
        &self,
        bytes: &[u8],
        options: DecodeOptions,
        reduction: Option<Reduction>,
    ) -> Cost {
        let size = self.decoded_size(reduction);
        let result = BufferPool::bytes_taken(size.pixels() as usize * options.channels());
        let file = bytes.len() as u64;
        let (between, time) = match (&self.kind, reduction) {
            (Kind::Jpeg(frame), Some(reduction)) => frame.reduced_cost(file, reduction),
            (Kind::Jpeg(frame), None) => frame.cost(file, options),
            (kind, _) => kind.cost(self.size, file),
        };
        // The image is turned when the decoder holds nothing any more.
        let (turning, turning_ns) = match self.turn(options) {
            Some(_) => (turn::bytes(size, options), size.pixels() * 4),
            None => (0, 0),
        };
        let held = result.saturating_add(between.max(turning) as usize);
        Cost::new(held, time + turning_ns)
    }

    pub(super) fn decode(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        options: DecodeOptions,
        reduction: Option<Reduction>,
    ) -> Result<Canvas, ImageError> {
        match &self.kind {
            Kind::Jpeg(frame) => match reduction {
                Some(reduction) => frame.decode_reduced(work, bytes, options, reduction),
                None => frame.decode(work, bytes, options),
            },
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

/// Nanoseconds for an image of any size, and for a byte of compressed data.
const PICTURE_NS: u64 = 20_000;
const BYTE_NS: u64 = 15;

/// Nanoseconds for a row of any length. An interlaced image has nearly twice as many rows as its
/// height.
const ROW_NS: u64 = 150;
const ROWS_PER_HEIGHT: u64 = 2;

impl Kind {
    /// The bytes that decoding holds besides the file and the result, and its nanoseconds.
    fn cost(&self, size: Size, file: u64) -> (u64, u64) {
        let pixels = size.pixels();
        let rows = |size: Size| u64::from(size.height) * ROWS_PER_HEIGHT * ROW_NS;
        let (bytes, time) = match self {
            Self::Jpeg(_) => (0, 0),
            Self::Png { bits } => {
                let time = pixels * (2 + bits / 4) + file * BYTE_NS + rows(size);
                (png::bytes(size, *bits), time)
            }
            Self::Gif(parts) => {
                let time = (pixels + 2 * parts.frame.pixels()) * 4 + file * BYTE_NS;
                (gif::bytes(parts.frame), time + rows(parts.frame))
            }
            // The pixels are not compressed, or coded in runs.
            Self::Bmp => (whole::bmp_bytes(size), pixels * 8 + file + rows(size)),
            Self::WebP(webp) => (webp.bytes(size, file), webp.nanoseconds(size, file)),
        };
        (bytes, PICTURE_NS + time)
    }
}

fn cut_short() -> ImageError {
    malformed("the header is damaged or cut short")
}

/// `IHDR` comes first; `eXIf` may come anywhere.
fn png_header(bytes: &[u8]) -> Option<Found> {
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
    Some(Found { size, exif, kind })
}

/// The older header has sides of 16 bits; a negative height stands for an image from top to
/// bottom.
fn bmp(bytes: &[u8]) -> Option<Found> {
    if little_u32(bytes, 14)? == 12 {
        let size = Size { width: little_u16(bytes, 18)?, height: little_u16(bytes, 20)? };
        return Some(Found { size, exif: None, kind: Kind::Bmp });
    }
    let side = |start| little_u32(bytes, start).map(|side| side.cast_signed().unsigned_abs());
    let size = Size { width: side(18)?, height: side(22)? };
    Some(Found { size, exif: None, kind: Kind::Bmp })
}
