//! Many parts of an image at once, all of one size if that is asked for: the objects that a
//! detector has found, for a classifier.

use std::time::Duration;

use gristmill_core::BufferPool;

use crate::error::ImageError;
use crate::pixels::{Pixels, Rect};
use crate::resize::Filter;
use crate::work::{Cost, Limits, Size, Workspace};

/// Maximum parts of one call.
const PARTS_MAX: usize = 1024;

/// Parts of an image, and the size that they get.
#[derive(Clone, Copy, Debug)]
pub struct Crops<'a> {
    /// The parts: at most 1024. Each must be within the image.
    pub parts: &'a [Rect],
    /// The size to which each part is resized. None leaves their own sizes.
    pub size: Option<Size>,
    /// How resizing weighs source pixels.
    pub filter: Filter,
}

impl Pixels {
    /// The cost of [`crop_many`](Self::crop_many).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if there are too many parts, one of them is empty or not
    /// within the image, or the size is empty; [`ImageError::TooLarge`] if the size is over the
    /// limits.
    pub fn crop_many_cost(&self, crops: Crops<'_>, limits: Limits) -> Result<Cost, ImageError> {
        let Crops { parts, size, filter } = crops;
        if parts.len() > PARTS_MAX {
            let count = parts.len();
            let why = format!("{count} boxes are given; the limit is {PARTS_MAX}");
            return Err(ImageError::InvalidArgument(why));
        }
        let (mut results, mut between, mut cpu) = (0_usize, 0, Duration::ZERO);
        for (index, part) in parts.iter().enumerate() {
            let crop = self.crop_cost(*part).map_err(|error| of_box(index, error))?;
            cpu += crop.cpu;
            match size {
                Some(target) => {
                    let resize = self.part_resize_cost(part.size, target, filter, limits)?;
                    let result = target.pixels() as usize * self.channels();
                    results = results.saturating_add(BufferPool::bytes_taken(result));
                    between = between.max(crop.bytes.saturating_add(resize.bytes));
                    cpu += resize.cpu;
                }
                None => results = results.saturating_add(crop.bytes),
            }
        }
        Ok(Cost { bytes: results.saturating_add(between), cpu })
    }

    /// Parts of the image, in their order.
    ///
    /// # Errors
    /// As for [`crop_many_cost`](Self::crop_many_cost), and [`ImageError::Stopped`] if the check of
    /// `work` refuses.
    pub fn crop_many(
        &self,
        work: Workspace<'_>,
        crops: Crops<'_>,
        limits: Limits,
    ) -> Result<Vec<Self>, ImageError> {
        self.crop_many_cost(crops, limits)?;
        let Crops { parts, size, filter } = crops;
        let made = |part: &Rect| -> Result<Self, ImageError> {
            (work.check)()?;
            let part = self.crop(work, *part)?;
            match size {
                Some(target) => part.resize(work, target, filter, limits),
                None => Ok(part),
            }
        };
        parts.iter().map(made).collect()
    }
}

/// The error of one part says which it is.
fn of_box(index: usize, error: ImageError) -> ImageError {
    match error {
        ImageError::InvalidArgument(why) => {
            ImageError::InvalidArgument(format!("boxes[{index}]: {why}"))
        }
        other => other,
    }
}
