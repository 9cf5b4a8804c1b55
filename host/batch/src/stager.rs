//! The inputs of a batch: those of its requests, copied together into pooled buffers, and padded to
//! the next allowed size with copies of the last row.

use std::iter::repeat_n;

use gristmill_core::{BufferPool, Tensor};

use crate::error::RunError;
use crate::job::Job;
use crate::policy::{Entry, rows_of};

/// Maximum bytes of padding. A batch that would need more runs as it is: the rows are large then,
/// and clients choose how large.
const PADDING_BYTES_MAX: usize = 256 << 20;

/// Copies batches together.
pub(crate) struct Stager {
    pub(crate) pool: BufferPool,
    /// The allowed sizes of batches, ascending. Empty if any size is allowed.
    pub(crate) sizes: Vec<usize>,
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
        for (index, input) in last.item.inputs.iter().enumerate() {
            let parts = requests.iter().map(|entry| &entry.item.inputs[index].tensor);
            let row = match padding {
                0 => None,
                _ => input.tensor.slice_rows(last.rows - 1..last.rows),
            };
            let rows = row.iter().flat_map(|row| repeat_n(row, padding));
            match Tensor::stack(&self.pool, parts.chain(rows)) {
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
        // Rows are as large as each other: only like ones share a batch.
        let row_bytes = last_bytes / last.rows.max(1);
        let padding = next - rows;
        if last.rows == 0 || row_bytes.saturating_mul(padding) > PADDING_BYTES_MAX {
            return 0;
        }
        padding
    }
}
