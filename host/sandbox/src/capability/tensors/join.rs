//! Joining tensors along a dimension, and taking a part along one.
//!
//! An array is `outer` blocks of bytes, one after another: `outer` is the product of the dimensions
//! before the axis. Joining takes one block of each tensor in turn. Refuses to know calls and
//! limits.

use std::ops::Range;
use std::sync::Arc;

use gristmill_core::{Buffer, BufferPool, Dtype, Shape, Tensor};

/// The bytes, or blocks, that are copied between two questions whether to go on.
const COPIED_PER_PART: usize = 64 << 10;

/// The blocks of several tensors, which are to be joined.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) dtype: Dtype,
    pub(super) shape: Shape,
    /// The bytes of all of it.
    pub(super) bytes: usize,
    outer: usize,
}

impl Joined {
    /// The tensors one after another along an existing dimension.
    pub(super) fn concat(parts: &[Tensor], axis: usize) -> Result<Self, String> {
        let first = first(parts)?;
        let rank = first.shape().len();
        if axis >= rank {
            return Err(format!("axis is {axis}, but the tensors have {rank} dimensions"));
        }
        let others = |shape: &[usize]| {
            let mut shape = Shape::from_slice(shape);
            shape[axis] = 0;
            shape
        };
        let fits = |part: &Tensor| {
            part.shape().len() == rank && others(part.shape()) == others(first.shape())
        };
        let mut shape = others(first.shape());
        for (index, part) in parts.iter().enumerate() {
            if !fits(part) {
                return Err(unlike(index, part, first));
            }
            let sum = shape[axis].checked_add(part.shape()[axis]);
            shape[axis] = sum.ok_or_else(|| format!("dimension {axis} overflows"))?;
        }
        Self::new(parts, axis, shape)
    }

    /// The tensors along a new dimension.
    pub(super) fn stack(parts: &[Tensor], axis: usize) -> Result<Self, String> {
        let first = first(parts)?;
        let rank = first.shape().len();
        if axis > rank {
            return Err(format!("axis is {axis}, but the tensors have {rank} dimensions"));
        }
        let unlike_first = parts.iter().enumerate().find(|(_, part)| part.shape() != first.shape());
        if let Some((index, part)) = unlike_first {
            return Err(unlike(index, part, first));
        }
        let mut shape = Shape::from_slice(first.shape());
        shape.insert(axis, parts.len());
        Self::new(parts, axis, shape)
    }

    fn new(parts: &[Tensor], axis: usize, shape: Shape) -> Result<Self, String> {
        let dtype = first(parts)?.dtype();
        if let Some((index, part)) = parts.iter().enumerate().find(|(_, p)| p.dtype() != dtype) {
            return Err(format!("tensor {index} is {}, but tensor 0 is {dtype}", part.dtype()));
        }
        check_strings(dtype, axis)?;
        let bytes = parts.iter().map(|part| part.as_bytes().len()).sum();
        // An empty result has no blocks.
        let outer = if bytes == 0 { 0 } else { shape[..axis].iter().product() };
        Ok(Self { dtype, bytes, outer, shape })
    }

    /// Copy the blocks.
    pub(super) fn copy<E>(
        &self,
        parts: &[Tensor],
        pool: &BufferPool,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Arc<Buffer>, E> {
        let mut target = pool.begin(self.bytes);
        let mut unasked = 0;
        for index in 0..self.outer {
            for part in parts {
                let block = part.as_bytes().len() / self.outer;
                target.append(&part.as_bytes()[index * block..][..block]);
                unasked += block + 1;
                if unasked >= COPIED_PER_PART {
                    unasked = 0;
                    may_go_on()?;
                }
            }
        }
        Ok(target.freeze())
    }
}

/// A part of a tensor along one dimension. Not for strings.
pub(super) struct TensorPart {
    pub(super) shape: Shape,
    outer: usize,
    /// The part of each block, in bytes.
    range: Range<usize>,
}

impl TensorPart {
    pub(super) fn of(tensor: &Tensor, axis: usize, range: Range<usize>) -> Result<Self, String> {
        let rank = tensor.shape().len();
        let Some(size) = tensor.shape().get(axis) else {
            return Err(format!("axis is {axis}, but the tensor has {rank} dimensions"));
        };
        let Range { start, end } = range;
        if start > end || end > *size {
            return Err(format!("{start} to {end} is not within dimension {axis}, of size {size}"));
        }
        let mut shape = Shape::from_slice(tensor.shape());
        shape[axis] = end - start;
        if tensor.as_bytes().is_empty() {
            return Ok(Self { shape, outer: 0, range: 0..0 });
        }
        let size = tensor.dtype().size_bytes().unwrap_or(0);
        let inner = tensor.shape()[axis + 1..].iter().product::<usize>() * size;
        let outer = shape[..axis].iter().product();
        Ok(Self { shape, outer, range: start * inner..end * inner })
    }

    /// The bytes of the part.
    pub(super) fn bytes(&self) -> usize {
        self.outer * self.range.len()
    }

