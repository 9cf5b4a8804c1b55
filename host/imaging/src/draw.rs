//! Shapes on an image: rectangles, polygons and labels.
//!
//! Everything is made of filled rectangles, which are cut at the edges of the image before they are
//! filled, so the time depends on the pixels that change. Coordinates may have any value. Lines are
//! computed in IEEE 754 with a fixed order of operations, so that the reference hosts of the SDKs
//! change the same pixels.

mod brush;
mod label;
mod line;
mod shape;

use gristmill_core::BufferPool;

use self::brush::{Area, Brush};
pub use self::shape::{Label, Polygon, Rectangle, Shape};
use crate::error::ImageError;
use crate::pixels::{COPIED_BYTES, COPY_NS_PER_KIB, Pixels};
use crate::work::{Cost, Workspace};

/// Maximum shapes of one call, and points of all its polygons.
const SHAPES_MAX: usize = 4096;
const POINTS_MAX: usize = 65_536;

/// Nanoseconds to look at a shape.
const SHAPE_NS: u64 = 100;

/// The parts of a rectangle's outline: its four sides, or all of it.
fn parts_of(shape: &Rectangle) -> [Area; 4] {
    let all = Area::at(shape.x.into(), shape.y.into(), shape.width.into(), shape.height.into());
    let thickness = i64::from(shape.thickness);
    if 2 * thickness >= (all.right - all.left).min(all.bottom - all.top) {
        return [all, Area::NONE, Area::NONE, Area::NONE];
    }
    let (top, bottom) = (all.top + thickness, all.bottom - thickness);
    [
        Area { bottom: top, ..all },
        Area { top: bottom, ..all },
        Area { right: all.left + thickness, top, bottom, ..all },
        Area { left: all.right - thickness, top, bottom, ..all },
    ]
}

impl Pixels {
    /// The cost of [`draw`](Self::draw).
    ///
    /// # Errors
    /// [`ImageError::InvalidArgument`] if there are too many shapes, or a number of one is out of
    /// its range.
    pub fn draw_cost(&self, shapes: &[Shape]) -> Result<Cost, ImageError> {
        let invalid = |why: String| Err(ImageError::InvalidArgument(why));
        if shapes.len() > SHAPES_MAX {
            return invalid(format!("{} shapes; the limit is {SHAPES_MAX}", shapes.len()));
        }
        let points: usize = shapes.iter().map(Shape::points).sum();
        if points > POINTS_MAX {
            return invalid(format!("{points} points of polygons; the limit is {POINTS_MAX}"));
        }
        let mut time = 1_000_u64;
        for (index, shape) in shapes.iter().enumerate() {
            if let Err(why) = shape.check() {
                return invalid(format!("shapes[{index}]: {why}"));
            }
            let drawing: u64 = match shape {
                Shape::Rectangle(shape) => {
                    parts_of(shape).iter().map(|part| part.within(self.size()).cost_ns()).sum()
                }
                Shape::Polygon(shape) => line::polygon_ns(shape, self.size()),
                Shape::Label(shape) => label::label_ns(shape, self.size()),
            };
            time = time.saturating_add(SHAPE_NS + drawing);
        }
        let bytes = self.data().len();
        let copying = bytes as u64 / 1024 * COPY_NS_PER_KIB;
        Ok(Cost::new(BufferPool::bytes_taken(bytes), time.saturating_add(copying)))
    }

    /// The image with shapes on it, each over those before it.
    ///
    /// # Errors
    /// As for [`draw_cost`](Self::draw_cost), and [`ImageError::Stopped`] if the check of `work`
    /// refuses.
    pub fn draw(&self, work: Workspace<'_>, shapes: &[Shape]) -> Result<Self, ImageError> {
        self.draw_cost(shapes)?;
        let mut target = work.pool.begin(self.data().len());
        for part in self.data().chunks(COPIED_BYTES) {
            (work.check)()?;
            target.append(part);
        }
        let mut brush = Brush::new(work, target.as_mut(), self.size(), self.is_gray());
        for shape in shapes {
            match shape {
                Shape::Rectangle(shape) => {
                    brush.take(shape.color);
                    parts_of(shape).into_iter().try_for_each(|part| brush.fill(part))?;
                }
                Shape::Polygon(shape) => {
                    brush.take(shape.color);
                    line::draw_polygon(&mut brush, shape)?;
                }
                Shape::Label(shape) => {
                    brush.take(shape.color);
                    label::draw_label(&mut brush, shape)?;
                }
            }
        }
        Self::new(self.size(), self.is_gray(), target.freeze())
    }
}
