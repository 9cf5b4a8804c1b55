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
        match $dtype {
            Dtype::Bool => {
                type $type = bool;
                $body
            }
            Dtype::Uint8 => {
                type $type = u8;
                $body
            }
            Dtype::Int8 => {
                type $type = i8;
                $body
            }
            Dtype::Uint16 => {
                type $type = u16;
                $body
            }
            Dtype::Int16 => {
                type $type = i16;
                $body
            }
            Dtype::Uint32 => {
                type $type = u32;
                $body
            }
            Dtype::Int32 => {
                type $type = i32;
                $body
            }
            Dtype::Uint64 => {
                type $type = u64;
                $body
            }
            Dtype::Int64 => {
                type $type = i64;
                $body
            }
            Dtype::Float16 => {
                type $type = half::f16;
                $body
            }
            Dtype::Float32 => {
                type $type = f32;
                $body
            }
            Dtype::Float64 => {
                type $type = f64;
                $body
            }
            $other => $fallback,
        }
    };
}
pub(crate) use with_element_type;
