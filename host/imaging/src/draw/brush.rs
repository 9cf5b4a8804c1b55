//! Filling rectangles of an image, cut at its edges.

use crate::error::Stopped;
use crate::tensor::luma;
use crate::work::{Size, Workspace};

/// Nanoseconds to fill a row, and a pixel of it.
const ROW_NS: u64 = 6;
const PIXEL_NS: u64 = 1;

/// The nanoseconds, estimated, after which the caller is asked whether to go on.
const BETWEEN_NS: u64 = 300_000;

/// A rectangle, by its edges. It is empty if they are in the wrong order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) left: i64,
    pub(super) top: i64,
    pub(super) right: i64,
    pub(super) bottom: i64,
}

impl Area {
    pub(super) const NONE: Self = Self { left: 0, top: 0, right: 0, bottom: 0 };

    /// A rectangle by its corner and its sides.
    pub(super) fn at(left: i64, top: i64, width: i64, height: i64) -> Self {
        Self { left, top, right: left + width, bottom: top + height }
    }

    /// The part of it that is within an image.
    pub(super) fn within(self, size: Size) -> Self {
        Self {
            left: self.left.max(0),
            top: self.top.max(0),
            right: self.right.min(size.width.into()),
            bottom: self.bottom.min(size.height.into()),
        }
    }

    /// Nanoseconds to fill it, if it is within an image.
    pub(super) fn cost_ns(self) -> u64 {
        if self.left >= self.right || self.top >= self.bottom {
            return ROW_NS;
        }
        let (width, height) = (self.right - self.left, self.bottom - self.top);
        height.unsigned_abs() * (ROW_NS + width.unsigned_abs() * PIXEL_NS)
    }
}

/// Fills rectangles with one colour.
pub(super) struct Brush<'a> {
    work: Workspace<'a>,
    data: &'a mut [u8],
    pub(super) size: Size,
    gray: bool,
    color: [u8; 3],
    /// Estimated nanoseconds since the last check.
    unchecked_ns: u64,
}

impl<'a> Brush<'a> {
    pub(super) fn new(work: Workspace<'a>, data: &'a mut [u8], size: Size, gray: bool) -> Self {
        Self { work, data, size, gray, color: [0; 3], unchecked_ns: 0 }
    }

    /// Take another colour.
    pub(super) fn take(&mut self, color: [u8; 3]) {
        self.color = color;
    }

    /// Fill the part of `area` that is within the image.
    pub(super) fn fill(&mut self, area: Area) -> Result<(), Stopped> {
        let area = area.within(self.size);
        let cost_ns = area.cost_ns();
        if cost_ns <= BETWEEN_NS {
            return self.fill_band(area, cost_ns);
        }
        let row_ns = Area { bottom: area.top + 1, ..area }.cost_ns();
        let rows = BETWEEN_NS.div_ceil(row_ns).cast_signed();
        let mut rest = area;
        while rest.top < area.bottom {
            let band = Area { bottom: area.bottom.min(rest.top + rows), ..rest };
            self.fill_band(band, band.cost_ns())?;
            rest.top = band.bottom;
        }
        Ok(())
    }

    /// Fill `area`, which is within the image or empty, and costs so much. The caller is asked
    /// first, if it is time.
    fn fill_band(&mut self, area: Area, cost_ns: u64) -> Result<(), Stopped> {
        self.unchecked_ns += cost_ns;
        if self.unchecked_ns >= BETWEEN_NS {
            (self.work.check)()?;
            self.unchecked_ns = 0;
        }
        if area.left >= area.right || area.top >= area.bottom {
            return Ok(());
        }
        // Within the image, so they are not negative.
        let (left, right) = (area.left as usize, area.right as usize);
        let (top, bottom) = (area.top as usize, area.bottom as usize);
        let width = self.size.width as usize;
        if self.gray {
            let value = luma(self.color);
            for row in self.data.chunks_exact_mut(width).skip(top).take(bottom - top) {
                row[left..right].fill(value);
            }
        } else {
            let (pixels, _) = self.data.as_chunks_mut::<3>();
            for row in pixels.chunks_exact_mut(width).skip(top).take(bottom - top) {
                row[left..right].fill(self.color);
            }
        }
        Ok(())
    }
}
