//! Requests with more rows than a batch holds: taken apart on their way in, put together on their way out.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use gristmill_core::{BufferPool, NamedTensor, Tensor};
use smallvec::{SmallVec, smallvec};

use crate::SubmitError;
use crate::ticket::Served;

/// One request, or a part of one that is larger than a batch.
pub(crate) struct Part {
    pub(crate) inputs: Vec<NamedTensor>,
    pub(crate) rows: usize,
}

pub(crate) type Parts = SmallVec<[Part; 1]>;

/// Parts of at most `max` rows each, sharing the request's buffers; the request itself where it is none
/// too many.
pub(crate) fn split(
    inputs: Vec<NamedTensor>,
    rows: usize,
    max: usize,
) -> Result<Parts, SubmitError> {
    if rows <= max {
        return Ok(smallvec![Part { inputs, rows }]);
    }
    let part = |start: usize| {
        let range = start..rows.min(start + max);
        let cut = inputs.iter().map(|NamedTensor { name, tensor }| {
            let tensor = tensor.slice_rows(range.clone());
            Some(NamedTensor { name: name.clone(), tensor: tensor? })
        });
        Some(Part { inputs: cut.collect::<Option<_>>()?, rows: range.len() })
    };
    let parts = (0..rows).step_by(max).map(part).collect::<Option<_>>();
    parts.ok_or(SubmitError::TooManyRows { rows, max })
}

/// What a request came to, from what its parts did; each has `outputs` tensors.
pub(crate) fn joined(
    mut parts: SmallVec<[Served; 1]>,
    outputs: usize,
    pool: &BufferPool,
) -> Result<Served, SubmitError> {
    if parts.len() == 1
        && let Some(whole) = parts.pop()
    {
        return Ok(whole);
    }
    let mut whole = Served::default();
    for part in &parts {
        whole.queued = whole.queued.max(part.queued);
        whole.times.add(&part.times);
        whole.provider = part.provider;
    }
    let stacked = (0..outputs).map(|index| {
        let pieces = parts.iter().map(|part| &part.outputs[index]);
        Tensor::stack(pool, pieces).map_err(|error| SubmitError::Failed(error.to_string()))
    });
    whole.outputs = stacked.collect::<Result<_, _>>()?;
    Ok(whole)
}

pub(crate) fn bytes_of(inputs: &[NamedTensor]) -> usize {
    inputs.iter().map(|input| input.tensor.as_bytes().len()).sum()
}

/// Equal for inputs that can share a batch: the dtypes are the model's, so what may differ is the
/// dimensions after the first.
pub(crate) fn shape_key(inputs: &[NamedTensor]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        input.tensor.shape().get(1..).hash(&mut hasher);
    }
    hasher.finish()
}
