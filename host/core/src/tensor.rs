//! Tensors: a dtype, a shape, and a range of a shared buffer.
//!
//! `lengths` fills a dimension up and cuts it back.

pub(crate) mod lengths;

use std::ops::Range;
use std::str::Utf8Error;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::dtype::Dtype;
use crate::pool::BufferPool;
use crate::texts::{CutShort, TEXT_LENGTH_BYTES, Texts, length_of};

/// Dimensions. Up to six are held without an allocation.
pub type Shape = SmallVec<[usize; 6]>;

/// An immutable, dense, row-major, little-endian n-dimensional array. Cheap to clone: clones and
/// row ranges share the buffer.
#[derive(Clone, Debug)]
pub struct Tensor {
    dtype: Dtype,
    shape: Shape,
    buffer: Arc<Buffer>,
    bytes: Range<usize>,
}

/// Bytes that are not a tensor of the dtype and shape given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// The data's length does not fit dtype and shape.
    #[error("data is {actual} bytes long, but dtype and shape need {expected}")]
    Length {
        /// Bytes that dtype and shape ask for.
        expected: usize,
        /// Bytes given.
        actual: usize,
    },
    /// The shape's product does not fit the address space.
    #[error("shape {0:?} overflows")]
    Overflow(Box<[usize]>),
    /// An element that its dtype does not have.
    #[error(transparent)]
    Element(#[from] ElementError),
    /// A batch of no parts.
    #[error("nothing to stack")]
    NoParts,
    /// Parts that cannot follow one another in a batch.
    #[error("parts of a batch differ in dtype or shape")]
    UnlikeParts,
}

/// An element that its dtype does not have. Elements are counted from 0, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// A BOOL that is neither 0 nor 1.
    #[error("element {index} of a BOOL tensor is {value}")]
    Bool {
        /// Its place.
        index: usize,
        /// Its byte.
        value: u8,
    },
    /// A text without the bytes of its length.
    #[error("element {0} of a BYTES tensor has no length")]
    NoLength(usize),
    /// A text that is longer than the bytes that are left.
    #[error("element {index} of a BYTES tensor {source}")]
    CutShort {
        /// Its place.
        index: usize,
        /// What is wrong with it.
        source: CutShort,
    },
    /// A text of other bytes than UTF-8.
    #[error("element {index} of a BYTES tensor is not UTF-8")]
    NotUtf8 {
        /// Its place.
        index: usize,
        /// The first bytes that are not UTF-8.
        source: Utf8Error,
    },
}

impl Tensor {
    /// A tensor of all of `buffer`.
    ///
    /// # Errors
    /// [`TensorError::Length`], [`TensorError::Overflow`] or [`TensorError::Element`].
    pub fn new(dtype: Dtype, shape: Shape, buffer: Arc<Buffer>) -> Result<Self, TensorError> {
        let bytes = buffer.as_bytes();
        match Self::size_bytes(dtype, &shape)? {
            Some(expected) if expected != bytes.len() => {
                return Err(TensorError::Length { expected, actual: bytes.len() });
            }
            Some(_) => check_elements(dtype, bytes)?,
            None => check_strings(elements(&shape)?, bytes)?,
        }
        let range = 0..bytes.len();
        Ok(Self { dtype, shape, buffer, bytes: range })
    }

    /// The bytes of a tensor of `dtype` and `shape`; none for strings, whose lengths differ.
    ///
    /// # Errors
    /// [`TensorError::Overflow`].
    pub fn size_bytes(dtype: Dtype, shape: &[usize]) -> Result<Option<usize>, TensorError> {
        let count = elements(shape)?;
        let overflow = || TensorError::Overflow(shape.into());
        dtype.size_bytes().map(|size| count.checked_mul(size).ok_or_else(overflow)).transpose()
    }

    /// Maximum bytes that a backend holds for a tensor of `bytes` bytes during a run, besides the
    /// tensor itself. For texts these are one copy and the descriptions; for other elements 0.
    pub fn run_bytes(dtype: Dtype, shape: &[usize], bytes: usize) -> usize {
        if dtype != Dtype::String {
            return 0;
        }
        let most = bytes / TEXT_LENGTH_BYTES;
        let texts = elements(shape).map_or(most, |elements| elements.min(most));
        2 * (bytes - texts * TEXT_LENGTH_BYTES) + texts * TEXT_BYTES
    }

    /// Element type.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Dimension 0; 1 for a scalar.
    pub fn rows(&self) -> usize {
        self.shape.first().copied().unwrap_or(1)
    }

