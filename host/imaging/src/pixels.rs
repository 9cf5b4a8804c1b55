//! A decoded image, and cropping it.

use std::sync::Arc;

use gristmill_core::{Buffer, BufferPool};

use crate::error::ImageError;
use crate::work::{Cost, Size, Workspace};

/// An image of 8 bits a channel, row-major, channels interleaved. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Pixels {
    size: Size,
    gray: bool,
    data: Arc<Buffer>,
}

/// A part of an image: its upper left corner and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rect {
    /// Columns to the left of it.
    pub x: u32,
    /// Rows above it.
    pub y: u32,
    /// Its size.
    pub size: Size,
}

/// The bytes that are copied between two checks, about.
pub(crate) const COPIED_BYTES: usize = 1 << 20;

/// Nanoseconds to copy 1 KiB that is not in a cache.
pub(crate) const COPY_NS_PER_KIB: u64 = 300;

impl Pixels {
    /// An image of `data`, which must be width * height * channels long.
    ///
    /// # Errors
    /// [`ImageError::Malformed`] if it has another length, or a side is 0.
    pub fn new(size: Size, gray: bool, data: Arc<Buffer>) -> Result<Self, ImageError> {
        let pixels = Self { size, gray, data };
        let expected = size.pixels() * pixels.channels() as u64;
        if expected == 0 || pixels.data().len() as u64 != expected {
            return Err(ImageError::Malformed(format!(
                "{}x{} picture of {} bytes",
                size.width,
                size.height,
                pixels.data().len()
            )));
        }
        Ok(pixels)
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.size.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        self.size.height
    }

    /// Its size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Whether it has one channel of luma instead of three of colour.
    pub fn is_gray(&self) -> bool {
        self.gray
    }

    /// The bytes, row-major, channels interleaved.
    pub fn data(&self) -> &[u8] {
        self.data.as_bytes()
    }

    pub(crate) fn channels(&self) -> usize {
        if self.gray { 1 } else { 3 }
    }

    /// The cost of [`crop`](Self::crop).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if the part is empty or not within the image.
    pub fn crop_cost(&self, part: Rect) -> Result<Cost, ImageError> {
        let fits = |start: u32, len: u32, side: u32| {
            len > 0 && start.checked_add(len).is_some_and(|end| end <= side)
        };
        let Rect { x, y, size } = part;
        if !fits(x, size.width, self.width()) || !fits(y, size.height, self.height()) {
            return Err(ImageError::InvalidArgument(format!(
                "crop of {}x{} at ({x}, {y}) is not within {}x{}",
                size.width,
                size.height,
                self.width(),
                self.height()
            )));
        }
        let bytes = size.pixels() as usize * self.channels();
        let copying = bytes as u64 / 1024 * COPY_NS_PER_KIB + u64::from(size.height) * 20;
        Ok(Cost::new(BufferPool::bytes_taken(bytes), 1_000 + copying))
    }

    /// A part of the image.
    ///
    /// # Errors
    /// As for [`crop_cost`](Self::crop_cost), and [`ImageError::Stopped`] if the check of `work`
    /// refuses.
    pub fn crop(&self, work: Workspace<'_>, part: Rect) -> Result<Self, ImageError> {
        self.crop_cost(part)?;
        let channels = self.channels();
        let (stride, row) = (self.width() as usize * channels, part.size.width as usize * channels);
        let mut target = work.pool.begin(row * part.size.height as usize);
        let rows = self.data().chunks_exact(stride).skip(part.y as usize);
        let mut unchecked = 0;
        for source in rows.take(part.size.height as usize) {
            target.append(&source[part.x as usize * channels..][..row]);
            unchecked += row;
            if unchecked >= COPIED_BYTES {
                (work.check)()?;
                unchecked = 0;
            }
        }
        Self::new(part.size, self.gray, target.freeze())
    }
}

/// The bytes, as [`Pixels::data`] has them.
impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        self.data()
    }
}
