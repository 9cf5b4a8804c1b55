//! From a dtype to the Rust type of its elements.

use gristmill_core::Dtype;

/// The message that a backend does not take tensors of this dtype.
pub(crate) fn unsupported(dtype: Dtype) -> String {
    format!("{dtype} tensors are not supported yet")
}

/// Run `$body` with `$type` as the Rust type of `$dtype`'s elements. Dtypes without such a type run
/// `$other`.
macro_rules! with_element_type {
    ($dtype:expr, $type:ident => $body:expr, $other:pat => $fallback:expr) => {
        with_element_type!(@match $dtype, $type => $body, $other => $fallback;
            Bool bool, Uint8 u8, Int8 i8, Uint16 u16, Int16 i16, Uint32 u32, Int32 i32,
            Uint64 u64, Int64 i64, Float16 half::f16, Float32 f32, Float64 f64)
    };
    (@match $dtype:expr, $type:ident => $body:expr, $other:pat => $fallback:expr;
        $($variant:ident $element:ty),*) => {
        match $dtype {
            $(Dtype::$variant => {
                type $type = $element;
                $body
            })*
            $other => $fallback,
        }
    };
}
pub(crate) use with_element_type;
