//! Element types: one table of their sizes and names.

use std::fmt;

macro_rules! dtypes {
    ($($(#[doc = $doc:literal])+ $dtype:ident: $size:expr, $name:literal;)*) => {
        /// An ONNX element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Dtype {
            $($(#[doc = $doc])+ $dtype,)*
        }

        impl Dtype {
            /// Every element type.
            pub const ALL: &[Self] = &[$(Self::$dtype),*];

            /// Bytes that an element takes; none for [`Dtype::String`], whose elements differ in
            /// length.
            pub fn size_bytes(self) -> Option<usize> {
                match self {
                    $(Self::$dtype => $size,)*
                }
            }

            /// The name in messages and over the Open Inference Protocol, `FP32` for example.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$dtype => $name,)*
                }
            }
        }
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool: Some(1), "BOOL";
    /// Unsigned 8 bits.
    Uint8: Some(1), "UINT8";
    /// Signed 8 bits.
    Int8: Some(1), "INT8";
    /// Unsigned 16 bits.
    Uint16: Some(2), "UINT16";
    /// Signed 16 bits.
    Int16: Some(2), "INT16";
    /// Unsigned 32 bits.
    Uint32: Some(4), "UINT32";
    /// Signed 32 bits.
    Int32: Some(4), "INT32";
    /// Unsigned 64 bits.
    Uint64: Some(8), "UINT64";
    /// Signed 64 bits.
    Int64: Some(8), "INT64";
    /// IEEE 754 binary16.
    Float16: Some(2), "FP16";
    /// The upper half of a binary32.
    Bfloat16: Some(2), "BF16";
    /// IEEE 754 binary32.
    Float32: Some(4), "FP32";
    /// IEEE 754 binary64.
    Float64: Some(8), "FP64";
    /// UTF-8 text: a little-endian u32 length, then so many bytes, for each element.
    String: None, "BYTES";
}

impl Dtype {
    /// The one of this [name](Self::as_str).
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.as_str() == name)
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_dtype_is_found_by_its_name() {
        for dtype in Dtype::ALL {
            assert_eq!(Dtype::named(dtype.as_str()), Some(*dtype));
        }
        assert_eq!(Dtype::ALL.len(), 14);
        assert_eq!(Dtype::named("fp32"), None);
    }
}
