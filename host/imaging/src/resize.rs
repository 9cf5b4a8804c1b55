//! Resizing, in bands of rows.
//!
//! `fast_image_resize` resizes vertically first. Meanwhile it holds an image of the source's width
//! and the target's height, and a table of weights for each target row and column. The limit on
//! sides bounds the tables. The target is made in bands of rows, which bounds the image between
//! the passes, and between two bands the caller is asked whether to go on. If one row takes long,
//! because it depends on much of the source, it is made in strips. Most images are one band.
//!
//! `fast_image_resize` is generic: about a thousand functions are compiled for each pair of types.
//! So there is one pair for each kind of pixel, and its `resize` is not called, which would bring
//! in all thirteen kinds.

use fast_image_resize::images::{TypedImage, TypedImageRef};
use fast_image_resize::pixels::{U8, U8x3};
use fast_image_resize::{CropBox, FilterType, PixelTrait, ResizeAlg, ResizeOptions, Resizer};
use gristmill_core::BufferPool;

use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::work::{Cost, Limits, Size, Workspace};

/// How resizing weighs source pixels. All filters except `Nearest` are antialiased when an image
/// shrinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// A triangle of one pixel to each side.
    Bilinear,
    /// Catmull and Rom's cubic of two pixels to each side.
    Bicubic,
    /// A windowed sinc of three pixels to each side.
    Lanczos3,
}

impl Filter {
    fn algorithm(self) -> ResizeAlg {
        match self {
            Self::Nearest => ResizeAlg::Nearest,
            Self::Bilinear => ResizeAlg::Convolution(FilterType::Bilinear),
            Self::Bicubic => ResizeAlg::Convolution(FilterType::CatmullRom),
            Self::Lanczos3 => ResizeAlg::Convolution(FilterType::Lanczos3),
        }
    }

    /// The number of source pixels to each side that a target pixel depends on, if the image
    /// grows.
    fn support(self) -> u64 {
        match self {
            Self::Nearest => 0,
            Self::Bilinear => 1,
            Self::Bicubic => 2,
            Self::Lanczos3 => 3,
        }
    }

    /// Maximum source pixels that one target pixel depends on, along one side.
    fn taps(self, from: u32, to: u32) -> u64 {
        let (from, to) = (u64::from(from), u64::from(to));
        if self == Self::Nearest || from == to {
            return 1;
        }
        2 * (self.support() * from).div_ceil(to).max(self.support()) + 1
    }
}

/// The cost of a band: its nanoseconds, and the bytes between its two passes.
const BAND_NS: u64 = 1_500_000;
const BAND_BYTES: u64 = 4 << 20;

/// The cost of a band whose tables are large.
const TABLES_BAND_NS: u64 = 6_000_000;

/// The bytes of a weight while it is computed (`f64`) and as it is used (`i16`), and of the table's
/// entry for each target pixel.
const WEIGHT_BYTES: u64 = 8 + 2;
const ENTRY_BYTES: u64 = 64;

/// Nanoseconds to compute a weight.
const WEIGHT_NS: u64 = 12;

/// Nanoseconds to multiply 64 channel values by a weight, and for each pixel of the target.
const TAP_NS_PER_64: u64 = 8;
const PIXEL_NS: u64 = 5;

/// A part of an image, whose edges may lie within pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Window {
    fn all(size: Size) -> Self {
        Self { left: 0.0, top: 0.0, width: size.width.into(), height: size.height.into() }
    }
}

/// The measures of making an image of one size from one of another.
pub(crate) struct Resize {
    source: Size,
    /// The part of the source that becomes the target.
    window: Window,
    target: Size,
    channels: u64,
    filter: Filter,
}

impl Resize {
    /// From an image of one size to one of another.
    pub(crate) fn new(
        source: Size,
        channels: usize,
        target: Size,
        filter: Filter,
        limits: Limits,
    ) -> Result<Self, ImageError> {
        let Size { width, height } = target;
        if width == 0 || height == 0 {
            return Err(ImageError::InvalidArgument(format!("cannot resize to {width}x{height}")));
        }
        limits.check(target)?;
        Ok(Self { source, window: Window::all(source), target, channels: channels as u64, filter })
    }

    /// The same of a part of the source, which lies within it.
    pub(crate) fn of(self, window: Window) -> Self {
        Self { window, ..self }
    }

