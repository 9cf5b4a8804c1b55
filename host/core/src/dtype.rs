//! Element types.

use std::fmt;

/// An ONNX element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8 bits.
    Uint8,
    /// Signed 8 bits.
    Int8,
    /// Unsigned 16 bits.
    Uint16,
    /// Signed 16 bits.
    Int16,
    /// Unsigned 32 bits.
    Uint32,
    /// Signed 32 bits.
    Int32,
    /// Unsigned 64 bits.
    Uint64,
    /// Signed 64 bits.
    Int64,
    /// IEEE 754 binary16.
    Float16,
    /// The upper half of a binary32.
    Bfloat16,
    /// IEEE 754 binary32.
    Float32,
    /// IEEE 754 binary64.
    Float64,
    /// UTF-8 text: a little-endian u32 length, then so many bytes, for each element.
    String,
}

impl Dtype {
    /// Every element type.
    pub const ALL: [Self; 14] = [
        Self::Bool,
        Self::Uint8,
        Self::Int8,
        Self::Uint16,
        Self::Int16,
        Self::Uint32,
        Self::Int32,
        Self::Uint64,
        Self::Int64,
        Self::Float16,
        Self::Bfloat16,
        Self::Float32,
        Self::Float64,
        Self::String,
    ];

    /// Bytes an element takes; none for [`Dtype::String`], whose elements differ in length.
    pub fn size_bytes(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => Some(1),
            Self::Uint16 | Self::Int16 | Self::Float16 | Self::Bfloat16 => Some(2),
            Self::Uint32 | Self::Int32 | Self::Float32 => Some(4),
            Self::Uint64 | Self::Int64 | Self::Float64 => Some(8),
            Self::String => None,
        }
    }

    /// The Open Inference Protocol's name, `FP32` for example.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Int8 => "INT8",
            Self::Uint16 => "UINT16",
            Self::Int16 => "INT16",
            Self::Uint32 => "UINT32",
            Self::Int32 => "INT32",
            Self::Uint64 => "UINT64",
            Self::Int64 => "INT64",
            Self::Float16 => "FP16",
            Self::Bfloat16 => "BF16",
            Self::Float32 => "FP32",
            Self::Float64 => "FP64",
            Self::String => "BYTES",
        }
    }
}

/// A text that names no [`Dtype`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no datatype")]
pub struct InvalidDtype(String);

impl std::str::FromStr for Dtype {
    type Err = InvalidDtype;

    /// The Open Inference Protocol's name.
    fn from_str(text: &str) -> Result<Self, InvalidDtype> {
        let named = Self::ALL.into_iter().find(|dtype| dtype.as_str() == text);
        named.ok_or_else(|| InvalidDtype(text.chars().take(80).collect()))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
