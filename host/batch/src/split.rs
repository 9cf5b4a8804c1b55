//! Requests that run in parts: cut on their way in, joined on their way out.
//!
//! Those with more rows than a batch holds are cut here, and their parts share their buffers; those
//! whose rows have different lengths are taken apart by `ragged`.
//!
//! Invariant: rows are joined in the order in which they came.

use gristmill_core::{BufferPool, NamedTensor, Tensor};
use smallvec::{SmallVec, smallvec};

use crate::error::{RunError, SubmitError};
use crate::submission::Answered;

/// One request, or a part of one that is larger than a batch.
pub(crate) struct RequestPart {
    pub(crate) inputs: Vec<NamedTensor>,
    /// Those that have defaults. A request that gives some is never cut.
    pub(crate) optional: Vec<NamedTensor>,
    pub(crate) rows: usize,
    /// The key of its shape, once it is known.
    pub(crate) shape_key: u64,
}

impl RequestPart {
    pub(crate) fn new(inputs: Vec<NamedTensor>, optional: Vec<NamedTensor>, rows: usize) -> Self {
        Self { inputs, optional, rows, shape_key: 0 }
    }
}

/// The parts of a request.
#[derive(Default)]
pub(crate) struct RequestParts {
    pub(crate) list: SmallVec<[RequestPart; 1]>,
    /// Where each row of the request is. None if the parts have them in order.
    pub(crate) places: Option<Vec<PartRow>>,
}

/// Where a row of a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartRow {
    /// The index of its part.
    pub(crate) part: usize,
    /// The row of the part.
    pub(crate) row: usize,
}

impl RequestParts {
    /// Each part that has more rows than `max` in parts of at most so many.
    ///
    /// # Errors
    /// Fails if the inputs cannot be split by rows.
    pub(crate) fn cut(self, max: usize) -> Result<Self, SubmitError> {
        if self.list.iter().all(|part| part.rows <= max) {
            return Ok(self);
        }
        let mut places = self.places;
        let mut cut = SmallVec::<[RequestPart; 1]>::new();
        let mut firsts = SmallVec::<[usize; 8]>::new();
        for part in self.list {
            firsts.push(cut.len());
            cut.extend(split(part, max)?);
        }
        for PartRow { part, row } in places.iter_mut().flatten() {
            (*part, *row) = (firsts[*part] + *row / max, *row % max);
        }
        Ok(Self { list: cut, places })
    }
}

impl From<RequestPart> for RequestParts {
    fn from(whole: RequestPart) -> Self {
        Self { list: smallvec![whole], places: None }
    }
}

/// Parts of at most `max` rows each, which share the buffers of the `whole`. A request that is not
/// larger is returned unchanged.
///
/// # Errors
/// Fails if the inputs cannot be split by rows.
fn split(whole: RequestPart, max: usize) -> Result<SmallVec<[RequestPart; 1]>, SubmitError> {
    if whole.rows <= max {
        return Ok(smallvec![whole]);
    }
    let RequestPart { inputs, optional, rows, .. } = whole;
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
        Some(RequestPart::new(inputs, Vec::new(), range.len()))
    };
    let parts = (0..rows).step_by(max).map(part).collect::<Option<_>>();
    parts.ok_or(SubmitError::TooManyRows { rows, max })
}

/// Join the answers to a request's parts into its answer. Each has `outputs` tensors. `places` says
/// where each row is, if they are not in order. If this fails, `parts` keeps them.
///
/// # Errors
/// Fails if the tensors of the parts do not fit together.
pub(crate) fn joined(
    parts: &mut SmallVec<[Answered; 1]>,
    places: Option<&[PartRow]>,
    outputs: usize,
    pool: &BufferPool,
) -> Result<Answered, SubmitError> {
    if parts.len() == 1
        && let Some(whole) = parts.pop()
    {
        return Ok(whole);
    }
    let mut whole = Answered::default();
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
        let Some(places) = places else {
            let pieces = parts.iter().map(|part| &part.outputs[index]);
            return Ok(Tensor::stack(pool, pieces)?);
        };
        let row_at = |PartRow { part, row }: &PartRow| {
            parts.get(*part)?.outputs[index].slice_rows(*row..row + 1)
        };
        let rows: Option<Vec<_>> = places.iter().map(row_at).collect();
        Ok(Tensor::stack(pool, rows.ok_or(RunError::Indivisible)?.iter())?)
    });
    whole.outputs = stacked.collect::<Result<_, SubmitError>>()?;
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
                let part = RequestPart::new(whole.clone(), Vec::new(), rows);
                let parts = split(part, max).unwrap();
                prop_assert_eq!(parts.len(), rows.div_ceil(max));
                let mut left = rows;
                let mut answers = SmallVec::new();
                for RequestPart { inputs, rows, .. } in parts {
                    prop_assert_eq!(rows, left.min(max));
                    left -= rows;
                    prop_assert!(inputs.iter().all(|input| input.tensor.rows() == rows));
                    let outputs = inputs.into_iter().map(|input| input.tensor).collect();
                    answers.push(Answered { outputs, ..Answered::default() });
                }
                prop_assert_eq!(left, 0);
                let joined = joined(&mut answers, None, whole.len(), &pool).unwrap();
                for (output, input) in joined.outputs.iter().zip(&whole) {
                    prop_assert_eq!(output.shape(), input.tensor.shape());
                    prop_assert_eq!(output.as_bytes(), input.tensor.as_bytes());
                }
            }
        }
    }
}