    /// The elements' bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer.as_bytes()[self.bytes.clone()]
    }

    /// The elements; none unless the dtype is [`Dtype::Float32`].
    pub fn as_f32(&self) -> Option<&[f32]> {
        if self.dtype != Dtype::Float32 {
            return None;
        }
        bytemuck::try_cast_slice(self.as_bytes()).ok()
    }

    /// The elements, which need not be UTF-8; none unless the dtype is [`Dtype::String`].
    pub fn texts(&self) -> Option<impl Iterator<Item = &[u8]>> {
        // They were checked when the tensor was made.
        let texts = Texts::of(self.as_bytes()).map_while(Result::ok);
        (self.dtype == Dtype::String).then_some(texts)
    }

    /// Check that texts are UTF-8.
    ///
    /// # Errors
    /// [`ElementError::NotUtf8`].
    pub fn check_utf8(&self) -> Result<(), TensorError> {
        for (index, text) in self.texts().into_iter().flatten().enumerate() {
            std::str::from_utf8(text).map_err(|source| ElementError::NotUtf8 { index, source })?;
        }
        Ok(())
    }

    /// A tensor of strings.
    pub fn from_strings<S: AsRef<str>>(
        pool: &BufferPool,
        shape: Shape,
        strings: &[S],
    ) -> Result<Self, TensorError> {
        let texts = || strings.iter().map(AsRef::as_ref);
        let mut buffer = pool.begin(texts().map(|text| TEXT_LENGTH_BYTES + text.len()).sum());
        for text in texts() {
            buffer.append(&length_of(text.as_bytes()));
            buffer.append(text.as_bytes());
        }
        Self::new(Dtype::String, shape, buffer.freeze())
    }

    /// Whether it keeps much more memory alive than its own bytes need, because it is a few rows of
    /// a large buffer.
    pub fn is_small_part(&self) -> bool {
        self.buffer.as_bytes().len() > self.bytes.len().saturating_mul(2)
    }

    /// The bytes of the buffer that it keeps, of which its own may be a part.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer.as_bytes().len()
    }

    /// The same for all tensors that keep one buffer, as long as any of them is there.
    pub fn buffer_id(&self) -> usize {
        Arc::as_ptr(&self.buffer).addr()
    }

    /// The same elements in another shape, which share this tensor's buffer; none if it has another
    /// number of elements.
    pub fn with_shape(&self, shape: Shape) -> Option<Self> {
        let count = elements(&self.shape).ok();
        (elements(&shape).ok() == count).then(|| Self { shape, ..self.clone() })
    }

    /// The rows in `range`, which share this tensor's buffer; none if they are out of range.
    pub fn slice_rows(&self, range: Range<usize>) -> Option<Self> {
        let rows = self.rows();
        if range.start > range.end || range.end > rows || self.shape.is_empty() {
            return None;
        }
        let mut shape = self.shape.clone();
        shape[0] = range.len();
        let (start, end) = if self.dtype == Dtype::String {
            let row_elements: usize = shape[1..].iter().product();
            let mut texts = Texts::of(self.as_bytes());
            let mut position = |rows: usize| {
                texts.by_ref().take(rows * row_elements).for_each(drop);
                self.bytes.len() - texts.rest().len()
            };
            (position(range.start), position(range.len()))
        } else {
            let row_bytes = self.bytes.len().checked_div(rows).unwrap_or(0);
            (range.start * row_bytes, range.end * row_bytes)
        };
        let bytes = self.bytes.start + start..self.bytes.start + end;
        Some(Self { dtype: self.dtype, shape, buffer: self.buffer.clone(), bytes })
    }

    /// A tensor of the rows of all `parts`, one part after the other. The parts must agree in dtype
    /// and in every dimension but the first. A single part is returned without a copy, unless the
    /// pool has memory of a device, where the device reads it faster.
    ///
    /// # Errors
    /// [`TensorError::UnlikeParts`] if the parts do not agree, [`TensorError::NoParts`] if there is
    /// none.
    pub fn stack<'a>(
        pool: &BufferPool,
        parts: impl Iterator<Item = &'a Self> + Clone,
    ) -> Result<Self, TensorError> {
        let mut rest = parts.clone();
        let Some(first) = rest.next() else {
            return Err(TensorError::NoParts);
        };
        if rest.clone().next().is_none() {
            if !pool.is_sourced() {
                return Ok(first.clone());
            }
            let (dtype, shape, bytes) = (first.dtype, first.shape.clone(), 0..first.bytes.len());
            return Ok(Self { dtype, shape, buffer: pool.copy_from(first.as_bytes()), bytes });
        }
        let alike =
            |part: &Self| part.dtype == first.dtype && part.shape.get(1..) == first.shape.get(1..);
        if !rest.all(alike) || first.shape.is_empty() {
            return Err(TensorError::UnlikeParts);
        }
        let len = parts.clone().map(|part| part.bytes.len()).sum();
        let mut buffer = pool.begin(len);
        for part in parts.clone() {
            buffer.append(part.as_bytes());
        }
        let buffer = buffer.freeze();
        let mut shape = first.shape.clone();
        shape[0] = parts.map(Self::rows).sum();
        Ok(Self { dtype: first.dtype, shape, buffer, bytes: 0..len })
    }
}

/// The description of a text in a backend, in bytes: a string of C++. It has a text of up to 15
/// bytes in itself. With the overhead of allocators, a longer one takes at most twice its bytes.
const TEXT_BYTES: usize = 32;

