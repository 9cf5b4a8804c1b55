//! Comparing the outputs of two runs on the same rows.
//!
//! A row that is run alone and among others may differ a little, because a kernel adds in another
//! order. The type of the numbers says how much. Whole numbers, booleans and texts may not differ.

use crate::dtype::Dtype;
use crate::tensor::Tensor;

/// Values below this are noise if all values of a row are.
const SCALE_MIN: f64 = 1e-12;

/// The largest slack of numbers with half precision.
const HALF_SLACK_MAX: f64 = 2.0;

/// How much a row differs from the same row of another run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Likeness {
    /// The largest difference of two elements, relative to the row's largest element. Infinite if
    /// they cannot be compared: other shapes, a number and none, other texts.
    pub influence: f64,
    /// Whether it is larger than the type of the numbers explains.
    pub differs: bool,
}

impl Likeness {
    const UNLIKE: Self = Self { influence: f64::INFINITY, differs: true };

    /// Compare one output of a request that was run `alone` and `among` others. A device that
    /// rounds more than the type says has a `slack` above 1. Numbers with half precision already
    /// allow for much, so that at most a slack of 2 counts for them.
    pub fn of(alone: &Tensor, among: &Tensor, slack: f64) -> Self {
        if alone.dtype() != among.dtype() || alone.shape() != among.shape() {
            return Self::UNLIKE;
        }
        let (before, after) = (alone.as_bytes(), among.as_bytes());
        if before == after {
            return Self::default();
        }
        let Some((size, read, tolerance)) = floats(alone.dtype()) else {
            return Self::UNLIKE;
        };
        let mut whole = Self::default();
        let row = before.len().checked_div(alone.rows()).unwrap_or(0).max(size);
        for (before, after) in before.chunks(row).zip(after.chunks(row)) {
            let influence = influence(before.chunks_exact(size), after.chunks_exact(size), read);
            whole.influence = whole.influence.max(influence);
        }
        let slack = if size == 2 { slack.min(HALF_SLACK_MAX) } else { slack };
        whole.differs = whole.influence > tolerance * slack;
        whole
    }

    /// The larger of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let influence = self.influence.max(other.influence);
        Self { influence, differs: self.differs || other.differs }
    }
}

/// Reads a number.
type Read = fn(&[u8]) -> f64;

/// The largest difference of two elements of a row, relative to its largest element.
fn influence<'a>(
    before: impl Iterator<Item = &'a [u8]> + Clone,
    after: impl Iterator<Item = &'a [u8]>,
    read: Read,
) -> f64 {
    let finite = before.clone().map(read).filter(|value| value.is_finite());
    let scale = finite.fold(SCALE_MIN, |scale, value| scale.max(value.abs()));
    let differences = before.zip(after).map(|(before, after)| {
        let (before, after) = (read(before), read(after));
        match before == after || before.is_nan() && after.is_nan() {
            true => 0.0,
            false if before.is_finite() && after.is_finite() => (before - after).abs() / scale,
            false => f64::INFINITY,
        }
    });
    differences.fold(0.0, f64::max)
}

/// The size of a number of a type, how it is read, and how much it may differ. None if the type
/// has no fractions.
fn floats(dtype: Dtype) -> Option<(usize, Read, f64)> {
    match dtype {
        Dtype::Float16 => Some((2, |bytes| half::f16::from_le_bytes(array(bytes)).to_f64(), 1e-2)),
        Dtype::Bfloat16 => {
            Some((2, |bytes| half::bf16::from_le_bytes(array(bytes)).to_f64(), 5e-2))
        }
        Dtype::Float32 => Some((4, |bytes| f32::from_le_bytes(array(bytes)).into(), 1e-4)),
        // Many models compute in 32 bits and answer in 64.
        Dtype::Float64 => Some((8, |bytes| f64::from_le_bytes(array(bytes)), 1e-4)),
        _ => None,
    }
}

fn array<const SIZE: usize>(bytes: &[u8]) -> [u8; SIZE] {
    let mut array = [0; SIZE];
    array.copy_from_slice(bytes);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::BufferPool;

    fn tensor(rows: usize, values: &[f32]) -> Tensor {
        let shape = [rows, values.len() / rows];
        let bytes = BufferPool::new(0).copy_from(bytemuck::cast_slice(values));
        Tensor::new(Dtype::Float32, shape.as_slice().into(), bytes).unwrap()
    }

    fn likeness(alone: &[f32], among: &[f32]) -> Likeness {
        Likeness::of(&tensor(1, alone), &tensor(1, among), 1.0)
    }

    #[test]
    fn rounding_is_no_difference_and_more_is_one() {
        assert_eq!(likeness(&[1.0, f32::NAN], &[1.0, f32::NAN]), Likeness::default());
        let rounded = likeness(&[1.0, 100.0], &[1.0001, 100.0]);
        assert!(!rounded.differs && rounded.influence > 0.0, "{rounded:?}");
        let apart = [([1.0, 2.0], [1.0, 2.01]), ([1.0, 2.0], [1.0, f32::NAN])];
        for (alone, among) in apart.into_iter().chain([([f32::INFINITY; 2], [f32::MAX; 2])]) {
            assert!(likeness(&alone, &among).differs, "{alone:?} {among:?}");
        }
    }

    #[test]
    fn a_slack_lets_numbers_with_half_precision_differ_little() {
        let half = |value: f32| {
            let bytes = BufferPool::new(0).copy_from(&half::f16::from_f32(value).to_le_bytes());
            Tensor::new(Dtype::Float16, [1, 1].as_slice().into(), bytes).unwrap()
        };
        let differs = |value: f32| Likeness::of(&half(1.0), &half(value), 50.0).differs;
        assert!(!differs(1.015) && differs(1.03));
        assert!(!Likeness::of(&tensor(1, &[1.0]), &tensor(1, &[1.003]), 50.0).differs);
    }

    /// A row of small numbers is not judged by the large numbers of another row.
    #[test]
    fn each_row_has_its_own_scale() {
        let (alone, among) =
            (tensor(2, &[1e6, 1e6, 1e-3, 1e-3]), tensor(2, &[1e6, 1e6, 1e-3, 2e-3]));
        assert!(Likeness::of(&alone, &among, 1.0).differs);
    }

    #[test]
    fn whole_numbers_and_texts_are_equal_or_not() {
        let pool = BufferPool::new(0);
        let ints =
            |value: u8| Tensor::new(Dtype::Uint8, [1].as_slice().into(), pool.copy_from(&[value]));
        assert!(Likeness::of(&ints(1).unwrap(), &ints(2).unwrap(), 1.0).differs);
        let texts =
            |text: &str| Tensor::from_strings(&pool, [1].as_slice().into(), &[text]).unwrap();
        assert!(Likeness::of(&texts("a"), &texts("b"), 1.0).differs);
        assert!(!Likeness::of(&texts("a"), &texts("a"), 1.0).differs);
    }
}
