//! Boxes around lines of text, of the map that the model `detect` gives: as RapidOCR's
//! `DBPostProcess` finds them.

use gristmill_plugin::{Failure, Tensor};

use crate::components::contours;
use crate::geometry::{Point, Quad, distance, grown, hull, ordered, smallest_rectangle};

/// A pixel with a larger value is text.
const TEXT_MIN: f32 = 0.3;
/// A box whose mean value is smaller is not text.
const MEAN_MIN: f64 = 0.5;
/// A box grows by this times its area over its circumference.
const GROWTH: f64 = 1.6;
/// The shorter side of a box, before it grows and after, in pixels of the map.
const SHORTER_MIN: f64 = 3.0;
const GROWN_SHORTER_MIN: f64 = 5.0;
/// A box of the page with a side that is not longer is left out.
const SIDE_MIN: f32 = 4.0;
/// Boxes that are looked at.
const BOXES_MAX: usize = 1000;
/// Boxes whose upper edges differ by less stand in one row of the page.
const ROW: f32 = 10.0;

/// Values from 0 to 1: how likely each pixel is text.
struct Map<'m> {
    values: &'m [f32],
    width: usize,
    height: usize,
}

/// The boxes of a map [1, 1, height, width], as whole pixels of a page of this size, from the top
/// to the bottom and from left to right.
pub(crate) fn of_map(map: &Tensor, page: (u32, u32)) -> Result<Vec<Quad>, Failure> {
    let view = map.view::<f32>()?;
    let [1, 1, height, width] = *view.shape() else {
        let text = format!("the map of text has shape {:?}, not [1, 1, h, w]", view.shape());
        return Err(Failure::Internal(text));
    };
    let map = Map { values: view.as_slice(), width, height };
    let contours = contours(&map.text(), width).into_iter().take(BOXES_MAX);
    let mut boxes: Vec<_> = contours.filter_map(|contour| map.box_of(contour, page)).collect();
    sort(&mut boxes);
    Ok(boxes)
}

impl Map<'_> {
    /// Which pixels are text. Each also makes those to the right, below, and between them text.
    fn text(&self) -> Vec<bool> {
        let mut is_text = vec![false; self.values.len()];
        let lines = self.values.chunks_exact(self.width.max(1));
        for (row, values) in lines.enumerate() {
            for column in (0..self.width).filter(|column| values[*column] > TEXT_MIN) {
                for row in row..(row + 2).min(self.height) {
                    let end = (column + 2).min(self.width);
                    is_text[row * self.width..][column..end].fill(true);
                }
            }
        }
        is_text
    }

    /// The box of the page around the points of a contour, if it is text.
    fn box_of(&self, contour: Vec<[i32; 2]>, page: (u32, u32)) -> Option<Quad> {
        let tight = smallest_rectangle(&hull(contour))?;
        if tight.shorter < SHORTER_MIN || self.mean_within(&tight.corners) < MEAN_MIN {
            return None;
        }
        let [a, b, c, _] = tight.corners;
        let sides = [f64::from(distance(a, b)), f64::from(distance(b, c))];
        let growth = GROWTH * sides[0] * sides[1] / (2.0 * (sides[0] + sides[1]));
        let corners = tight.corners.map(|corner| corner.map(|value| value as i32));
        let wide = smallest_rectangle(&hull(grown(corners, growth)))?;
        if wide.shorter < GROWN_SHORTER_MIN {
            return None;
        }
        let size = [page.0 as f32, page.1 as f32];
        let map = [self.width as f32, self.height as f32];
        let on_page = |corner: Point| {
            let value = |axis: usize| {
                let value = (corner[axis] / map[axis] * size[axis]).round_ties_even();
                value.clamp(0.0, size[axis] - 1.0)
            };
            [value(0), value(1)]
        };
        let corners = ordered(wide.corners.map(on_page));
        let [a, b, _, d] = corners;
        (distance(a, b) >= SIDE_MIN && distance(a, d) >= SIDE_MIN).then_some(corners)
    }

    /// The mean value of the pixels within a box, its outline included.
    fn mean_within(&self, corners: &Quad) -> f64 {
        let corners = corners.map(|corner| corner.map(f32::trunc));
        let (mut sum, mut count) = (0.0, 0_u32);
        let rows = corners.iter().map(|corner| corner[1]);
        let (first, last) = (rows.clone().fold(f32::MAX, f32::min), rows.fold(0.0, f32::max));
        for row in first.max(0.0) as usize..=(last as usize).min(self.height - 1) {
            let Some((start, end)) = columns(&corners, row as f32) else { continue };
            let (start, end) = (start.max(0.0) as usize, (end as usize).min(self.width - 1));
            let line = &self.values[row * self.width..][..self.width];
            for value in line.get(start..=end).unwrap_or_default() {
                sum += f64::from(*value);
                count += 1;
            }
        }
        sum / f64::from(count.max(1))
    }
}

/// The first and the last column of a row of pixels that a box covers.
fn columns(corners: &Quad, row: f32) -> Option<(f32, f32)> {
    let (mut start, mut end) = (f32::MAX, f32::MIN);
    for (a, b) in corners.iter().zip(corners.iter().cycle().skip(1)) {
        let (upper, lower) = if a[1] <= b[1] { (a, b) } else { (b, a) };
        // An edge draws the pixels whose middle is half a pixel from it.
        let (from, to) = (upper[1].max(row - 0.5), lower[1].min(row + 0.5));
        if from > to {
            continue;
        }
        let ends = if lower[1] > upper[1] {
            let slope = (lower[0] - upper[0]) / (lower[1] - upper[1]);
            [from, to].map(|y| upper[0] + (y - upper[1]) * slope)
        } else {
            [upper[0], lower[0]]
        };
        for x in ends.map(f32::round) {
            (start, end) = (start.min(x), end.max(x));
        }
    }
    (start <= end).then_some((start, end))
}

/// From the top to the bottom; boxes that stand in one row, from left to right.
fn sort(boxes: &mut [Quad]) {
    let place = |corners: &Quad| (corners[0][1], corners[0][0]);
    boxes.sort_by(|a, b| place(a).partial_cmp(&place(b)).unwrap_or(std::cmp::Ordering::Equal));
    for last in 1..boxes.len() {
        for at in (1..=last).rev() {
            let ((above, left), (y, x)) = (place(&boxes[at - 1]), place(&boxes[at]));
            if (y - above).abs() >= ROW || x >= left {
                break;
            }
            boxes.swap(at - 1, at);
        }
    }
}

#[cfg(test)]
mod tests;
