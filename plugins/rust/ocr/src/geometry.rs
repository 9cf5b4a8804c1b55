//! Convex hulls, the smallest rectangles around them, and outlines that grow.

use std::f64::consts::PI;

/// A point: x, y, in pixels.
pub(crate) type Point = [f32; 2];
/// Four corners, clockwise from the upper left one.
pub(crate) type Quad = [Point; 4];

/// How far the chords of a rounded corner may lie from its arc, in pixels. It is the default of
/// the library Clipper.
const ARC_TOLERANCE: f64 = 0.25;

/// A rectangle, turned anyhow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rectangle {
    pub(crate) corners: Quad,
    /// Length of its shorter side.
    pub(crate) shorter: f64,
}

/// The corners of the convex hull of these points, in their order around it. Points on a straight
/// line between two corners are left out.
pub(crate) fn hull(mut points: Vec<[i32; 2]>) -> Vec<[i32; 2]> {
    points.sort_unstable();
    points.dedup();
    let mut hull = half_hull(points.iter().copied());
    hull.extend(half_hull(points.iter().rev().copied()));
    hull
}

/// The corners on one side of the line from the first point to the last one, without the last one.
fn half_hull(points: impl Iterator<Item = [i32; 2]>) -> Vec<[i32; 2]> {
    let mut half: Vec<[i32; 2]> = Vec::new();
    for point in points {
        while let [.., a, b] = half[..]
            && turn(a, b, point) <= 0
        {
            half.pop();
        }
        half.push(point);
    }
    half.pop();
    half
}

