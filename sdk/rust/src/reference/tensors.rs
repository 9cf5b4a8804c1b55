//! `tensors`: arrays in this process's memory.

mod cast;
mod join;
mod rows;

use std::fmt;
use std::sync::Arc;

/// The most dimensions of a tensor.
const DIMENSIONS_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dtype {
    Bool,
    Uint8,
    Int8,
    Uint16,
    Int16,
    Uint32,
    Int32,
    Uint64,
    Int64,
    Float16,
    Bfloat16,
    Float32,
    Float64,
    String,
}

impl Dtype {
    /// The bytes of an element; none for strings, whose lengths differ.
    fn bytes(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => Some(1),
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => Some(2),
            Self::Uint32 | Self::Int32 | Self::Float32 => Some(4),
            Self::Uint64 | Self::Int64 | Self::Float64 => Some(8),
            Self::String => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum TensorError {
    LengthMismatch(LengthMismatch),
    TooLarge(String),
    InvalidElement(String),
    InvalidArgument(String),
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for TensorError {}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthMismatch {
    pub expected: u64,
    pub actual: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    pub index: u32,
    pub value: f32,
}

#[derive(Debug)]
pub struct NamedTensor {
    pub name: String,
    pub tensor: Tensor,
}

/// An immutable array. Its bytes are those that the contract describes.
#[derive(Debug)]
pub struct Tensor {
    dtype: Dtype,
    shape: Vec<u32>,
    data: Arc<[u8]>,
}

impl Tensor {
    pub fn create(dtype: Dtype, shape: &[u32], data: &[u8]) -> Result<Self, TensorError> {
        if shape.len() > DIMENSIONS_MAX {
            let dimensions = shape.len();
            let why = format!("{dimensions} dimensions are over the limit of {DIMENSIONS_MAX}");
            return Err(TensorError::TooLarge(why));
        }
        let overflow = || TensorError::TooLarge(format!("shape {shape:?} overflows"));
        let product = shape.iter().try_fold(1_usize, |all, dim| all.checked_mul(*dim as usize));
        let count = product.ok_or_else(overflow)?;
        let Some(size) = dtype.bytes() else {
            check_strings(count, data)?;
            return Ok(Self { dtype, shape: shape.into(), data: data.into() });
        };
        let expected = count.checked_mul(size).ok_or_else(overflow)?;
        check_length(expected, data.len())?;
        let broken = data.iter().position(|byte| dtype == Dtype::Bool && *byte > 1);
        if let Some(index) = broken {
            let why = format!("element {index} of a bool tensor is {}", data[index]);
            return Err(TensorError::InvalidElement(why));
        }
        Ok(Self { dtype, shape: shape.into(), data: data.into() })
    }

    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    pub fn shape(&self) -> Vec<u32> {
        self.shape.clone()
    }

    pub fn data(&self) -> Vec<u8> {
        self.data.to_vec()
    }

    pub fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        window(&self.data, offset, length).to_vec()
    }

    pub fn argmax(&self) -> Vec<Scored> {
        rows::argmax(self)
    }

    pub fn top_k(&self, row: u32, k: u32) -> Vec<Scored> {
        rows::top_k(self, row as usize, k as usize)
    }

    pub fn softmax(&self) -> Option<Self> {
        rows::softmax(self)
    }

    pub fn concat(tensors: &[&Self], axis: u32) -> Result<Self, TensorError> {
        join::concat(tensors, axis as usize).map_err(TensorError::InvalidArgument)
    }

    pub fn stack(tensors: &[&Self], axis: u32) -> Result<Self, TensorError> {
        join::stack(tensors, axis as usize).map_err(TensorError::InvalidArgument)
    }

    pub fn slice(&self, axis: u32, start: u32, end: u32) -> Result<Self, TensorError> {
        let range = start as usize..end as usize;
        join::slice(self, axis as usize, range).map_err(TensorError::InvalidArgument)
    }

    pub fn cast(&self, dtype: Dtype) -> Result<Self, TensorError> {
        cast::cast(self, dtype).map_err(TensorError::InvalidArgument)
    }

    /// The elements, if they are float32.
    fn floats(&self) -> Option<Vec<f32>> {
        let elements = self.data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        (self.dtype == Dtype::Float32).then(|| elements.collect())
    }
}

/// Up to `length` bytes from `offset` on.
pub(super) fn window(bytes: &[u8], offset: u64, length: u64) -> &[u8] {
    let at = |position: u64| usize::try_from(position).unwrap_or(usize::MAX).min(bytes.len());
    &bytes[at(offset)..at(offset.saturating_add(length))]
}

fn check_length(expected: usize, actual: usize) -> Result<(), TensorError> {
    if expected == actual {
        return Ok(());
    }
    let (expected, actual) = (expected as u64, actual as u64);
    Err(TensorError::LengthMismatch(LengthMismatch { expected, actual }))
}

fn check_strings(count: usize, data: &[u8]) -> Result<(), TensorError> {
    let mut rest = data;
    for index in 0..count {
        let broken = |what| {
            TensorError::InvalidElement(format!("element {index} of a string tensor {what}"))
        };
        let (text, tail) = split_string(rest).ok_or_else(|| broken("is cut short"))?;
        std::str::from_utf8(text).map_err(|_| broken("is not UTF-8"))?;
        rest = tail;
    }
    check_length(data.len() - rest.len(), data.len())
}

/// The first string of `bytes`, and the bytes after it.
fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, tail) = bytes.split_first_chunk()?;
    tail.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests;
