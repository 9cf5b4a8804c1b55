//! Arithmetic on the rows of a tensor. A row is everything after the first dimension.

use super::{Scored, Tensor};

/// The elements and the width of a row; none if the dtype is not float32 or rows are empty.
fn rows(tensor: &Tensor) -> Option<(Vec<f32>, usize)> {
    let floats = tensor.floats()?;
    let rows = tensor.shape.first().map_or(1, |rows| *rows as usize);
    let width = floats.len().checked_div(rows).filter(|width| *width > 0)?;
    Some((floats, width))
}

pub(super) fn argmax(tensor: &Tensor) -> Vec<Scored> {
    let Some((floats, width)) = rows(tensor) else { return Vec::new() };
    let best = |row: &[f32]| {
        let first = Scored { index: 0, value: row[0] };
        row.iter().enumerate().fold(first, |best, (index, value)| {
            if *value > best.value { Scored { index: index as u32, value: *value } } else { best }
        })
    };
    floats.chunks_exact(width).map(best).collect()
}

pub(super) fn top_k(tensor: &Tensor, row: usize, k: usize) -> Vec<Scored> {
    let Some((floats, width)) = rows(tensor) else { return Vec::new() };
    let Some(row) = floats.chunks_exact(width).nth(row) else { return Vec::new() };
    let scored = |(index, value): (usize, &f32)| Scored { index: index as u32, value: *value };
    let mut all: Vec<_> = row.iter().enumerate().map(scored).collect();
    // Stable: of equal values the first one stays first.
    all.sort_by(|a, b| b.value.total_cmp(&a.value));
    all.truncate(k);
    all
}

pub(super) fn softmax(tensor: &Tensor) -> Option<Tensor> {
    let (mut floats, width) = rows(tensor)?;
    for row in floats.chunks_exact_mut(width) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter_mut().for_each(|value| *value = (*value - largest).exp());
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|value| *value /= sum);
    }
    let data = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
    Some(Tensor { dtype: tensor.dtype, shape: tensor.shape.clone(), data })
}
