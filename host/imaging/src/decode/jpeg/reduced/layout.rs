//! Where the blocks of each component lie, and how large a smaller image is made of them.

use super::super::frame::Component;
use super::transform::Transform;
use crate::work::Size;

/// The blocks of an image whose sides become `eighths` / 8 of their length, rounded up.
pub(super) struct Layout {
    /// The size of the smaller image.
    pub(super) size: Size,
    /// The units of an image: the least parts that have whole blocks of all components.
    pub(super) units_across: usize,
    pub(super) units_down: usize,
    /// The rows of pixels that a row of units becomes.
    pub(super) rows_of_unit: usize,
    pub(super) planes: Vec<Plane>,
}

/// The blocks of a component.
pub(super) struct Plane {
    pub(super) id: u8,
    pub(super) quantiser: u8,
    /// The blocks in a unit.
    pub(super) across: usize,
    pub(super) down: usize,
    /// The blocks in a scan that has only this component. Those of all units may be more.
    pub(super) alone_across: usize,
    pub(super) alone_down: usize,
    pub(super) transform: Transform,
    /// How often each pixel stands in a row, and each row in the image.
    pub(super) repeats_across: usize,
    pub(super) repeats_down: usize,
    /// The bytes of a row of pixels.
    pub(super) stride: usize,
}

impl Plane {
    /// The bytes of the pixels of a row of units.
    pub(super) fn strip_bytes(&self) -> usize {
        self.stride * self.down * self.transform.down
    }
}

impl Layout {
    /// The layout for these components. None if their resolutions do not fit one another.
    pub(super) fn of(size: Size, components: &[Component], eighths: usize) -> Option<Self> {
        let sampling = |component: &Component| match components.len() {
            // A single component has one block in a unit, whatever its header says.
            1 => (1, 1),
            _ => (component.across as usize, component.down as usize),
        };
        let max_across = components.iter().map(|component| sampling(component).0).max()?;
        let max_down = components.iter().map(|component| sampling(component).1).max()?;
        let (width, height) = (size.width as usize, size.height as usize);
        let units_across = width.div_ceil(8 * max_across);
        let plane = |component: &Component| {
            let (across, down) = sampling(component);
            let (pixels_across, repeats_across) = side(max_across, across, eighths)?;
            let (pixels_down, repeats_down) = side(max_down, down, eighths)?;
            Some(Plane {
                id: component.id,
                quantiser: component.quantiser,
                across,
                down,
                alone_across: (width * across).div_ceil(max_across).div_ceil(8),
                alone_down: (height * down).div_ceil(max_down).div_ceil(8),
                transform: Transform::new(pixels_across, pixels_down),
                repeats_across,
                repeats_down,
                stride: units_across * across * pixels_across,
            })
        };
        let reduced = |side: u32| (side * eighths as u32).div_ceil(8);
        Some(Self {
            size: Size { width: reduced(size.width), height: reduced(size.height) },
            units_across,
            units_down: height.div_ceil(8 * max_down),
            rows_of_unit: max_down * eighths,
            planes: components.iter().map(plane).collect::<Option<_>>()?,
        })
    }

    /// The blocks of all components.
    pub(super) fn blocks(&self) -> usize {
        let in_unit: usize = self.planes.iter().map(|plane| plane.across * plane.down).sum();
        self.units_across * self.units_down * in_unit
    }
}

/// The pixels that a block becomes along a side, and how often each is repeated. A component of
/// less resolution than others becomes more pixels of a block. None if 8 are not enough and
/// pixels cannot be repeated.
fn side(max: usize, blocks: usize, eighths: usize) -> Option<(usize, usize)> {
    let factor = max / blocks;
    if !max.is_multiple_of(blocks) || !factor.is_power_of_two() {
        return None;
    }
    let pixels = (factor * eighths).min(8);
    Some((pixels, factor * eighths / pixels))
}