    /// The bytes of the source.
    pub(crate) fn source_bytes(&self) -> usize {
        BufferPool::bytes_taken((self.source.pixels() * self.channels) as usize)
    }

    fn is_of_all(&self) -> bool {
        self.window == Window::all(self.source)
    }

    /// Whether the target is the source.
    fn is_none(&self) -> bool {
        self.source == self.target && self.is_of_all()
    }

    /// Nanoseconds for the tables of weights, which are made again for each band.
    fn tables_ns(&self) -> u64 {
        self.weights().sum::<u64>() * WEIGHT_NS
    }

    /// The weights of both tables.
    fn weights(&self) -> impl Iterator<Item = u64> {
        let sides =
            [(self.source.width, self.target.width), (self.source.height, self.target.height)];
        let filter = self.filter;
        sides.into_iter().map(move |(from, to)| filter.taps(from, to) * u64::from(to))
    }

    /// Nanoseconds for one row of the vertical pass.
    fn down_ns(&self) -> u64 {
        let taps = self.filter.taps(self.source.height, self.target.height);
        let is_passed = self.filter != Filter::Nearest && self.source.height != self.target.height;
        let width = if is_passed { u64::from(self.source.width) } else { 0 };
        width * taps * self.channels * TAP_NS_PER_64 / 64
    }

    /// Nanoseconds for one row of the target.
    fn row_ns(&self) -> u64 {
        let taps = self.filter.taps(self.source.width, self.target.width);
        let width = u64::from(self.target.width);
        self.down_ns() + width * (taps * self.channels * TAP_NS_PER_64 / 64 + PIXEL_NS)
    }

    /// The longest time for one band. Each band needs its own tables, so very short bands would be
    /// wasteful.
    fn band_ns(&self) -> u64 {
        let tables = self.tables_ns();
        (tables * 8).min(TABLES_BAND_NS).max(tables).max(BAND_NS)
    }

    /// The number of target rows in a band.
    fn band_rows(&self) -> u32 {
        let by_time = self.band_ns() / self.row_ns().max(1);
        let by_bytes = BAND_BYTES / (u64::from(self.source.width) * self.channels).max(1);
        by_time.min(by_bytes).clamp(1, self.target.height.into()) as u32
    }

    /// The number of source columns that are processed at a time.
    fn strip_columns(&self) -> u32 {
        let width = u64::from(self.source.width);
        let strips = self.down_ns().div_ceil(self.band_ns());
        if self.band_rows() > 1 || strips <= 1 {
            return self.source.width;
        }
        width.div_ceil(strips).max(1) as u32
    }

    /// Make all of the target.
    fn make<P: PixelTrait>(
        &self,
        work: Workspace<'_>,
        source: &[u8],
        target: &mut [u8],
    ) -> Result<(), ImageError> {
        let Size { width, height } = self.source;
        let source = TypedImageRef::<P>::from_buffer(width, height, source).map_err(failed)?;
        let mut band = Band { work, plan: self, source, resizer: Resizer::new(), top: 0 };
        let stride = self.target.width as usize * self.channels as usize;
        target.chunks_mut(stride * self.band_rows() as usize).try_for_each(|rows| band.make(rows))
    }

    pub(crate) fn cost(&self) -> Cost {
        let result = BufferPool::bytes_taken((self.target.pixels() * self.channels) as usize);
        if self.is_none() {
            return Cost::default();
        }
        let rows = u64::from(self.band_rows());
        let strip = match self.strip_columns() {
            columns if columns < self.source.width => columns,
            _ => 0,
        };
        let between = u64::from(self.source.width + strip) * rows * self.channels;
        let entries = u64::from(self.target.width) + u64::from(self.target.height);
        let tables = self.weights().sum::<u64>() * WEIGHT_BYTES + entries * ENTRY_BYTES;
        let strips = u64::from(self.source.width.div_ceil(self.strip_columns()));
        let bands = u64::from(self.target.height).div_ceil(rows) * strips;
        let time = 2_000 + u64::from(self.target.height) * self.row_ns() + bands * self.tables_ns();
        Cost::new(result + (between + tables) as usize, time)
    }

    /// Resize an image of the source's size.
    pub(crate) fn apply(&self, work: Workspace<'_>, source: &Pixels) -> Result<Pixels, ImageError> {
        if self.is_none() {
            return Ok(source.clone());
        }
        let mut made = work.pool.zeroed((self.target.pixels() * self.channels) as usize);
        if source.is_gray() {
            self.make::<U8>(work, source.data(), made.as_mut())?;
        } else {
            self.make::<U8x3>(work, source.data(), made.as_mut())?;
        }
        Pixels::new(self.target, source.is_gray(), made.freeze())
    }
}