    /// Copy the part.
    pub(super) fn copy<E>(
        &self,
        tensor: &Tensor,
        pool: &BufferPool,
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<Arc<Buffer>, E> {
        let mut target = pool.begin(self.bytes());
        let mut unasked = 0;
        let blocks = tensor.as_bytes().len().checked_div(self.outer).unwrap_or(0);
        for index in 0..self.outer {
            target.append(&tensor.as_bytes()[index * blocks..][self.range.clone()]);
            unasked += self.range.len() + 1;
            if unasked >= COPIED_PER_PART {
                unasked = 0;
                may_go_on()?;
            }
        }
        Ok(target.freeze())
    }
}

fn first(parts: &[Tensor]) -> Result<&Tensor, String> {
    parts.first().ok_or_else(|| "no tensors are given: at least one is needed".into())
}

fn unlike(index: usize, part: &Tensor, first: &Tensor) -> String {
    let (shape, wanted) = (part.shape(), first.shape());
    format!("tensor {index} has shape {shape:?}, which does not fit {wanted:?} of tensor 0")
}

/// Texts differ in length, so only whole rows of them lie together.
fn check_strings(dtype: Dtype, axis: usize) -> Result<(), String> {
    if dtype == Dtype::String && axis > 0 {
        return Err(format!("axis is {axis}, but tensors of strings have only axis 0 here"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(shape: &[usize], values: &[u8]) -> Tensor {
        let buffer = BufferPool::new(0).copy_from(values);
        Tensor::new(Dtype::Uint8, shape.into(), buffer).unwrap()
    }

    fn go_on() -> Result<(), std::convert::Infallible> {
        Ok(())
    }

    fn made(joined: Result<Joined, String>, parts: &[Tensor]) -> (Vec<usize>, Vec<u8>) {
        let joined = joined.unwrap();
        let buffer = joined.copy(parts, &BufferPool::new(0), go_on).unwrap();
        assert_eq!(buffer.as_bytes().len(), joined.bytes);
        (joined.shape.to_vec(), buffer.as_bytes().into())
    }

    #[test]
    fn tensors_are_joined_along_any_axis() {
        let parts = [tensor(&[2, 2], &[1, 2, 3, 4]), tensor(&[2, 1], &[5, 6])];
        let joined = made(Joined::concat(&parts, 1), &parts);
        assert_eq!(joined, (vec![2, 3], vec![1, 2, 5, 3, 4, 6]));
        let alike = [tensor(&[2], &[1, 2]), tensor(&[2], &[3, 4])];
        let (rows, columns) = (Joined::stack(&alike, 0), Joined::stack(&alike, 1));
        assert_eq!(made(rows, &alike), (vec![2, 2], vec![1, 2, 3, 4]));
        assert_eq!(made(columns, &alike), (vec![2, 2], vec![1, 3, 2, 4]));
    }

    #[test]
    fn empty_tensors_can_be_joined() {
        let parts = [tensor(&[0, 2], &[]), tensor(&[0, 3], &[])];
        assert_eq!(made(Joined::concat(&parts, 1), &parts), (vec![0, 5], vec![]));
    }

    #[test]
    fn dimensions_beside_an_empty_one_may_be_huge() {
        let huge = tensor(&[0, usize::MAX, usize::MAX], &[]);
        let part = TensorPart::of(&huge, 0, 0..0).unwrap();
        assert_eq!(part.bytes(), 0);
        let joined = Joined::concat(&[huge.clone(), huge.clone()], 0).unwrap();
        assert_eq!((joined.bytes, joined.shape[0]), (0, 0));
        assert!(Joined::concat(&[huge.clone(), huge], 1).unwrap_err().contains("overflows"));
    }

    #[test]
    fn tensors_that_do_not_fit_are_refused_by_name() {
        let parts = [tensor(&[2, 2], &[0; 4]), tensor(&[1, 2], &[0; 2])];
        let refusal = |joined: Result<Joined, String>| joined.unwrap_err();
        let unlike = "tensor 1 has shape [1, 2], which does not fit [2, 2] of tensor 0";
        assert_eq!(refusal(Joined::concat(&parts, 1)), unlike);
        assert_eq!(refusal(Joined::stack(&parts, 0)), unlike);
        let axis = "axis is 2, but the tensors have 2 dimensions";
        assert_eq!(refusal(Joined::concat(&parts, 2)), axis);
        assert!(refusal(Joined::concat(&[], 0)).contains("at least one"));
    }

    #[test]
    fn a_part_is_taken_along_any_axis() {
        let whole = tensor(&[2, 3], &[1, 2, 3, 4, 5, 6]);
        let taken = |axis, range| {
            let part = TensorPart::of(&whole, axis, range).unwrap();
            let buffer = part.copy(&whole, &BufferPool::new(0), go_on).unwrap();
            assert_eq!(buffer.as_bytes().len(), part.bytes());
            (part.shape.to_vec(), buffer.as_bytes().to_vec())
        };
        assert_eq!(taken(1, 1..3), (vec![2, 2], vec![2, 3, 5, 6]));
        assert_eq!(taken(0, 1..2), (vec![1, 3], vec![4, 5, 6]));
        assert_eq!(taken(0, 2..2), (vec![0, 3], vec![]));
        let outside = TensorPart::of(&whole, 1, 2..4).err().unwrap();
        assert_eq!(outside, "2 to 4 is not within dimension 1, of size 3");
    }
}
