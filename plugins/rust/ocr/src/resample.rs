//! Resizing as OpenCV does it with `INTER_LINEAR`: between the two nearest pixels, without
//! antialiasing, in fixed point. The host's `resize` is antialiased, and rounds otherwise by 1 of
//! 255. That is enough to move a box by a pixel, and then some lines are read otherwise.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

/// The fixed point of weights: OpenCV's `INTER_RESIZE_COEF_SCALE`.
const WEIGHT_ONE: f32 = 2048.0;

/// The two values that a value between them is made of.
struct Tap {
    at: [usize; 2],
    weights: [i32; 2],
}

/// `pixels`, whose rows have the width `from`, as a picture of `to.0` by `to.1` pixels.
pub(crate) fn resized(pixels: &[Rgb], from: usize, to: (usize, usize)) -> Vec<Rgb> {
    let height = pixels.len() / from;
    let columns = taps(from, to.0);
    let mut result = Vec::with_capacity(to.0 * to.1);
    // Rows of the source that were resized, and which they are.
    let mut rows = [(usize::MAX, Vec::new()), (usize::MAX, Vec::new())];
    for tap in taps(height, to.1) {
        if rows[1].0 == tap.at[0] {
            rows.swap(0, 1);
        }
        for (row, at) in rows.iter_mut().zip(tap.at) {
            if row.0 != at {
                row.0 = at;
                stretch(&pixels[at * from..][..from], &columns, &mut row.1);
            }
        }
        let [one, other] = tap.weights;
        let [upper, lower] = &rows;
        result.extend(upper.1.iter().zip(&lower.1).map(|(upper, lower)| {
            let blend =
                |at: usize| (((upper[at] * one) >> 16) + ((lower[at] * other) >> 16) + 2) >> 2;
            [blend(0) as u8, blend(1) as u8, blend(2) as u8]
        }));
    }
    result
}

/// A row in another width, with 7 more bits.
fn stretch(pixels: &[Rgb], columns: &[Tap], row: &mut Vec<[i32; 3]>) {
    row.clear();
    row.extend(columns.iter().map(|Tap { at, weights }| {
        let [one, other] = at.map(|at| pixels[at].map(i32::from));
        let blend = |at: usize| (one[at] * weights[0] + other[at] * weights[1]) >> 4;
        [blend(0), blend(1), blend(2)]
    }));
}

/// Of which of `from` values each of `to` values is made.
fn taps(from: usize, to: usize) -> Vec<Tap> {
    let scale = from as f64 / to as f64;
    let last = from - 1;
    let tap = |index: usize| {
        let place = ((index as f64 + 0.5) * scale - 0.5) as f32;
        let floor = place.floor();
        let (at, part) = match floor as isize {
            before if before < 0 => (0, 0.0),
            at if at as usize >= last => (last, 0.0),
            at => (at as usize, place - floor),
        };
        let weight = |part: f32| (part * WEIGHT_ONE).round_ties_even() as i32;
        Tap { at: [at, (at + 1).min(last)], weights: [weight(1.0 - part), weight(part)] }
    };
    (0..to).map(tap).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_two_nearest() {
        let row = [[0, 0, 0], [100, 200, 255]];
        let wide = resized(&row, 2, (8, 1));
        // What OpenCV gives.
        assert_eq!(wide.iter().map(|pixel| pixel[0]).collect::<Vec<_>>(), OPENCV);
        assert_eq!((wide[0], wide[7]), (row[0], row[1]));
        assert_eq!(resized(&wide, 8, (2, 3)), resized(&wide, 8, (2, 1)).repeat(3));
    }

    /// `cv2.resize` of 0 and 100 to 8 columns.
    const OPENCV: [u8; 8] = [0, 0, 13, 38, 63, 88, 100, 100];

    #[test]
    fn shrinking_leaves_pixels_out() {
        let row: Vec<Rgb> = [0, 255, 255, 255, 0, 255, 255, 255].map(|value| [value; 3]).to_vec();
        assert_eq!(resized(&row, 8, (2, 1)), [[255; 3]; 2]);
        assert_eq!(resized(&row, 8, (8, 1)), row);
    }
}
