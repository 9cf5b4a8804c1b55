//! Opens the file of a model whose outputs may have rows that the file denies.
//!
//! The first dimension that a file gives an output is a claim, which ONNX Runtime does not hold the
//! model to: it writes a line to the log in each run. If the graph says that the rows are there
//! (`rows`), the dimension is opened. Else requests could share no batch.

use std::borrow::Cow;

use crate::error::LoadError;
use crate::inspect::decode;
use crate::onnx::first_dims;
use crate::rows;
use crate::source::{ModelFile, ModelSource};

/// # Errors
/// As for [`ModelSource::open`]; or the file cannot be decoded.
pub(crate) fn open(file: ModelFile<'_>) -> Result<ModelSource<'_>, LoadError> {
    let mut source = ModelSource::open(file)?;
    // A file that is malformed is refused with more words when it is decoded.
    if first_dims::are_fixed(&source.onnx).unwrap_or(false)
        && rows::analyse(&decode(&source.onnx)?).is_ok()
        && let Ok(opened) = first_dims::opened(&source.onnx)
    {
        source.onnx = Cow::Owned(opened);
    }
    Ok(source)
}
