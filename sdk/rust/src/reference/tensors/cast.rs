//! Casting the elements of a tensor to another dtype.

use half::{bf16, f16};

use super::{Dtype, Tensor};

/// A number on its way from one dtype to another.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

pub(super) fn cast(tensor: &Tensor, to: Dtype) -> Result<Tensor, String> {
    let from = tensor.dtype;
    let shape = tensor.shape.clone();
    if from == to {
        return Ok(Tensor { dtype: to, shape, data: tensor.data.clone() });
    }
    let (Some(size), Some(_)) = (from.bytes(), to.bytes()) else {
        return Err(format!("{from:?} cannot be cast to {to:?}"));
    };
    let mut data = Vec::new();
    for element in tensor.data.chunks_exact(size) {
        write(read(element, from), to, &mut data);
    }
    Ok(Tensor { dtype: to, shape, data: data.into() })
}

fn read(element: &[u8], dtype: Dtype) -> Number {
    macro_rules! number {
        ($kind:ident, $ty:ty) => {{
            let mut own = [0; size_of::<$ty>()];
            own.copy_from_slice(element);
            Number::$kind(<$ty>::from_le_bytes(own).into())
        }};
    }
    match dtype {
        Dtype::Bool | Dtype::Uint8 | Dtype::String => number!(Int, u8),
        Dtype::Int8 => number!(Int, i8),
        Dtype::Uint16 => number!(Int, u16),
        Dtype::Int16 => number!(Int, i16),
        Dtype::Uint32 => number!(Int, u32),
        Dtype::Int32 => number!(Int, i32),
        Dtype::Uint64 => number!(Int, u64),
        Dtype::Int64 => number!(Int, i64),
        Dtype::Float16 => number!(Float, f16),
        Dtype::Bfloat16 => number!(Float, bf16),
        Dtype::Float32 => number!(Float, f32),
        Dtype::Float64 => number!(Float, f64),
    }
}

fn write(number: Number, dtype: Dtype, data: &mut Vec<u8>) {
    macro_rules! integer {
        ($ty:ty) => {{
            let value = match number {
                Number::Int(value) => value.clamp(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty,
                // Saturates, and makes 0 of NaN.
                Number::Float(value) => value as $ty,
            };
            data.extend(value.to_le_bytes())
        }};
    }
    let float = match number {
        Number::Int(value) => value as f64,
        Number::Float(value) => value,
    };
    match dtype {
        Dtype::Bool => data.push((float != 0.0).into()),
        Dtype::Uint8 | Dtype::String => integer!(u8),
        Dtype::Int8 => integer!(i8),
        Dtype::Uint16 => integer!(u16),
        Dtype::Int16 => integer!(i16),
        Dtype::Uint32 => integer!(u32),
        Dtype::Int32 => integer!(i32),
        Dtype::Uint64 => integer!(u64),
        Dtype::Int64 => integer!(i64),
        Dtype::Float16 => data.extend(f16::from_f64(float).to_le_bytes()),
        Dtype::Bfloat16 => data.extend(bf16::from_f64(float).to_le_bytes()),
        Dtype::Float32 => {
            // An integer is rounded once: not to f64 first.
            let value = match number {
                Number::Int(value) => value as f32,
                Number::Float(value) => value as f32,
            };
            data.extend(value.to_le_bytes());
        }
        Dtype::Float64 => data.extend(float.to_le_bytes()),
    }
}
