//! JPEG at a half, a quarter or an eighth of its size.
//!
//! Of each block only the lowest coefficients are kept, and a smaller block is made of them. The
//! others are passed without being computed, several with one look at a table, and take no memory
//! if an image has several scans. So most of the time goes into reading codes. zune-jpeg has no
//! such decoding.
//!
//! Refuses what [`Frame::reduced_layout`] does not fit: CMYK, and components whose resolutions are
//! not powers of two of one another. These are decoded at their full size.

mod bits;
mod blocks;
mod codes;
mod fault;
mod layout;
mod rows;
mod scans;
mod transform;

use self::fault::damaged;
use self::layout::{Layout, Plane};
use self::rows::Rows;
use self::scans::Scans;
use super::colors::Colors;
use super::frame::Frame;
use super::stream::{self, Extent};
use crate::decode::canvas::Canvas;
use crate::decode::options::DecodeOptions;
use crate::error::ImageError;
use crate::work::{Size, Workspace};

/// The bytes of the tables for codes, for any image.
const TABLES_BYTES: u64 = 128 << 10;

/// Nanoseconds for an image of any size, for each byte of data, for each block, and for each value
/// of a pixel.
const PICTURE_NS: u64 = 300_000;
const BYTE_NS: u64 = 12;
const BLOCK_NS: u64 = 25;
const VALUE_NS: u64 = 3;

/// Nanoseconds for a block of an image whose coefficients come in several scans.
const STORED_BLOCK_NS: u64 = 350;

/// How much smaller an image is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Half,
    Quarter,
    Eighth,
}

impl Reduction {
    /// All, the strongest first.
    pub(crate) const ALL: [Self; 3] = [Self::Eighth, Self::Quarter, Self::Half];

    /// The pixels along a side of a block.
    fn eighths(self) -> usize {
        match self {
            Self::Half => 4,
            Self::Quarter => 2,
            Self::Eighth => 1,
        }
    }

    /// By what the sides are divided.
    pub(crate) fn divisor(self) -> u32 {
        match self {
            Self::Half => 2,
            Self::Quarter => 4,
            Self::Eighth => 8,
        }
    }

    /// The size that an image of `size` gets: rounded up.
    pub(crate) fn of(self, size: Size) -> Size {
        let side = |side: u32| side.div_ceil(self.divisor());
        Size { width: side(size.width), height: side(size.height) }
    }
}

impl Frame {
    /// Whether such images can be decoded at a smaller size.
    pub(crate) fn is_reducible(&self, reduction: Reduction, options: DecodeOptions) -> bool {
        let has_colors = matches!(self.colors, Colors::Gray | Colors::YCbCr | Colors::Rgb);
        let is_fit = has_colors && self.has_codes && !options.lenient;
        is_fit && self.reduced_layout(reduction).is_some()
    }

    fn reduced_layout(&self, reduction: Reduction) -> Option<Layout> {
        Layout::of(self.size, &self.components, reduction.eighths())
    }

    /// The bytes that decoding at a smaller size holds besides the file and the result, and its
    /// nanoseconds.
    pub(crate) fn reduced_cost(&self, file: u64, reduction: Reduction) -> (u64, u64) {
        let Some(layout) = self.reduced_layout(reduction) else { return (u64::MAX, u64::MAX) };
        let rows = |plane: &Plane| plane.strip_bytes() + plane.repeats_across * plane.stride;
        let rows: usize = layout.planes.iter().map(rows).sum();
        let blocks = layout.blocks() as u64;
        let stored = |plane: &Plane| {
            let blocks = layout.units_across * layout.units_down * plane.across * plane.down;
            blocks * (2 * plane.transform.kept() + if self.is_progressive { 8 } else { 0 })
        };
        let (stored, block_ns): (usize, u64) = match self.is_one_scan() {
            true => (0, BLOCK_NS),
            false => (layout.planes.iter().map(stored).sum(), STORED_BLOCK_NS),
        };
        let bytes = TABLES_BYTES + stream::len_max(file) + (rows + stored) as u64;
        let values = layout.planes.len() as u64 * layout.size.pixels();
        let time = PICTURE_NS + self.scans_ns() + file * BYTE_NS;
        (bytes, time + blocks * block_ns + values * VALUE_NS)
    }

    /// Decode at a smaller size.
    pub(crate) fn decode_reduced(
        &self,
        work: Workspace<'_>,
        bytes: &[u8],
        options: DecodeOptions,
        reduction: Reduction,
    ) -> Result<Canvas, ImageError> {
        let mut layout = self.reduced_layout(reduction).ok_or_else(damaged)?;
        let stream = stream::assemble(self, bytes, work, Extent::Whole)?;
        // In the stream components can have other names.
        for (plane, id) in layout.planes.iter_mut().zip(stream::names(self)) {
            plane.id = id;
        }
        let mut canvas = Canvas::new(work, layout.size, options);
        let mut rows = Rows::new(&layout, self.colors, &mut canvas);
        Scans::new(work, self, &layout).decode(&stream.bytes[..stream.padding], &mut rows)?;
        (work.check)()?;
        weigh_edges(&mut canvas, self.size, reduction.divisor());
        Ok(canvas)
    }
}

/// Mix the last column and row with those before, by how much of them belongs to the image, whose
/// full size is `size`. The rest is what the encoder filled its blocks with, and a resizer gives
/// all columns and rows the same weight.
fn weigh_edges(canvas: &mut Canvas, size: Size, divisor: u32) {
    let mix = |last: &mut [u8], before: &[u8], covered: u32| {
        for (last, before) in last.iter_mut().zip(before) {
            let sum = u32::from(*last) * covered + u32::from(*before) * (divisor - covered);
            *last = ((sum + divisor / 2) / divisor) as u8;
        }
    };
    let channels = if canvas.gray { 1 } else { 3 };
    let (width, height) = (canvas.size.width as usize, canvas.size.height as usize);
    let stride = width * channels;
    let data = canvas.data.as_mut();
    let covered = size.width % divisor;
    if covered > 0 && width > 1 {
        for row in data.chunks_exact_mut(stride) {
            let (before, last) = row[stride - 2 * channels..].split_at_mut(channels);
            mix(last, before, covered);
        }
    }
    let covered = size.height % divisor;
    if covered > 0 && height > 1 {
        let (before, last) = data[(height - 2) * stride..].split_at_mut(stride);
        mix(last, before, covered);
    }
}
