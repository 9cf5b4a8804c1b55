//! Joining tensors along a dimension, and taking a part along one.
//!
//! An array is `outer` blocks of bytes, one after another: `outer` is the product of the dimensions
//! before the axis. Joining takes one block of each tensor in turn.

use std::ops::Range;

use super::{Dtype, Tensor, split_string};

pub(super) fn concat(parts: &[&Tensor], axis: usize) -> Result<Tensor, String> {
    let first = first(parts)?;
    let rank = first.shape.len();
    if axis >= rank {
        return Err(format!("axis is {axis}, but the tensors have {rank} dimensions"));
    }
    let others = |part: &Tensor| {
        let mut shape = part.shape.clone();
        shape[axis] = 0;
        shape
    };
    let fits = |part: &Tensor| part.shape.len() == rank && others(part) == others(first);
    let mut shape = others(first);
    for (index, part) in parts.iter().enumerate() {
        if !fits(part) {
            return Err(unlike(index, part, first));
        }
        let sum = shape[axis].checked_add(part.shape[axis]);
        shape[axis] = sum.ok_or_else(|| format!("dimension {axis} overflows"))?;
    }
    joined(parts, axis, shape)
}

pub(super) fn stack(parts: &[&Tensor], axis: usize) -> Result<Tensor, String> {
    let first = first(parts)?;
    let rank = first.shape.len();
    if axis > rank {
        return Err(format!("axis is {axis}, but the tensors have {rank} dimensions"));
    }
    if let Some(index) = parts.iter().position(|part| part.shape != first.shape) {
        return Err(unlike(index, parts[index], first));
    }
    let mut shape = first.shape.clone();
    shape.insert(axis, parts.len() as u32);
    joined(parts, axis, shape)
}

fn joined(parts: &[&Tensor], axis: usize, shape: Vec<u32>) -> Result<Tensor, String> {
    let dtype = first(parts)?.dtype;
    if let Some(index) = parts.iter().position(|part| part.dtype != dtype) {
        let other = parts[index].dtype;
        return Err(format!("tensor {index} is {other:?}, but tensor 0 is {dtype:?}"));
    }
    check_strings(dtype, axis)?;
    // An empty result has no blocks.
    let is_empty = parts.iter().all(|part| part.data.is_empty());
    let outer = if is_empty { 0 } else { product(&shape[..axis]) };
    let mut data = Vec::new();
    for index in 0..outer {
        for part in parts {
            let block = part.data.len() / outer;
            data.extend_from_slice(&part.data[index * block..][..block]);
        }
    }
    Ok(Tensor { dtype, shape, data: data.into() })
}

pub(super) fn slice(tensor: &Tensor, axis: usize, range: Range<usize>) -> Result<Tensor, String> {
    let Tensor { dtype, shape, data } = tensor;
    let rank = shape.len();
    let Some(size) = shape.get(axis).map(|size| *size as usize) else {
        return Err(format!("axis is {axis}, but the tensor has {rank} dimensions"));
    };
    let Range { start, end } = range;
    if start > end || end > size {
        return Err(format!("{start} to {end} is not within dimension {axis}, of size {size}"));
    }
    check_strings(*dtype, axis)?;
    let mut part = shape.clone();
    part[axis] = (end - start) as u32;
    if data.is_empty() {
        return Ok(Tensor { dtype: *dtype, shape: part, data: data.clone() });
    }
    let inner = product(&shape[axis + 1..]);
    let bytes = match dtype.bytes() {
        Some(bytes) => {
            let (row, range) = (inner * bytes, start * inner * bytes..end * inner * bytes);
            data.chunks_exact(size * row).flat_map(|block| &block[range.clone()]).copied().collect()
        }
        None => {
            let mut rest = &data[..];
            let mut after = |strings: usize| {
                for _ in 0..strings {
                    rest = split_string(rest).map_or(&[], |(_, tail)| tail);
                }
                data.len() - rest.len()
            };
            let (from, to) = (after(start * inner), after((end - start) * inner));
            data[from..to].into()
        }
    };
    Ok(Tensor { dtype: *dtype, shape: part, data: bytes })
}

fn product(dims: &[u32]) -> usize {
    dims.iter().map(|dim| *dim as usize).product()
}

fn first<'a>(parts: &[&'a Tensor]) -> Result<&'a Tensor, String> {
    parts.first().copied().ok_or_else(|| "no tensors are given: at least one is needed".into())
}

fn unlike(index: usize, part: &Tensor, first: &Tensor) -> String {
    let (shape, wanted) = (&part.shape, &first.shape);
    format!("tensor {index} has shape {shape:?}, which does not fit {wanted:?} of tensor 0")
}

/// Texts differ in length, so only whole rows of them lie together.
fn check_strings(dtype: Dtype, axis: usize) -> Result<(), String> {
    if dtype == Dtype::String && axis > 0 {
        return Err(format!("axis is {axis}, but tensors of strings have only axis 0 here"));
    }
    Ok(())
}
