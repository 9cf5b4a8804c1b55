//! The inputs of a batch: those of its requests, copied together into pooled buffers, and padded.
//!
//! If rows have different lengths, each is filled up to the bucket of the longest
//! (`core::Padding`), and outputs are cut back to the length of each request. Requests of one
//! length are not filled up: a request that runs alone costs as much as its rows, and gets the
//! model's own answer. What fills rows up is in no tenant's budget, so it is bounded by what they
//! brought. The number of rows is padded to the next allowed size with copies of the
//! last row.

use std::iter::repeat_n;

use gristmill_core::{BufferPool, CutOutput, Fill, Lengths, NamedTensor, Padding, Tensor};
use smallvec::SmallVec;

use crate::error::RunError;
use crate::job::Job;
use crate::policy::{Entry, FILLING_FACTOR_MAX, rows_of};
use crate::statistics::Elements;

/// Maximum bytes of padding. A batch that would need more rows runs as it is, and one whose rows
/// would have to be filled up by more runs by length: the rows are large then, and clients choose
/// how large.
const PADDING_BYTES_MAX: usize = 256 << 20;

/// The bytes that may always fill rows up.
const FILLING_BYTES_MIN: usize = 64 << 10;

/// Copies batches together.
pub(crate) struct Stager {
    pub(crate) pool: BufferPool,
    /// The allowed sizes of batches, ascending. Empty if any size is allowed.
    pub(crate) sizes: Vec<usize>,
    /// How rows of different lengths are padded.
    pub(crate) padding: Padding,
}

impl Stager {
    /// Whether the inputs of `requests` are copied. If not, they are those of the only request.
    pub(crate) fn copies(&self, requests: &[Entry<Job>], padding: usize) -> bool {
        requests.len() > 1 || self.pool.is_sourced() || padding > 0
    }

