//! Arithmetic on the rows of a tensor: the largest elements and the softmax.
//!
//! The work is done in parts, and asks between them whether it may go on. Refuses to know calls and
//! limits.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gristmill_core::Tensor;

use super::bindings::wit::Scored;

/// The elements that are read between two such questions.
const ELEMENTS_PER_PART: usize = 64 << 10;

/// The rows of a float32 tensor. All dimensions after the first count as one.
pub(super) struct Rows<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> Rows<'a> {
    /// The tensor's rows; none if it is not float32 or its rows are empty.
    pub(super) fn of(tensor: &'a Tensor) -> Option<Self> {
        let values = tensor.as_f32()?;
        let width = values.len().checked_div(tensor.rows())?;
        (width > 0).then_some(Self { values, width })
    }

    /// The row at `index`.
    pub(super) fn row(&self, index: usize) -> Option<&'a [f32]> {
        self.values.chunks_exact(self.width).nth(index)
    }

    /// The index of the largest element of each row; of equal elements, the first.
    pub(super) fn argmax<E>(
        &self,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Vec<Scored>, E> {
        let mut indices = Vec::with_capacity(self.values.len() / self.width);
        let mut seen = 0;
        for row in self.values.chunks_exact(self.width) {
            let mut best = Scored { index: 0, value: row[0] };
            for (part, values) in row.chunks(ELEMENTS_PER_PART).enumerate() {
                for (index, value) in values.iter().enumerate() {
                    if *value > best.value {
                        let index = (part * ELEMENTS_PER_PART + index) as u32;
                        best = Scored { index, value: *value };
                    }
                }
                seen += values.len();
                if seen >= ELEMENTS_PER_PART {
                    seen = 0;
                    may_go_on()?;
                }
            }
            indices.push(best);
        }
        Ok(indices)
    }

    /// Write the softmax over each row to `target`, which has as many elements.
    pub(super) fn softmax<E>(
        &self,
        target: &mut [f32],
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut seen = 0;
        let rows = self.values.chunks_exact(self.width);
        for (row, target) in rows.zip(target.chunks_exact_mut(self.width)) {
            seen += row.len();
            if seen >= ELEMENTS_PER_PART {
                seen = 0;
                may_go_on()?;
            }
            softmax(row, target, &may_go_on)?;
        }
        Ok(())
    }
}

/// A value with its rank: a larger value ranks higher; of equal values, the one with the smaller
/// index.
struct Ranked(f32, Reverse<u32>);

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0).then(self.1.cmp(&other.1))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Ranked {}

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

/// The `k` largest values, largest first, in time of order n log k. `may_go_on` is asked between
/// parts.
pub(super) fn largest<E>(
    row: &[f32],
    k: usize,
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<Vec<Scored>, E> {
    let mut kept = BinaryHeap::with_capacity(k);
    for (part, values) in row.chunks(ELEMENTS_PER_PART).enumerate() {
        for (index, value) in values.iter().enumerate() {
            let ranked = Ranked(*value, Reverse((part * ELEMENTS_PER_PART + index) as u32));
            if kept.len() < k {
                kept.push(Reverse(ranked));
            } else if let Some(mut least) = kept.peek_mut()
                && ranked > least.0
            {
                *least = Reverse(ranked);
            }
        }
        may_go_on()?;
    }
    let mut scored = Vec::with_capacity(kept.len());
    while let Some(Reverse(Ranked(value, Reverse(index)))) = kept.pop() {
        scored.push(Scored { index, value });
        if scored.len().is_multiple_of(ELEMENTS_PER_PART) {
            may_go_on()?;
        }
    }
    scored.reverse();
    Ok(scored)
}

fn softmax<E>(
    row: &[f32],
    target: &mut [f32],
    may_go_on: impl Fn() -> Result<(), E>,
) -> Result<(), E> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    let parts = row.chunks(ELEMENTS_PER_PART).zip(target.chunks_mut(ELEMENTS_PER_PART));
    for (index, (values, target)) in parts.enumerate() {
        if index > 0 {
            may_go_on()?;
        }
        for (value, target) in values.iter().zip(&mut *target) {
            *target = (value - largest).exp();
        }
        sum += target.iter().sum::<f32>();
    }
    for value in target {
        *value /= sum;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses to go on.
    struct Refused;

    fn go_on() -> Result<(), std::convert::Infallible> {
        Ok(())
    }

    fn pairs(scored: Vec<Scored>) -> Vec<(u32, f32)> {
        scored.into_iter().map(|scored| (scored.index, scored.value)).collect()
    }

    #[test]
    fn the_largest_come_first_and_of_equals_the_first() {
        let row = [1.0, 3.0, 2.0, 3.0, -1.0];
        let best = pairs(largest(&row, 3, go_on).unwrap());
        assert_eq!(best, [(1, 3.0), (3, 3.0), (2, 2.0)]);
        assert_eq!(pairs(largest(&row, 5, go_on).unwrap()).last(), Some(&(4, -1.0)));
        assert!(largest(&row, 0, go_on).unwrap().is_empty());
    }

    #[test]
    fn selecting_agrees_with_sorting() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as f32
        };
        let row: Vec<f32> = (0..200_000).map(|_| next()).collect();
        let mut sorted: Vec<(u32, f32)> =
            row.iter().enumerate().map(|(index, value)| (index as u32, *value)).collect();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for k in [1, 10, 70_000, row.len()] {
            assert_eq!(pairs(largest(&row, k, go_on).unwrap()), sorted[..k]);
        }
    }

    #[test]
    fn work_in_parts_stops_when_it_may_not_go_on() {
        let row = vec![0.0; 4 * ELEMENTS_PER_PART];
        let asked = std::cell::Cell::new(0);
        let twice = || {
            asked.set(asked.get() + 1);
            if asked.get() > 2 { Err(Refused) } else { Ok(()) }
        };
        assert!(largest(&row, 10, twice).is_err());
        asked.set(0);
        assert!(softmax(&row, &mut row.clone(), twice).is_err());
        assert_eq!(asked.get(), 3);
    }

    #[test]
    fn softmax_sums_to_one_over_parts() {
        let row: Vec<f32> = (0..2 * ELEMENTS_PER_PART + 7).map(|i| (i % 5) as f32).collect();
        let mut target = vec![0.0; row.len()];
        softmax(&row, &mut target, go_on).unwrap();
        assert!((target.iter().sum::<f32>() - 1.0).abs() < 1e-3);
        assert!(target[4] > target[3]);
    }
}
