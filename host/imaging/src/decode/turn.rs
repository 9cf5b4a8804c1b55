//! Turning a picture upright.

use image::metadata::Orientation;

use crate::error::ImageError;
use crate::pixels::Pixels;
use crate::work::{Size, Workspace};

/// The pixels that are moved between two checks. They are few, because the place of a pixel can be
/// far from that of the next, which is slow.
const MOVED_PIXELS: usize = 128 << 10;

/// The picture in its upright orientation.
pub(super) fn turn(
    work: Workspace<'_>,
    pixels: &Pixels,
    orientation: Orientation,
) -> Result<Pixels, ImageError> {
    if pixels.is_gray() {
        turn_of::<1>(work, pixels, orientation)
    } else {
        turn_of::<3>(work, pixels, orientation)
    }
}

fn turn_of<const CHANNELS: usize>(
    work: Workspace<'_>,
    pixels: &Pixels,
    orientation: Orientation,
) -> Result<Pixels, ImageError>
where
    [u8; CHANNELS]: bytemuck::Pod,
{
    let Size { width, height } = pixels.size();
    let (columns, rows) = (width as usize, height as usize);
    let source = pixels.data().as_chunks::<CHANNELS>().0;
    let (is_swapped, from_right, from_bottom) = match orientation {
        Orientation::NoTransforms => (false, false, false),
        Orientation::FlipHorizontal => (false, true, false),
        Orientation::Rotate180 => (false, true, true),
        Orientation::FlipVertical => (false, false, true),
        Orientation::Rotate90FlipH => (true, false, false),
        Orientation::Rotate90 => (true, false, true),
        Orientation::Rotate270FlipH => (true, true, true),
        Orientation::Rotate270 => (true, true, false),
    };
    let mut turned = work.pool.begin(pixels.data().len());
    let mut unchecked = 0;
    // A line of the result, and a position on it, are a row and a column of the source, or a column
    // and a row.
    let (lines, places) = if is_swapped { (columns, rows) } else { (rows, columns) };
    for line in 0..lines {
        turned.extend((0..places).map(|place| {
            let (mut row, mut column) = if is_swapped { (place, line) } else { (line, place) };
            row = if from_bottom { rows - 1 - row } else { row };
            column = if from_right { columns - 1 - column } else { column };
            source[row * columns + column]
        }));
        unchecked += places;
        if unchecked >= MOVED_PIXELS {
            (work.check)()?;
            unchecked = 0;
        }
    }
    let size = if is_swapped { Size { width: height, height: width } } else { pixels.size() };
    Pixels::new(size, pixels.is_gray(), turned.freeze())
}