fn elements(shape: &[usize]) -> Result<usize, TensorError> {
    let product = shape.iter().try_fold(1_usize, |product, dim| product.checked_mul(*dim));
    product.ok_or_else(|| TensorError::Overflow(shape.into()))
}

fn check_elements(dtype: Dtype, bytes: &[u8]) -> Result<(), TensorError> {
    if dtype != Dtype::Bool {
        return Ok(());
    }
    match bytes.iter().position(|byte| *byte > 1) {
        Some(index) => Err(ElementError::Bool { index, value: bytes[index] }.into()),
        None => Ok(()),
    }
}

fn check_strings(count: usize, bytes: &[u8]) -> Result<(), TensorError> {
    let mut texts = Texts::of(bytes);
    for index in 0..count {
        let text = texts.next().ok_or(ElementError::NoLength(index))?;
        text.map_err(|source| ElementError::CutShort { index, source })?;
    }
    let rest = texts.rest().len();
    if rest == 0 {
        return Ok(());
    }
    Err(TensorError::Length { expected: bytes.len() - rest, actual: bytes.len() })
}

/// The elements' bytes.
impl AsRef<[u8]> for Tensor {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(pool: &BufferPool, shape: &[usize], values: &[f32]) -> Tensor {
        let buffer = pool.copy_from(bytemuck::cast_slice(values));
        Tensor::new(Dtype::Float32, shape.into(), buffer).unwrap()
    }

    #[test]
    fn length_overflow_and_elements_are_checked() {
        let pool = BufferPool::new(0);
        let make = |dtype, shape: &[usize], bytes: &[u8]| {
            Tensor::new(dtype, shape.into(), pool.copy_from(bytes)).map(|_| ())
        };
        assert_eq!(
            make(Dtype::Float32, &[2, 2], &[0; 15]),
            Err(TensorError::Length { expected: 16, actual: 15 })
        );
        assert!(matches!(
            make(Dtype::Float32, &[usize::MAX, 2], &[]),
            Err(TensorError::Overflow(_))
        ));
        assert!(make(Dtype::Bool, &[2], &[1, 2]).is_err());
        assert!(make(Dtype::String, &[2], b"\x01\0\0\0a\0\0\0\0").is_ok());
        assert!(make(Dtype::String, &[1], b"\x01\0\0\0a\0\0\0\0").is_err());
        assert!(make(Dtype::String, &[1], b"\x05\0\0\0a").is_err());
        assert!(make(Dtype::String, &[1], b"\x01\0\0\0\xff").is_ok());
        let buffer = pool.copy_from(b"\x01\0\0\0a\x01\0\0\0\xff");
        let bytes = Tensor::new(Dtype::String, [2].as_slice().into(), buffer).unwrap();
        let error = bytes.check_utf8().unwrap_err().to_string();
        assert_eq!(error, "element 1 of a BYTES tensor is not UTF-8");
    }

    #[test]
    fn texts_take_more_in_a_backend_than_their_bytes() {
        assert_eq!(Tensor::run_bytes(Dtype::Float32, &[1 << 20], 4 << 20), 0);
        assert_eq!(Tensor::run_bytes(Dtype::String, &[1], 1004), 2 * 1000 + TEXT_BYTES);
        let empty = Tensor::run_bytes(Dtype::String, &[usize::MAX, 2], 4000);
        assert_eq!(empty, 1000 * TEXT_BYTES);
    }

    #[test]
    fn strings_are_stacked_and_taken_apart_by_rows() {
        let pool = BufferPool::new(0);
        let make = |shape: &[usize], texts: &[&str]| {
            Tensor::from_strings(&pool, shape.into(), texts).unwrap()
        };
        let (a, b) = (make(&[1, 2], &["one", ""]), make(&[2, 2], &["three", "4", "fünf", "6"]));
        let both = Tensor::stack(&pool, [&a, &b].into_iter()).unwrap();
        let rows = both.slice_rows(1..3).unwrap();
        assert_eq!(rows.shape(), [2, 2]);
        assert!(rows.texts().unwrap().eq(["three", "4", "fünf", "6"].map(str::as_bytes)));
        let first = both.slice_rows(0..1).unwrap();
        assert!(first.texts().unwrap().eq(["one", ""].map(str::as_bytes)));
        assert!(Tensor::from_strings(&pool, [2].as_slice().into(), &["one"]).is_err());
    }

    #[test]
    fn stacked_rows_come_apart_again() {
        let pool = BufferPool::new(1 << 20);
        let a = floats(&pool, &[1, 2], &[1., 2.]);
        let b = floats(&pool, &[2, 2], &[3., 4., 5., 6.]);
        let both = Tensor::stack(&pool, [&a, &b].into_iter()).unwrap();
        assert_eq!(both.shape(), [3, 2]);
        let rows = both.slice_rows(1..3).unwrap();
        assert_eq!(rows.as_f32(), b.as_f32());
        assert!(both.slice_rows(2..4).is_none());
        let odd = floats(&pool, &[1, 3], &[0.; 3]);
        assert!(Tensor::stack(&pool, [&a, &odd].into_iter()).is_err());
    }
}
