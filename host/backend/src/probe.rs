//! Inputs that are made up for first runs of a model: zeros, also as texts.
//!
//! A first run shows faults that do not depend on the inputs. The caller chooses the number of
//! rows, and the size of the other dimensions that may vary.

use std::fmt::Display;

use gristmill_core::{BufferPool, Dtype, Model, ModelError, ModelInfo, Tensor, TensorInfo};

/// Maximum bytes of the inputs that are made up for a first run.
const INPUT_BYTES_MAX: usize = 64 << 20;

/// Maximum texts that are made up for an input.
const TEXTS_MAX: usize = 1 << 16;

/// Run the model once with one row, without a limit on its time.
pub(crate) fn run_once(
    model: &mut dyn Model,
    info: &ModelInfo,
    pool: &BufferPool,
) -> Result<(), ModelError> {
    let inputs = inputs(info, 1, 1, pool)?;
    model.run(&inputs).map(drop)
}

/// The first of `sizes` that the model takes for the open dimensions after the first; 1 if it takes
/// none. `run` runs it on one row.
pub(crate) fn open_size(
    info: &ModelInfo,
    pool: &BufferPool,
    sizes: &[usize],
    mut run: impl FnMut(&[Tensor]) -> Result<(), ModelError>,
) -> usize {
    if info.rows_are_alike() {
        return 1;
    }
    let mut is_taken = |size: &usize| {
        let inputs = inputs(info, 1, *size, pool);
        inputs.is_ok_and(|inputs| run(&inputs).is_ok())
    };
    sizes.iter().copied().find(|size| is_taken(size)).unwrap_or(1)
}

/// So many rows for each of the model's inputs; `size` replaces the other open dimensions. An input
/// with a fixed first dimension keeps it.
///
/// # Errors
/// They would be too large.
pub(crate) fn inputs(
    info: &ModelInfo,
    rows: usize,
    size: usize,
    pool: &BufferPool,
) -> Result<Vec<Tensor>, ModelError> {
    let mut left = INPUT_BYTES_MAX;
    let made_up =
        |input: &TensorInfo| made_up(input, &shape_of(input, rows, size), &mut left, pool);
    info.inputs.iter().map(made_up).collect()
}

/// The input's shape with so many rows; `size` replaces the other open dimensions.
pub(crate) fn shape_of(input: &TensorInfo, rows: usize, size: usize) -> Vec<usize> {
    let open = std::iter::once(rows).chain(std::iter::repeat(size));
    input.dims.iter().zip(open).map(|(dim, open)| dim.unwrap_or(open)).collect()
}

/// The elements and the bytes of a tensor of this shape, which are taken off those that are `left`.
/// None if it needs more.
pub(crate) fn take_size(
    input: &TensorInfo,
    shape: &[usize],
    left: &mut usize,
) -> Option<(usize, usize)> {
    let elements = shape.iter().try_fold(1_usize, |all, dim| all.checked_mul(*dim))?;
    let bytes = elements.checked_mul(input.dtype.size_bytes().unwrap_or(32))?;
    *left = left.checked_sub(bytes)?;
    Some((elements, bytes))
}

fn made_up(
    input: &TensorInfo,
    shape: &[usize],
    left: &mut usize,
    pool: &BufferPool,
) -> Result<Tensor, ModelError> {
    let failed = |why: &dyn Display| {
        ModelError::new(format!("input {:?} cannot be made up: {why}", input.name))
    };
    let Some((elements, bytes)) = take_size(input, shape, left) else {
        return Err(failed(&format_args!("{shape:?} is too large")));
    };
    let made = match input.dtype {
        Dtype::String if elements > TEXTS_MAX => return Err(failed(&"too many texts")),
        Dtype::String => Tensor::from_strings(pool, shape.into(), &vec!["0"; elements]),
        dtype => {
            let zeros = pool.fill(bytes, |bytes| bytes.fill(0));
            Tensor::new(dtype, shape.into(), zeros)
        }
    };
    made.map_err(|error| failed(&error))
}
