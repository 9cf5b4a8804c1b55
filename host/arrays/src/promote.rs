//! Which dtype a result has: NumPy's rules of promotion.

use gristmill_core::{Dtype, Tensor};

use crate::array::{ELEMENTS_PER_PART, Room, Stop, fill, value, work, wrong_type};
use crate::cast::Cast;

/// NumPy's name of a dtype.
pub(crate) fn name_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "bool",
        Dtype::Uint8 => "uint8",
        Dtype::Int8 => "int8",
        Dtype::Uint16 => "uint16",
        Dtype::Int16 => "int16",
        Dtype::Uint32 => "uint32",
        Dtype::Int32 => "int32",
        Dtype::Uint64 => "uint64",
        Dtype::Int64 => "int64",
        Dtype::Float16 => "float16",
        Dtype::Bfloat16 => "bfloat16",
        Dtype::Float32 => "float32",
        Dtype::Float64 => "float64",
        Dtype::String => "string",
    }
}

/// What a step has made.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Array(Tensor),
    /// A number of the plugin's language. It takes the dtype of the array that it meets.
    Number(Number),
}

/// A number of the plugin's language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Bool(bool),
    Int(i128),
    Float(f64),
}

/// Calls `$body` with `$T` as the type that is listed for `$dtype`. Others are refused.
macro_rules! with_listed {
    ($dtype:expr, $T:ident => $body:expr; $($($listed:ident)|+ = $ty:ty),*) => {
        match $dtype {
            $($(Dtype::$listed)|+ => {
                type $T = $ty;
                $body
            })*
            other => Err($crate::promote::not_computed(other)),
        }
    };
}
pub(crate) use with_listed;

/// Calls `$body` with `$T` as the element type of `$dtype`. A bool is a `u8`.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::promote::with_listed!($dtype, $T => $body;
            Bool | Uint8 = u8, Int8 = i8, Uint16 = u16, Int16 = i16, Uint32 = u32, Int32 = i32,
            Uint64 = u64, Int64 = i64, Float32 = f32, Float64 = f64)
    };
}
pub(crate) use with_type;

/// Calls `$body` with `$T` as the element type of a dtype of integers.
macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::promote::with_listed!($dtype, $T => $body;
            Uint8 = u8, Int8 = i8, Uint16 = u16, Int16 = i16, Uint32 = u32, Int32 = i32,
            Uint64 = u64, Int64 = i64)
    };
}
pub(crate) use with_integer;

/// Calls `$body` with `$T` as the element type of a dtype of floats.
macro_rules! with_float {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::promote::with_listed!($dtype, $T => $body; Float32 = f32, Float64 = f64)
    };
}
pub(crate) use with_float;

pub(crate) fn not_computed(dtype: Dtype) -> Stop {
    match dtype {
        Dtype::String => wrong_type("the operation takes numbers, not strings"),
        Dtype::Float16 | Dtype::Bfloat16 => {
            let name = name_of(dtype);
            wrong_type(format!("{name} is not computed with: cast it with astype(float32)"))
        }
        _ => wrong_type(format!("the operation does not take {}", name_of(dtype))),
    }
}

pub(crate) fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::Float32 | Dtype::Float64)
}

pub(crate) fn is_integer(dtype: Dtype) -> bool {
    integer(dtype).is_some()
}

/// Whether an integer dtype has a sign, and the bytes of an element. None for other dtypes.
fn integer(dtype: Dtype) -> Option<(bool, usize)> {
    let is_signed = match dtype {
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 | Dtype::Int64 => true,
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 | Dtype::Uint64 => false,
        _ => return None,
    };
    Some((is_signed, dtype.size_bytes()?))
}

fn signed(bytes: usize) -> Dtype {
    match bytes {
        1 => Dtype::Int8,
        2 => Dtype::Int16,
        4 => Dtype::Int32,
        _ => Dtype::Int64,
    }
}

/// The operation takes integers only.
pub(crate) fn check_integer(dtype: Dtype) -> Result<(), Stop> {
    if is_integer(dtype) { Ok(()) } else { Err(not_computed(dtype)) }
}

/// The operation takes flags, integers, `float32` and `float64`.
pub(crate) fn check_computed(dtype: Dtype) -> Result<(), Stop> {
    let is_computed = dtype == Dtype::Bool || is_float(dtype) || is_integer(dtype);
    if is_computed { Ok(()) } else { Err(not_computed(dtype)) }
}

/// The float dtype in which a function of floats is computed.
pub(crate) fn float_of(dtype: Dtype) -> Dtype {
    if dtype == Dtype::Float32 { dtype } else { Dtype::Float64 }
}

/// The integer dtype in which flags and integers are added.
pub(crate) fn sum_of(dtype: Dtype) -> Dtype {
    match integer(dtype) {
        Some((false, _)) => Dtype::Uint64,
        _ => Dtype::Int64,
    }
}