    /// Copy the inputs of all `requests` together into `staged`, which must be empty, after them so
    /// many rows of `padding`.
    ///
    /// # Errors
    /// The requests do not fit together. `staged` stays empty.
    pub(crate) fn stage(
        &self,
        requests: &[Entry<Job>],
        padding: usize,
        staged: &mut Vec<Tensor>,
    ) -> Result<(), RunError> {
        let Some(last) = requests.last() else { return Ok(()) };
        let lengths = self.lengths(requests);
        for (index, input) in last.item.inputs.iter().enumerate() {
            let parts = requests.iter().map(|entry| &entry.item.inputs[index].tensor);
            let row = match padding {
                0 => None,
                _ => input.tensor.slice_rows(last.rows - 1..last.rows),
            };
            let parts = parts.chain(row.iter().flat_map(|row| repeat_n(row, padding)));
            let stacked = match self.fill(index, lengths.as_ref()) {
                Some(fill) => Tensor::stack_filled(&self.pool, parts, fill),
                None => Tensor::stack(&self.pool, parts),
            };
            match stacked {
                Ok(stacked) => staged.push(stacked),
                Err(error) => {
                    staged.clear();
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// The rows that `requests` lack to the next allowed size; 0 if they are not padded.
    pub(crate) fn padding(&self, requests: &[Entry<Job>]) -> usize {
        let rows = rows_of(requests);
        if requests.iter().any(|entry| !entry.item.optional.is_empty()) {
            // It runs alone, and what it gives may not fit more rows.
            return 0;
        }
        let next = self.sizes.iter().find(|size| **size >= rows).copied();
        let (Some(next), Some(last)) = (next, requests.last()) else { return 0 };
        let inputs = last.item.inputs.iter();
        let last_bytes: usize = inputs.map(|input| input.tensor.as_bytes().len()).sum();
        // Rows are as large as each other, or filled up: only like ones share a batch.
        let row_bytes = last_bytes / last.rows.max(1);
        let padding = next - rows;
        if last.rows == 0 || row_bytes.saturating_mul(padding) > PADDING_BYTES_MAX {
            return 0;
        }
        padding
    }

    /// The lengths to which `requests` are filled up, so that they fit together. None if all have
    /// the same length, or if they are not padded.
    pub(crate) fn lengths(&self, requests: &[Entry<Job>]) -> Option<Lengths> {
        let (first, others) = requests.split_first()?;
        let first = self.lengths_of(first)?;
        let (mut longest, mut differ) = (first.clone(), false);
        for other in others {
            let lengths = self.lengths_of(other)?;
            differ |= lengths != first;
            for (longest, length) in longest.iter_mut().zip(lengths) {
                *longest = length.max(*longest);
            }
        }
        if differ { self.padding.padded(&longest) } else { None }
    }

    /// Whether `requests` that are filled up to `lengths` need no more bytes for it than they may.
    pub(crate) fn may_fill(&self, requests: &[Entry<Job>], lengths: &Lengths) -> bool {
        let padding = self.padding(requests);
        let bytes = requests.iter().map(|entry| entry.bytes).fold(0, usize::saturating_add);
        let max = bytes.saturating_mul(FILLING_FACTOR_MAX);
        let max = max.clamp(FILLING_BYTES_MIN, PADDING_BYTES_MAX);
        self.filling_bytes(requests, padding, lengths) <= max
    }

    /// The places of the `requests` that are filled up when they run together.
    pub(crate) fn filled(&self, requests: &[Entry<Job>]) -> SmallVec<[usize; 16]> {
        let Some(longest) = self.lengths(requests) else { return SmallVec::new() };
        let lengths = requests.iter().map(|entry| self.lengths_of(entry));
        let shorter = lengths.enumerate().filter(|(_, lengths)| lengths.as_ref() != Some(&longest));
        shorter.map(|(place, _)| place).collect()
    }

    /// Put requests of one length side by side.
    pub(crate) fn sort_by_length(&self, requests: &mut [Entry<Job>]) {
        requests.sort_by_cached_key(|entry| self.lengths_of(entry));
    }

    /// The lengths of a request, if it may be padded.
    pub(crate) fn lengths_of(&self, request: &Entry<Job>) -> Option<Lengths> {
        self.padding.lengths_of(&request.item.inputs)
    }

    /// Whether `requests` run at the size of their buckets: the longest has it, or all are filled
    /// up to it.
    pub(crate) fn are_at_bucket(&self, requests: &[Entry<Job>]) -> bool {
        let first = requests.first().and_then(|first| self.lengths_of(first));
        self.lengths(requests).is_some()
            || first.is_some_and(|first| self.padding.padded(&first).as_ref() == Some(&first))
    }

    /// Check that the outputs that are cut back have the `lengths` of their inputs.
    ///
    /// # Errors
    /// [`RunError::Length`].
    pub(crate) fn check_lengths(
        &self,
        outputs: &[Tensor],
        lengths: &Lengths,
    ) -> Result<(), RunError> {
        for CutOutput { output, axis, length } in &self.padding.outputs {
            let size = outputs.get(*output).and_then(|output| output.shape().get(*axis).copied());
            let (actual, padded, axis) = (size.unwrap_or(1), lengths[*length], *axis);
            if actual != padded {
                return Err(RunError::Length { axis, padded, actual });
            }
        }
        Ok(())
    }

    /// Cut the outputs of a request's rows, which were filled up, back to its length. None if they
    /// cannot be cut.
    pub(crate) fn cut(
        &self,
        request: &Entry<Job>,
        mut outputs: Vec<Tensor>,
    ) -> Option<Vec<Tensor>> {
        let lengths = self.lengths_of(request)?;
        for cut in &self.padding.outputs {
            let output = outputs.get_mut(cut.output)?;
            *output = output.cut(&self.pool, cut.axis, *lengths.get(cut.length)?)?;
        }
        Some(outputs)
    }

    /// The elements of the inputs that may be padded, of `requests` that run together.
    pub(crate) fn elements(&self, requests: &[Entry<Job>]) -> Elements {
        let filled = self.lengths(requests);
        let mut elements = Elements::default();
        for (index, length) in self.padding.lengths.iter().enumerate() {
            for padded in &length.inputs {
                for entry in requests {
                    let Some(input) = entry.item.inputs.get(padded.input) else { continue };
                    let tensor = &input.tensor;
                    let real: usize = tensor.shape().iter().product();
                    let length = tensor.shape().get(padded.axis).copied().unwrap_or_default();
                    let filled = filled.as_ref().map_or(length, |filled| filled[index]);
                    let whole = real / length.max(1) * filled;
                    elements.real += real as u64;
                    elements.padding += whole.saturating_sub(real) as u64;
                }
            }
        }
        elements
    }

    /// How an input is filled up, if it is.
    fn fill(&self, input: usize, lengths: Option<&Lengths>) -> Option<Fill<'_>> {
        let (length, padded) = self.padding.of_input(input)?;
        let size = *lengths?.get(length)?;
        Some(Fill { axis: padded.axis, size, element: &padded.element })
    }

    /// The bytes that fill the rows of `requests`, and so many rows of `padding`, up to `lengths`.
    fn filling_bytes(&self, requests: &[Entry<Job>], padding: usize, lengths: &Lengths) -> usize {
        let Some(last) = requests.last() else { return 0 };
        let rows = rows_of(requests) + padding;
        let bytes = |(index, input): (usize, &NamedTensor)| {
            let fill = self.fill(index, Some(lengths))?;
            let (rows_before, shape) = (input.tensor.rows().max(1), input.tensor.shape());
            let place = input.tensor.as_bytes().len() / rows_before / shape[fill.axis].max(1);
            let real =
                requests.iter().map(|entry| entry.item.inputs[index].tensor.as_bytes().len());
            let whole = place.saturating_mul(fill.size).saturating_mul(rows);
            Some(whole.saturating_sub(real.sum()))
        };
        last.item.inputs.iter().enumerate().filter_map(bytes).fold(0, usize::saturating_add)
    }
}
