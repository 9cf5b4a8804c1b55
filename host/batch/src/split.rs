//! Requests with more rows than a batch holds: split on their way in, joined on their way out.
//!
//! Invariant: parts share the request's buffers, and are joined in the order in which they were
//! cut.

use gristmill_core::{BufferPool, NamedTensor, Tensor};
use smallvec::{SmallVec, smallvec};

use crate::error::SubmitError;
use crate::served::Served;

/// One request, or a part of one that is larger than a batch.
pub(crate) struct RequestPart {
    pub(crate) inputs: Vec<NamedTensor>,
    /// Those that have defaults. A request that gives some is never cut.
    pub(crate) optional: Vec<NamedTensor>,
    pub(crate) rows: usize,
}

pub(crate) type RequestParts = SmallVec<[RequestPart; 1]>;

/// Parts of at most `max` rows each, which share the buffers of the `whole`. A request that is not
/// larger is returned unchanged.
///
/// # Errors
/// Fails if the inputs cannot be split by rows.
pub(crate) fn split(whole: RequestPart, max: usize) -> Result<RequestParts, SubmitError> {
    if whole.rows <= max {
        return Ok(smallvec![whole]);
    }
    let RequestPart { inputs, optional, rows } = whole;
    if !optional.is_empty() {
        return Err(SubmitError::TooManyRows { rows, max });
    }
    let part = |start: usize| {
        let range = start..rows.min(start + max);
        let cut = inputs.iter().map(|NamedTensor { name, tensor }| {
            let tensor = tensor.slice_rows(range.clone());
            Some(NamedTensor { name: name.clone(), tensor: tensor? })
        });
        let inputs = cut.collect::<Option<_>>()?;
        Some(RequestPart { inputs, optional: Vec::new(), rows: range.len() })
    };
    let parts = (0..rows).step_by(max).map(part).collect::<Option<_>>();
    parts.ok_or(SubmitError::TooManyRows { rows, max })
}

/// Join the answers to a request's parts into its answer. Each has `outputs` tensors. If this
/// fails, `parts` keeps them.
///
/// # Errors
/// Fails if the tensors of the parts do not fit together.
pub(crate) fn joined(
    parts: &mut SmallVec<[Served; 1]>,
    outputs: usize,
    pool: &BufferPool,
) -> Result<Served, SubmitError> {
    if parts.len() == 1
        && let Some(whole) = parts.pop()
    {
        return Ok(whole);
    }
    let mut whole = Served::default();
    for part in parts.iter() {
        whole.queued = whole.queued.max(part.queued);
        whole.times.add(&part.times);
        whole.used.add(part.used);
        whole.batch_rows = whole.batch_rows.max(part.batch_rows);
        whole.batch_tenants = whole.batch_tenants.max(part.batch_tenants);
        whole.provider = part.provider;
        whole.batch = part.batch.clone();
    }
    let stacked = (0..outputs).map(|index| {
        let pieces = parts.iter().map(|part| &part.outputs[index]);
        Tensor::stack(pool, pieces)
    });
    whole.outputs = stacked.collect::<Result<_, _>>()?;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use gristmill_core::Dtype;
    use proptest::prelude::*;

    use super::*;

    /// A tensor of two columns, and a tensor of texts of different lengths.
    fn inputs(pool: &BufferPool, rows: usize) -> Vec<NamedTensor> {
        let numbers: Vec<u8> = (0..2 * rows).map(|at| at as u8).collect();
        let numbers = Tensor::new(Dtype::Uint8, smallvec![rows, 2], pool.copy_from(&numbers));
        let texts: Vec<_> = (0..rows).map(|row| "text"[..row % 5].repeat(row % 3)).collect();
        let texts = Tensor::from_strings(pool, smallvec![rows, 1], &texts);
        let named = |name: &str, tensor| NamedTensor { name: name.into(), tensor };
        vec![named("numbers", numbers.unwrap()), named("texts", texts.unwrap())]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

        /// About 115,000 requests. Each is split into full parts and a rest, in order, and joined
        /// into the same bytes again.
        #[test]
        fn parts_are_full_and_come_together_again(
            requests in prop::collection::vec((1..=60_usize, 1..=16_usize), 200..250),
        ) {
            let pool = BufferPool::new(1 << 20);
            for (rows, max) in requests {
                let whole = inputs(&pool, rows);
                let part = RequestPart { inputs: whole.clone(), optional: Vec::new(), rows };
                let parts = split(part, max).unwrap();
                prop_assert_eq!(parts.len(), rows.div_ceil(max));
                let mut left = rows;
                let mut served = SmallVec::new();
                for RequestPart { inputs, rows, .. } in parts {
                    prop_assert_eq!(rows, left.min(max));
                    left -= rows;
                    prop_assert!(inputs.iter().all(|input| input.tensor.rows() == rows));
                    let outputs = inputs.into_iter().map(|input| input.tensor).collect();
                    served.push(Served { outputs, ..Served::default() });
                }
                prop_assert_eq!(left, 0);
                let joined = joined(&mut served, whole.len(), &pool).unwrap();
                for (output, input) in joined.outputs.iter().zip(&whole) {
                    prop_assert_eq!(output.shape(), input.tensor.shape());
                    prop_assert_eq!(output.as_bytes(), input.tensor.as_bytes());
                }
            }
        }
    }
}