/// The dtype that two meet in.
pub(crate) fn common(left: Dtype, right: Dtype) -> Result<Dtype, Stop> {
    if left == right && left != Dtype::String {
        return Ok(left);
    }
    check_computed(left)?;
    check_computed(right)?;
    if right == Dtype::Bool {
        return Ok(left);
    }
    if left == Dtype::Bool {
        return Ok(right);
    }
    Ok(match (integer(left), integer(right)) {
        (Some((true, a)), Some((true, b))) => signed(a.max(b)),
        (Some((false, a)), Some((false, b))) => {
            if a >= b {
                left
            } else {
                right
            }
        }
        (Some((true, signed_bytes)), Some((false, bytes)))
        | (Some((false, bytes)), Some((true, signed_bytes))) => match bytes {
            8 => Dtype::Float64,
            _ => signed(signed_bytes.max(bytes * 2)),
        },
        // A float32 has no room for integers of 32 bits.
        (Some((_, bytes)), None) => {
            if bytes > 2 {
                Dtype::Float64
            } else {
                right
            }
        }
        (None, Some((_, bytes))) => {
            if bytes > 2 {
                Dtype::Float64
            } else {
                left
            }
        }
        (None, None) => Dtype::Float64,
    })
}

impl Number {
    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Bool(flag) => flag.into(),
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }

    /// It without a fraction.
    pub(crate) fn int(self) -> i128 {
        self.whole().unwrap_or(self.float() as i128)
    }

    /// It as an integer; none if it is a float.
    pub(crate) fn whole(self) -> Option<i128> {
        match self {
            Self::Bool(flag) => Some(flag.into()),
            Self::Int(int) => Some(int),
            Self::Float(_) => None,
        }
    }

    /// The dtype that it has alone.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::Bool(_) => Dtype::Bool,
            Self::Int(int) if i64::try_from(int).is_err() => Dtype::Uint64,
            Self::Int(_) => Dtype::Int64,
            Self::Float(_) => Dtype::Float64,
        }
    }

    /// The dtype in which it meets an array.
    pub(crate) fn common(self, dtype: Dtype) -> Result<Dtype, Stop> {
        match self {
            Self::Bool(_) => common(dtype, Dtype::Bool),
            Self::Int(_) if dtype == Dtype::Bool => Ok(Dtype::Int64),
            Self::Int(_) => common(dtype, Dtype::Bool),
            Self::Float(_) if is_float(dtype) => Ok(dtype),
            Self::Float(_) => common(dtype, Dtype::Bool).map(|_| Dtype::Float64),
        }
    }

    /// An array of shape () with it.
    pub(crate) fn array(self, dtype: Dtype, room: &mut dyn Room) -> Result<Tensor, Stop> {
        self.full(dtype, &[], room)
    }

    /// An array of it.
    pub(crate) fn full(
        self,
        dtype: Dtype,
        shape: &[usize],
        room: &mut dyn Room,
    ) -> Result<Tensor, Stop> {
        let (int, float) = (self.int(), self.float());
        if dtype == Dtype::Bool {
            let is_true = u8::from(float != 0.0);
            return fill(room, dtype, shape, |out: &mut [u8], room| repeat(out, is_true, room));
        }
        if is_float(dtype) {
            return with_float!(dtype, T => {
                fill(room, dtype, shape, |out: &mut [T], room| repeat(out, float as T, room))
            });
        }
        with_integer!(dtype, T => {
            let Ok(element) = T::try_from(int) else {
                return Err(value(format!("{int} is out of bounds for {}", name_of(dtype))));
            };
            fill(room, dtype, shape, |out: &mut [T], room| repeat(out, element, room))
        })
    }
}

pub(crate) fn repeat<T: Copy>(out: &mut [T], element: T, room: &dyn Room) -> Result<(), Stop> {
    for part in out.chunks_mut(ELEMENTS_PER_PART) {
        part.fill(element);
        room.go_on()?;
    }
    Ok(())
}

impl Value {
    pub(crate) fn dtype(&self) -> Dtype {
        match self {
            Self::Array(array) => array.dtype(),
            Self::Number(number) => number.dtype(),
        }
    }

    /// How long it takes to work on it, in bytes that are copied.
    pub(crate) fn work(&self) -> usize {
        match self {
            Self::Array(array) => work(array.shape()),
            Self::Number(_) => 0,
        }
    }

    /// An array of this dtype.
    pub(crate) fn in_dtype(&self, dtype: Dtype, room: &mut dyn Room) -> Result<Tensor, Stop> {
        match self {
            Self::Array(array) => cast(array, dtype, room),
            Self::Number(number) => number.array(dtype, room),
        }
    }

    /// An array of its own dtype.
    pub(crate) fn array(&self, room: &mut dyn Room) -> Result<Tensor, Stop> {
        self.in_dtype(self.dtype(), room)
    }
}

/// The dtype that all meet in.
pub(crate) fn common_of(values: &[&Value]) -> Result<Dtype, Stop> {
    let mut met: Option<Dtype> = None;
    for value in values {
        if let Value::Array(array) = value {
            let dtype = array.dtype();
            met = Some(met.map_or_else(|| common(dtype, Dtype::Bool), |met| common(met, dtype))?);
        }
    }
    for value in values {
        if let Value::Number(number) = value {
            met = Some(match met {
                Some(met) => number.common(met)?,
                None => number.dtype(),
            });
        }
    }
    met.ok_or_else(|| value("the operation needs an array"))
}

/// The same values in another dtype.
pub(crate) fn cast(array: &Tensor, dtype: Dtype, room: &mut dyn Room) -> Result<Tensor, Stop> {
    if array.dtype() == dtype {
        return Ok(array.clone());
    }
    let Some(cast) = Cast::between(array.dtype(), dtype) else {
        let (from, to) = (name_of(array.dtype()), name_of(dtype));
        return Err(wrong_type(format!("{from} cannot be cast to {to}")));
    };
    fill(room, dtype, array.shape(), |out: &mut [u8], room| {
        cast.run(array.as_bytes(), out, || room.go_on())
    })
}
