//! Connected parts of a map of pixels, and of the holes in them: the points that a contour of each
//! has at its convex hull. Pixels of text also touch at their corners, others only at their sides.

/// The pixels of a row from `start` to `end`, which are all text or all ground.
struct Run {
    row: i32,
    start: i32,
    end: i32,
    is_text: bool,
    /// A run of the same part that comes before, or this one.
    parent: usize,
}

/// The parts of a map whose rows have `width` pixels: for each part of text the points at the ends
/// of its rows, and for each hole the points of text around it.
pub(crate) fn contours(is_text: &[bool], width: usize) -> Vec<Vec<[i32; 2]>> {
    let height = is_text.len() / width.max(1);
    let mut runs = Vec::new();
    let mut above = 0..0;
    for (row, pixels) in is_text.chunks_exact(width.max(1)).enumerate() {
        let first = runs.len();
        let mut start = 0;
        for same in pixels.chunk_by(|a, b| a == b) {
            let end = start + same.len() as i32 - 1;
            runs.push(Run { row: row as i32, start, end, is_text: same[0], parent: runs.len() });
            start = end + 1;
        }
        join(&mut runs, above, first);
        above = first..runs.len();
    }
    let (last_column, last_row) = (width as i32 - 1, height as i32 - 1);
    // For each run that is the first of its part, the place of the part.
    let mut places = vec![None; runs.len()];
    let mut parts: Vec<Part> = Vec::new();
    for at in 0..runs.len() {
        let root = root(&mut runs, at);
        let place = *places[root].get_or_insert_with(|| {
            parts.push(Part { points: Vec::new(), is_ground: false });
            parts.len() - 1
        });
        let (run, part) = (&runs[at], &mut parts[place]);
        let Run { row, start, end, .. } = *run;
        if run.is_text {
            part.points.extend([[start, row], [end, row]]);
        } else {
            let is_at_edge = row == 0 || row == last_row || start == 0 || end == last_column;
            part.is_ground |= is_at_edge;
            if !part.is_ground {
                part.points.extend([[start - 1, row], [end + 1, row]]);
                part.points.extend([row - 1, row + 1].map(|row| [start, row]));
                part.points.extend([row - 1, row + 1].map(|row| [end, row]));
            }
        }
    }
    parts.into_iter().filter(|part| !part.is_ground).map(|part| part.points).collect()
}

struct Part {
    points: Vec<[i32; 2]>,
    /// Whether it reaches the edge of the map, and so is no hole.
    is_ground: bool,
}

/// Join the runs from `first` on, those of a row, with the runs that they touch in the row above.
fn join(runs: &mut [Run], above: std::ops::Range<usize>, first: usize) {
    let mut from = above.start;
    for at in first..runs.len() {
        let (start, end, is_text) = (runs[at].start, runs[at].end, runs[at].is_text);
        while from < above.end && runs[from].end + 1 < start {
            from += 1;
        }
        let reach = i32::from(is_text);
        for other in from..above.end {
            if runs[other].start > end + reach {
                break;
            }
            if runs[other].is_text == is_text && runs[other].end + reach >= start {
                let (one, other) = (root(runs, at), root(runs, other));
                let (earlier, later) = (one.min(other), one.max(other));
                runs[later].parent = earlier;
            }
        }
    }
}

/// The first run of the part that the run belongs to.
fn root(runs: &mut [Run], mut at: usize) -> usize {
    while runs[at].parent != at {
        runs[at].parent = runs[runs[at].parent].parent;
        at = runs[at].parent;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::hull;

    /// The hulls of the contours of a map that is drawn.
    fn hulls(rows: &[&str]) -> Vec<Vec<[i32; 2]>> {
        let pixels: Vec<bool> = rows.concat().bytes().map(|byte| byte == b'#').collect();
        contours(&pixels, rows[0].len()).into_iter().map(hull).collect()
    }

    #[test]
    fn text_touches_at_corners() {
        let found = hulls(&["##...", "..#..", ".....", "....#"]);
        // One pixel has no hull.
        assert_eq!(found, [vec![[0, 0], [1, 0], [2, 1]], vec![]]);
    }

    #[test]
    fn parts_that_meet_below_are_one() {
        let found = hulls(&["#...#", "#...#", "#####"]);
        assert_eq!(found, [vec![[0, 0], [4, 0], [4, 2], [0, 2]]]);
    }

    #[test]
    fn a_hole_has_a_contour_and_the_ground_has_none() {
        let found = hulls(&[".......", ".#####.", ".#...#.", ".#####.", "......."]);
        let around = vec![[1, 1], [5, 1], [5, 3], [1, 3]];
        // The corners of text around the hole do not touch it.
        let hole = vec![[1, 2], [2, 1], [4, 1], [5, 2], [4, 3], [2, 3]];
        assert_eq!(found, [around, hole]);
        assert!(hulls(&["...", "..."]).is_empty());
        assert!(hulls(&[""]).is_empty());
    }
}
