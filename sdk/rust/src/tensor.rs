//! Typed tensors: slices in, slices out.

mod element;
mod outputs;
mod view;

use std::ops::{Bound, RangeBounds};

pub use self::element::Element;
pub use self::outputs::Outputs;
pub use self::view::View;
use crate::{Dtype, Failure, Tensor, TensorError};

/// The bytes of the length before each string.
const LENGTH_BYTES: usize = 4;

impl Tensor {
    /// A tensor of `shape` with these elements, row-major. They are copied once, to the host.
    ///
    /// # Errors
    /// [`TensorError::LengthMismatch`] if the shape needs another number of elements.
    pub fn from_slice<T: Element>(shape: &[usize], elements: &[T]) -> Result<Self, TensorError> {
        Self::create(T::DTYPE, &dims(shape)?, bytemuck::cast_slice(elements))
    }

    /// A tensor of `shape` with these strings, row-major.
    ///
    /// # Errors
    /// [`TensorError::InvalidElement`] or [`TensorError::LengthMismatch`] if the shape needs
    /// another number of strings.
    pub fn from_strings<S: AsRef<str>>(
        shape: &[usize],
        strings: &[S],
    ) -> Result<Self, TensorError> {
        let texts = || strings.iter().map(AsRef::as_ref);
        let mut bytes = Vec::with_capacity(texts().map(|text| LENGTH_BYTES + text.len()).sum());
        for text in texts() {
            let fault = |_| TensorError::TooLarge("a string is over 2^32 bytes long".into());
            let length = u32::try_from(text.len()).map_err(fault)?;
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        Self::create(Dtype::String, &dims(shape)?, &bytes)
    }

    /// The elements, copied once, from the host.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the tensor's dtype is not `T`'s.
    pub fn view<T: Element>(&self) -> Result<View<T>, Failure> {
        self.expect(T::DTYPE)?;
        Ok(View::new(self.dims(), self.data()))
    }

    /// The strings, row-major.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the tensor's dtype is not [`Dtype::String`].
    pub fn strings(&self) -> Result<Vec<String>, Failure> {
        self.expect(Dtype::String)?;
        let bytes = self.data();
        let (mut strings, mut rest) = (Vec::new(), bytes.as_slice());
        while let Some((length, tail)) = rest.split_first_chunk::<LENGTH_BYTES>() {
            let length = u32::from_le_bytes(*length) as usize;
            let cut = || Failure::internal("a string of the tensor is cut short");
            let (text, tail) = tail.split_at_checked(length).ok_or_else(cut)?;
            let broken = |error| Failure::internal(format!("a string of the tensor: {error}"));
            strings.push(std::str::from_utf8(text).map_err(broken)?.to_owned());
            rest = tail;
        }
        Ok(strings)
    }

    /// The dimensions; dimension 0 is rows.
    pub fn dims(&self) -> Vec<usize> {
        self.shape().into_iter().map(|dim| dim as usize).collect()
    }

    /// The part in `range` along dimension `axis`: [`slice`](Self::slice) with a range. Rows 2 to 4
    /// are `tensor.range(0, 2..5)`.
    ///
    /// # Errors
    /// [`TensorError::InvalidArgument`] if there is no such dimension, or the range is not within
    /// it.
    pub fn range(&self, axis: usize, range: impl RangeBounds<usize>) -> Result<Self, TensorError> {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.dims().get(axis).copied().unwrap_or(0),
        };
        // A number beyond u32 is out of range as well when it is cut to the largest one.
        let cut = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        self.slice(cut(axis), cut(start), cut(end))
    }

    /// The same values as elements of type `T`: [`cast`](Self::cast) with a Rust type.
    ///
    /// # Errors
    /// [`TensorError::InvalidArgument`] if the tensor has strings.
    pub fn cast_to<T: Element>(&self) -> Result<Self, TensorError> {
        self.cast(T::DTYPE)
    }

    fn expect(&self, wanted: Dtype) -> Result<(), Failure> {
        expect(self.dtype(), wanted)
    }
}

/// Elements that were read from the host.
pub(crate) struct Elements {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Vec<u8>,
}

impl Elements {
    pub(crate) fn view<T: Element>(self) -> Result<View<T>, Failure> {
        expect(self.dtype, T::DTYPE)?;
        Ok(View::new(self.shape, self.data))
    }
}

fn expect(dtype: Dtype, wanted: Dtype) -> Result<(), Failure> {
    if dtype == wanted {
        return Ok(());
    }
    Err(Failure::Internal(format!("tensor is {dtype:?}, wanted {wanted:?}")))
}

/// The dimensions as the contract has them.
fn dims(shape: &[usize]) -> Result<Vec<u32>, TensorError> {
    let dim = |dim: &usize| {
        let fault = |_| TensorError::TooLarge(format!("dimension {dim} is over 2^32"));
        u32::try_from(*dim).map_err(fault)
    };
    shape.iter().map(dim).collect()
}

#[cfg(test)]
mod tests;