/// Twice the area of the triangle, positive if it goes around clockwise as seen with y downwards.
fn turn(a: [i32; 2], b: [i32; 2], c: [i32; 2]) -> i64 {
    let [ax, ay, bx, by, cx, cy] = [a[0], a[1], b[0], b[1], c[0], c[1]].map(i64::from);
    (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
}

/// The rectangle of the smallest area around a convex hull: one of its sides lies on an edge of the
/// hull. None if the hull is a line.
pub(crate) fn smallest_rectangle(hull: &[[i32; 2]]) -> Option<Rectangle> {
    if hull.len() < 3 {
        return None;
    }
    let mut smallest: Option<(f64, Rectangle)> = None;
    for (a, b) in hull.iter().zip(hull.iter().cycle().skip(1)) {
        let (dx, dy) = (f64::from(b[0] - a[0]), f64::from(b[1] - a[1]));
        let length = dx.hypot(dy);
        let (ux, uy) = (dx / length, dy / length);
        // The ranges along the edge, and across it.
        let (mut along, mut across) = ([f64::MAX, f64::MIN], [f64::MAX, f64::MIN]);
        for [x, y] in hull.iter().map(|point| point.map(f64::from)) {
            let (u, v) = (x * ux + y * uy, y * ux - x * uy);
            along = [along[0].min(u), along[1].max(u)];
            across = [across[0].min(v), across[1].max(v)];
        }
        let sides = [along[1] - along[0], across[1] - across[0]];
        let area = sides[0] * sides[1];
        if smallest.is_none_or(|(least, _)| area < least) {
            let corner = |u: f64, v: f64| [(u * ux - v * uy) as f32, (u * uy + v * ux) as f32];
            let corners = [
                corner(along[0], across[0]),
                corner(along[1], across[0]),
                corner(along[1], across[1]),
                corner(along[0], across[1]),
            ];
            let rectangle =
                Rectangle { corners: ordered(corners), shorter: sides[0].min(sides[1]) };
            smallest = Some((area, rectangle));
        }
    }
    smallest.map(|(_, rectangle)| rectangle)
}

/// The corners in the order of [`Quad`].
pub(crate) fn ordered(mut corners: Quad) -> Quad {
    corners.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let [a, b, c, d] = corners;
    let (upper_left, lower_left) = if b[1] < a[1] { (b, a) } else { (a, b) };
    let (upper_right, lower_right) = if d[1] < c[1] { (d, c) } else { (c, d) };
    [upper_left, upper_right, lower_right, lower_left]
}

pub(crate) fn distance([ax, ay]: Point, [bx, by]: Point) -> f32 {
    ((ax - bx) * (ax - bx) + (ay - by) * (ay - by)).sqrt()
}

/// The points of the outline that lies `by` pixels outside of these corners, with rounded corners,
/// in whole pixels, as Clipper makes them.
pub(crate) fn grown(corners: [[i32; 2]; 4], by: f64) -> Vec<[i32; 2]> {
    let mut corners = corners.map(|corner| corner.map(f64::from)).to_vec();
    corners.dedup();
    if corners.len() > 1 && corners.first() == corners.last() {
        corners.pop();
    }
    let count = corners.len();
    // The direction outwards of the edge from each corner to the next.
    let outwards = |at: usize| {
        let ([ax, ay], [bx, by]) = (corners[at % count], corners[(at + 1) % count]);
        (ax - bx).atan2(by - ay)
    };
    let tolerance = ARC_TOLERANCE * by.min(1.0);
    // Chords of a whole circle.
    let chords = (PI / (1.0 - tolerance / by).acos()).min(by * PI);
    let step = 2.0 * PI / chords;
    let mut points = Vec::new();
    for at in 0..count {
        let (from, to) = (outwards(at + count - 1), outwards(at));
        let angle = (to - from + PI).rem_euclid(2.0 * PI) - PI;
        let steps = (angle.abs() / step).round().max(1.0) as u32;
        let arc = (0..steps).map(|number| from + step.copysign(angle) * f64::from(number));
        for direction in arc.chain([to]) {
            let [x, y] = corners[at];
            let (x, y) = (x + direction.cos() * by, y + direction.sin() * by);
            points.push([x.round() as i32, y.round() as i32]);
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hull_leaves_out_what_lies_within_and_on_lines() {
        let square = vec![[0, 0], [4, 0], [2, 0], [4, 4], [0, 4], [2, 3], [0, 2], [0, 0]];
        assert_eq!(hull(square), [[0, 0], [4, 0], [4, 4], [0, 4]]);
        assert_eq!(hull(vec![[3, 3], [1, 1], [2, 2]]), [[1, 1], [3, 3]]);
        assert!(smallest_rectangle(&hull(vec![[3, 3], [1, 1], [2, 2]])).is_none());
        assert!(smallest_rectangle(&hull(vec![])).is_none());
    }

    #[test]
    fn the_smallest_rectangle_is_turned_as_its_points_are() {
        let upright = smallest_rectangle(&hull(vec![[1, 2], [9, 2], [9, 5], [1, 5], [4, 4]]));
        let corners = [[1.0, 2.0], [9.0, 2.0], [9.0, 5.0], [1.0, 5.0]];
        assert_eq!(upright, Some(Rectangle { corners, shorter: 3.0 }));
        let turned = smallest_rectangle(&hull(vec![[0, 10], [30, 0], [32, 6], [2, 16]])).unwrap();
        let expected = [[0.0, 10.0], [30.0, 0.0], [32.0, 6.0], [2.0, 16.0]];
        for (corner, expected) in turned.corners.into_iter().zip(expected) {
            assert!(distance(corner, expected) < 1e-3, "{turned:?}");
        }
        assert!((turned.shorter - 40.0_f64.sqrt()).abs() < 1e-9);
    }

    #[test]
    fn an_outline_grows_by_its_distance_to_all_sides() {
        let corners = [[10, 10], [50, 10], [50, 20], [10, 20]];
        let points = grown(corners, 7.0);
        let around = smallest_rectangle(&hull(points.clone())).unwrap();
        assert_eq!(around.corners, [[3.0, 3.0], [57.0, 3.0], [57.0, 27.0], [3.0, 27.0]]);
        assert!(points.len() >= 12, "its corners are rounded: {points:?}");
        assert!(!points.contains(&[3, 3]), "{points:?}");
        // Corners that are one.
        assert!(!grown([[1, 1], [9, 1], [9, 1], [1, 1]], 2.0).is_empty());
    }
}
