//! Lines of polygons.
//!
//! A line goes along the side in which it is longer, a pixel at a time, and fills a bar across it
//! there, as long as the line is thick at its slope. The ends are squares.

use super::brush::{Area, Brush};
use super::shape::Polygon;
use crate::error::Stopped;
use crate::work::Size;

/// Nanoseconds to find the place of a bar, and for each of its pixels: those of an upright one are
/// all in rows of their own.
const BAR_NS: u64 = 10;
const BAR_PIXEL_NS: u64 = 7;

type Point = (i32, i32);

/// One line, along the side in which it is longer.
struct Line {
    /// Whether it goes along the rows.
    is_flat: bool,
    /// Its first place along the side, and its place across there.
    first: i64,
    across: i64,
    /// Its last place along the side.
    last: i64,
    slope: f64,
    /// The length of a bar.
    bar: i64,
}

impl Line {
    /// The line between two points, from the one that is further to the left or above.
    fn between(a: Point, b: Point, thickness: u32) -> Self {
        let wide = |(x, y): Point| (i64::from(x), i64::from(y));
        let (a, b) = (wide(a), wide(b));
        let is_flat = (b.0 - a.0).abs() >= (b.1 - a.1).abs();
        let turned = |(x, y): (i64, i64)| if is_flat { (x, y) } else { (y, x) };
        let (mut from, mut to) = (turned(a), turned(b));
        if from.0 > to.0 {
            std::mem::swap(&mut from, &mut to);
        }
        let slope = match to.0 - from.0 {
            0 => 0.0,
            length => (to.1 - from.1) as f64 / length as f64,
        };
        let bar = rounded(f64::from(thickness) * (1.0 + slope * slope).sqrt());
        Self { is_flat, first: from.0, across: from.1, last: to.0, slope, bar }
    }

    /// The places along the side at which it can be within an image.
    fn places(&self, size: Size) -> std::ops::RangeInclusive<i64> {
        let side = if self.is_flat { size.width } else { size.height };
        self.first.max(0)..=self.last.min(i64::from(side) - 1)
    }

    /// The bar at a place along the side.
    fn bar_at(&self, place: i64) -> Area {
        let middle = rounded(self.across as f64 + (place - self.first) as f64 * self.slope);
        let start = middle - (self.bar - 1) / 2;
        if self.is_flat {
            Area::at(place, start, 1, self.bar)
        } else {
            Area::at(start, place, self.bar, 1)
        }
    }
}

/// The nearest integer; a half is rounded up.
fn rounded(value: f64) -> i64 {
    (value + 0.5).floor() as i64
}

/// The square at a point.
fn end((x, y): Point, thickness: u32) -> Area {
    let side = i64::from(thickness);
    Area::at(i64::from(x) - (side - 1) / 2, i64::from(y) - (side - 1) / 2, side, side)
}

/// The lines from each point to the next.
fn lines(polygon: &Polygon) -> impl Iterator<Item = Line> + '_ {
    let thickness = polygon.thickness;
    let next = polygon.points.iter().cycle().skip(1);
    polygon.points.iter().zip(next).map(move |(a, b)| Line::between(*a, *b, thickness))
}

/// Nanoseconds to draw it.
pub(super) fn polygon_ns(polygon: &Polygon, size: Size) -> u64 {
    let line_ns = |line: Line| {
        let places = line.places(size);
        let bars = (places.end() - places.start() + 1).max(0).unsigned_abs();
        bars * (BAR_NS + line.bar.unsigned_abs() * BAR_PIXEL_NS)
    };
    let end_ns = |point: &Point| end(*point, polygon.thickness).within(size).cost_ns();
    lines(polygon).map(line_ns).sum::<u64>() + polygon.points.iter().map(end_ns).sum::<u64>()
}

pub(super) fn draw_polygon(brush: &mut Brush<'_>, polygon: &Polygon) -> Result<(), Stopped> {
    for line in lines(polygon) {
        for place in line.places(brush.size) {
            brush.fill(line.bar_at(place))?;
        }
    }
    polygon.points.iter().try_for_each(|point| brush.fill(end(*point, polygon.thickness)))
}
