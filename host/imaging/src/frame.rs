//! Borders around an image, and sizes that keep the ratio of its sides.

use gristmill_core::BufferPool;

use crate::error::ImageError;
use crate::pixels::{COPIED_BYTES, COPY_NS_PER_KIB, Pixels, Rect};
use crate::work::{Cost, Limits, Size, Workspace};

/// The widths of a border, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Border {
    /// To the left.
    pub left: u32,
    /// Above.
    pub top: u32,
    /// To the right.
    pub right: u32,
    /// Below.
    pub bottom: u32,
}

/// An image in the middle of a larger one: its size there, and the border around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letterbox {
    /// The image's size within the frame.
    pub inner: Size,
    /// The rest of the frame.
    pub border: Border,
}

impl Size {
    /// The size of the same ratio whose shorter side is `shorter`. The longer side is rounded down,
    /// as torchvision's `Resize` does.
    pub fn with_shorter_side(self, shorter: u32) -> Self {
        let (short, long) = (self.width.min(self.height), self.width.max(self.height));
        let scaled = u64::from(shorter) * u64::from(long) / u64::from(short.max(1));
        let longer = u32::try_from(scaled).unwrap_or(u32::MAX);
        if self.width <= self.height {
            Self { width: shorter, height: longer }
        } else {
            Self { width: longer, height: shorter }
        }
    }

    /// [`with_shorter_side`](Self::with_shorter_side), with the longer side rounded to the nearest.
    pub fn with_shorter_side_rounded(self, shorter: u32) -> Self {
        let scale = f64::from(shorter) / f64::from(self.width.min(self.height).max(1));
        self.scaled(scale)
    }

    /// The part of size `part` in the middle of an image of this size. A half pixel is rounded to
    /// the even number, as torchvision's `CenterCrop` does. A part that is too large begins at 0.
    pub fn middle(self, part: Self) -> Rect {
        let start = |whole: u32, part: u32| {
            let margin = whole.saturating_sub(part);
            margin / 2 + (margin & (margin / 2) & 1)
        };
        Rect { x: start(self.width, part.width), y: start(self.height, part.height), size: part }
    }

    /// How an image of this size lies in a frame: as large as it fits, in the middle. If a border
    /// cannot be halved, the right or lower half is larger by one.
    pub fn letterboxed(self, frame: Self) -> Letterbox {
        let side = |frame: u32, side_length: u32| f64::from(frame) / f64::from(side_length.max(1));
        let inner = self.scaled(side(frame.width, self.width).min(side(frame.height, self.height)));
        let inner =
            Self { width: inner.width.min(frame.width), height: inner.height.min(frame.height) };
        let (free_x, free_y) = (frame.width - inner.width, frame.height - inner.height);
        let (left, top) = (free_x / 2, free_y / 2);
        let border = Border { left, top, right: free_x - left, bottom: free_y - top };
        Letterbox { inner, border }
    }

    fn scaled(self, scale: f64) -> Self {
        // Saturates.
        let side = |side_length: u32| ((f64::from(side_length) * scale).round() as u32).max(1);
        Self { width: side(self.width), height: side(self.height) }
    }
}

impl Pixels {
    /// The cost of [`pad`](Self::pad).
    ///
    /// # Errors
    /// [`ImageError::TooLarge`] if the result is over the limits, [`ImageError::InvalidArgument`]
    /// if `fill` has neither one value per channel nor none.
    pub fn pad_cost(
        &self,
        border: Border,
        fill: &[u8],
        limits: Limits,
    ) -> Result<Cost, ImageError> {
        if !fill.is_empty() && fill.len() != self.channels() {
            return Err(ImageError::InvalidArgument(format!(
                "fill has {} values, but the picture has {} channels",
                fill.len(),
                self.channels()
            )));
        }
        let size = self.padded(border);
        limits.check(size)?;
        let bytes = size.pixels() as usize * self.channels();
        let copying = bytes as u64 / 1024 * COPY_NS_PER_KIB + u64::from(size.height) * 60;
        Ok(Cost::new(BufferPool::bytes_taken(bytes), 1_000 + copying))
    }

    /// The image with a border of the colour `fill`, which has one value per channel; none means
    /// 0.
    ///
    /// # Errors
    /// As for [`pad_cost`](Self::pad_cost), and [`ImageError::Stopped`] if the check of `work`
    /// refuses.
    pub fn pad(
        &self,
        work: Workspace<'_>,
        border: Border,
        fill: &[u8],
        limits: Limits,
    ) -> Result<Self, ImageError> {
        self.pad_cost(border, fill, limits)?;
        let channels = self.channels();
        let fill = if fill.is_empty() { &[0; 3][..channels] } else { fill };
        let size = self.padded(border);
        let row_bytes = size.width as usize * channels;
        let blank = fill.repeat(size.width as usize);
        let (left, right) = (border.left as usize * channels, border.right as usize * channels);
        let mut target = work.pool.begin(row_bytes * size.height as usize);
        let mut unchecked = 0;
        let mut rows = self.data().chunks_exact(self.width() as usize * channels);
        for y in 0..size.height {
            let row = if y < border.top { None } else { rows.next() };
            match row {
                Some(row) => {
                    target.append(&blank[..left]);
                    target.append(row);
                    target.append(&blank[..right]);
                }
                None => target.append(&blank),
            }
            unchecked += row_bytes;
            if unchecked >= COPIED_BYTES {
                (work.check)()?;
                unchecked = 0;
            }
        }
        Self::new(size, self.is_gray(), target.freeze())
    }

    /// The size with the border. It saturates, which is over any limit.
    fn padded(&self, border: Border) -> Size {
        let side = |side_length: u32, before: u32, after: u32| {
            side_length.saturating_add(before).saturating_add(after)
        };
        Size {
            width: side(self.width(), border.left, border.right),
            height: side(self.height(), border.top, border.bottom),
        }
    }
}