impl Pixels {
    /// The cost of resizing a part of this size.
    pub(crate) fn part_resize_cost(
        &self,
        part: Size,
        target: Size,
        filter: Filter,
        limits: Limits,
    ) -> Result<Cost, ImageError> {
        Ok(Resize::new(part, self.channels(), target, filter, limits)?.cost())
    }

    /// The cost of [`resize`](Self::resize).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if the target is empty, [`ImageError::TooLarge`] if it is
    /// over the limits.
    pub fn resize_cost(
        &self,
        target: Size,
        filter: Filter,
        limits: Limits,
    ) -> Result<Cost, ImageError> {
        self.part_resize_cost(self.size(), target, filter, limits)
    }

    /// The image at another size. The aspect ratio may change.
    ///
    /// # Errors
    /// As for [`resize_cost`](Self::resize_cost), and [`ImageError::Stopped`] if the check of
    /// `work` refuses.
    pub fn resize(
        &self,
        work: Workspace<'_>,
        target: Size,
        filter: Filter,
        limits: Limits,
    ) -> Result<Self, ImageError> {
        Resize::new(self.size(), self.channels(), target, filter, limits)?.apply(work, self)
    }
}

/// Iterates over the rows of the target, one band after the other.
struct Band<'a, P> {
    work: Workspace<'a>,
    plan: &'a Resize,
    source: TypedImageRef<'a, P>,
    resizer: Resizer,
    /// The next band's first row.
    top: u32,
}

impl<P: PixelTrait> Band<'_, P> {
    fn make(&mut self, target: &mut [u8]) -> Result<(), ImageError> {
        let Resize { source, window, target: size, channels, filter } = *self.plan;
        let rows = (target.len() as u64 / (u64::from(size.width) * channels)) as u32;
        let part = self.part(rows);
        self.top += rows;
        let options = ResizeOptions::new().resize_alg(filter.algorithm()).use_alpha(false);
        let mut target = TypedImage::<P>::from_buffer(size.width, rows, target).map_err(failed)?;
        let columns = self.plan.strip_columns();
        if columns == source.width {
            (self.work.check)()?;
            let is_all = rows == size.height && self.plan.is_of_all();
            let options = if is_all { options } else { crop(options, part) };
            return self.resizer.resize_typed(&self.source, &mut target, &options).map_err(failed);
        }
        let mut between = vec![P::default(); source.width as usize * rows as usize];
        for left in (0..source.width).step_by(columns as usize) {
            (self.work.check)()?;
            let width = columns.min(source.width - left);
            let part = CropBox { left: left.into(), width: width.into(), ..part };
            let mut strip = TypedImage::<P>::new(width, rows);
            let options = crop(options, part);
            self.resizer.resize_typed(&self.source, &mut strip, &options).map_err(failed)?;
            let rows = between.chunks_exact_mut(source.width as usize);
            for (row, part) in rows.zip(strip.pixels().chunks_exact(width as usize)) {
                row[left as usize..][..part.len()].copy_from_slice(part);
            }
        }
        (self.work.check)()?;
        let between = TypedImageRef::new(source.width, rows, &between).map_err(failed)?;
        let Window { left, width, .. } = window;
        let part = CropBox { left, top: 0.0, width, height: rows.into() };
        let options = crop(options, part);
        self.resizer.resize_typed(&between, &mut target, &options).map_err(failed)
    }

    /// The part of the source for the next `rows` of the target. Weights use pixels beyond its
    /// edge, so that bands join without a seam.
    fn part(&self, rows: u32) -> CropBox {
        let Resize { window, target, .. } = self.plan;
        let (height, bottom) = (window.height, window.top + window.height);
        let at = |row: u32| {
            (window.top + height * f64::from(row) / f64::from(target.height)).min(bottom)
        };
        let top = at(self.top);
        let end = at(self.top + rows);
        let height = (end - top).min(bottom - top);
        CropBox { left: window.left, top, width: window.width, height }
    }
}

fn crop(options: ResizeOptions, part: CropBox) -> ResizeOptions {
    options.crop(part.left, part.top, part.width, part.height)
}

fn failed(error: impl std::fmt::Display) -> ImageError {
    ImageError::InvalidArgument(error.to_string())
}
