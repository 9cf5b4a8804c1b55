//! Keys that a tensor holds: what tables and stores take in place of a list of texts.

use gristmill_core::{Dtype, Tensor};

/// An element of such a tensor.
pub(super) enum Id<'a> {
    /// The same key as its decimal text.
    Number(i64),
    /// A text, which may not be UTF-8.
    Text(&'a [u8]),
}

/// The elements of a tensor of int64 or of strings of one dimension.
///
/// # Errors
/// It is another one. The text begins with `what`, the name of the argument.
pub(super) fn ids_of<'a>(
    what: &str,
    tensor: &'a Tensor,
) -> Result<impl Iterator<Item = Id<'a>>, String> {
    let (dtype, shape) = (tensor.dtype(), tensor.shape());
    if shape.len() != 1 || !matches!(dtype, Dtype::Int64 | Dtype::String) {
        return Err(format!(
            "{what} is a tensor of {dtype} with the shape {shape:?}: must be int64 or strings of \
             one dimension"
        ));
    }
    let numbers = if dtype == Dtype::Int64 { tensor.as_bytes() } else { &[] };
    let numbers = numbers.as_chunks::<{ size_of::<i64>() }>().0.iter();
    let numbers = numbers.map(|number| Id::Number(i64::from_le_bytes(*number)));
    Ok(numbers.chain(tensor.texts().into_iter().flatten().map(Id::Text)))
}
