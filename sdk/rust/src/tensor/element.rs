//! The Rust types that are element types of tensors.

use bytemuck::{CheckedBitPattern, NoUninit};

use crate::Dtype;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is a tensor's element type. With the feature `half`, the types `half::f16` and
/// `half::bf16` are elements, too. For strings see [`Tensor::strings`](crate::Tensor::strings).
pub trait Element: NoUninit + CheckedBitPattern + sealed::Sealed {
    /// The element type.
    const DTYPE: Dtype;
}

macro_rules! elements {
    ($($rust:ty = $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}

        impl Element for $rust {
            const DTYPE: Dtype = Dtype::$dtype;
        }
    )*};
}

elements! {
    bool = Bool,
    u8 = Uint8,
    i8 = Int8,
    u16 = Uint16,
    i16 = Int16,
    u32 = Uint32,
    i32 = Int32,
    u64 = Uint64,
    i64 = Int64,
    f32 = Float32,
    f64 = Float64,
}

#[cfg(feature = "half")]
elements! {
    half::f16 = Float16,
    half::bf16 = Bfloat16,
}
