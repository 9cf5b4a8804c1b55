//! The limits and the cost of an operation, and how it is stopped.

use std::time::Duration;

use gristmill_core::BufferPool;

use crate::error::{Bound, ImageError, Stopped};

/// The memory of an operation, and the caller's check.
#[derive(Clone, Copy)]
pub struct Workspace<'a> {
    /// The pool for its result.
    pub pool: &'a BufferPool,
    /// Called about every millisecond of work. If it refuses, the operation ends with
    /// [`ImageError::Stopped`].
    pub check: &'a dyn Fn() -> Result<(), Stopped>,
}

/// The cost of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// An upper bound on the bytes that it holds at a time. They include its result and all
    /// intermediates, but not its input.
    pub bytes: usize,
    /// The estimated time for which it keeps a processor busy. The estimate is rather too high than
    /// too low.
    pub cpu: Duration,
}

impl Cost {
    /// A cost of `bytes` and `nanoseconds`.
    pub(crate) fn new(bytes: usize, nanoseconds: u64) -> Self {
        Self { bytes, cpu: Duration::from_nanos(nanoseconds) }
    }
}

/// How large images may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Width times height.
    pub pixels_max: u64,
    /// Width and height each.
    pub side_max: u32,
}

impl Limits {
    /// The default limit on a side: the longest side that a JPEG can have.
    pub const SIDE_MAX: u32 = 65_535;

    /// At most `pixels_max` pixels, with sides of at most [`SIDE_MAX`](Self::SIDE_MAX).
    pub fn of_pixels(pixels_max: u64) -> Self {
        Self { pixels_max, side_max: Self::SIDE_MAX }
    }

    /// Check the size of an image.
    ///
    /// # Errors
    /// [`ImageError::TooLarge`] if it is over a limit.
    pub fn check(&self, size: Size) -> Result<(), ImageError> {
        let (width, height) = (size.width.into(), size.height.into());
        let over = |limit| Err(ImageError::TooLarge { width, height, limit });
        if size.width.max(size.height) > self.side_max {
            return over(Bound::Side(self.side_max));
        }
        if size.pixels() > self.pixels_max {
            return over(Bound::Pixels(self.pixels_max));
        }
        Ok(())
    }
}

/// An image's size in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl Size {
    /// Width times height.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}
