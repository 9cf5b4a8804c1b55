//! Walking several arrays that are broadcast to one shape.
//!
//! Arrays are dense, so after neighbouring dimensions are joined, each array's elements follow one
//! another along the last dimension, or one element stands for all. The work is done in such runs.

use crate::array::{ELEMENTS_PER_PART, Room, Stop};

/// The runs of `N` arrays in a common shape.
pub(crate) struct Runs<const N: usize> {
    /// The dimensions before the last one, with the steps of each array.
    outer: Vec<(usize, [usize; N])>,
    /// The length of a run.
    len: usize,
    /// For each array, 1 or 0.
    steps: [usize; N],
}

impl<const N: usize> Runs<N> {
    /// Of arrays of these shapes, which can be broadcast to `common`.
    pub(crate) fn new(common: &[usize], shapes: [&[usize]; N]) -> Self {
        let mut joined: Vec<(usize, [usize; N])> = Vec::with_capacity(common.len() + 1);
        let mut dense = [1; N];
        // From the last dimension to the first.
        for (back, dim) in common.iter().rev().enumerate() {
            let mut steps = [0; N];
            for ((step, dense), shape) in steps.iter_mut().zip(&mut dense).zip(shapes) {
                let own_dim = shape.len().checked_sub(back + 1).map_or(1, |at| shape[at]);
                if own_dim != 1 {
                    *step = *dense;
                    *dense *= own_dim;
                }
            }
            if *dim == 1 {
                continue;
            }
            match joined.last_mut() {
                Some((len, inner)) if (0..N).all(|n| steps[n] == inner[n] * *len) => *len *= dim,
                _ => joined.push((*dim, steps)),
            }
        }
        let (len, steps) = if joined.is_empty() { (1, [0; N]) } else { joined.remove(0) };
        Self { outer: joined, len, steps }
    }

    /// Call `work` with the arrays' offsets, the steps (1 or 0) and the length of each run, in the
    /// order of the result's elements.
    pub(crate) fn each(
        &self,
        room: &dyn Room,
        mut work: impl FnMut([usize; N], [usize; N], usize),
    ) -> Result<(), Stop> {
        if self.len == 0 || self.outer.iter().any(|(len, _)| *len == 0) {
            return Ok(());
        }
        let mut at = vec![0; self.outer.len()];
        let mut offsets = [0; N];
        let mut since_asked = 0;
        loop {
            let mut done = 0;
            while done < self.len {
                let part = (self.len - done).min(ELEMENTS_PER_PART);
                let mut from = offsets;
                (0..N).for_each(|n| from[n] += done * self.steps[n]);
                work(from, self.steps, part);
                done += part;
                since_asked += part;
                if since_asked >= ELEMENTS_PER_PART {
                    since_asked = 0;
                    room.go_on()?;
                }
            }
            // The next run.
            let mut dimension = 0;
            loop {
                let Some((len, steps)) = self.outer.get(dimension) else { return Ok(()) };
                at[dimension] += 1;
                (0..N).for_each(|n| offsets[n] += steps[n]);
                if at[dimension] < *len {
                    break;
                }
                at[dimension] = 0;
                (0..N).for_each(|n| offsets[n] -= steps[n] * len);
                dimension += 1;
            }
        }
    }
}
