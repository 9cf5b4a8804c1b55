//! Casting the elements of a tensor to another dtype.
//!
//! Refuses to know calls and limits.

use gristmill_core::Dtype;
use half::{bf16, f16};

/// The elements that are cast between two questions whether to go on.
const ELEMENTS_PER_PART: usize = 64 << 10;

/// A number on its way from one dtype to another.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

/// The element type of a dtype. Elements are little-endian.
trait Element {
    const BYTES: usize;

    fn read(bytes: &[u8]) -> Number;

    fn write(number: Number, bytes: &mut [u8]);
}

/// `$read` makes a number of an element, and `$write` an element of a number.
macro_rules! elements {
    ($($ty:ty: $read:expr, $write:expr;)*) => {
        $(impl Element for $ty {
            const BYTES: usize = size_of::<Self>();

            #[inline]
            fn read(bytes: &[u8]) -> Number {
                let mut element = [0; Self::BYTES];
                element.copy_from_slice(bytes);
                $read(Self::from_le_bytes(element).into())
            }

            #[inline]
            fn write(number: Number, bytes: &mut [u8]) {
                let value: Self = $write(number);
                bytes.copy_from_slice(&value.to_le_bytes());
            }
        })*
    };
}

macro_rules! integers {
    ($($ty:ty),*) => {
        elements! { $($ty: Number::Int, |number| match number {
            Number::Int(value) => value.clamp(<$ty>::MIN.into(), <$ty>::MAX.into()) as $ty,
            // Saturates, and makes 0 of NaN.
            Number::Float(value) => value as $ty,
        };)* }
    };
}

macro_rules! floats {
    ($($ty:ty, $of_int:expr, $of_float:expr;)*) => {
        elements! { $($ty: Number::Float, |number| match number {
            Number::Int(value) => $of_int(value),
            Number::Float(value) => $of_float(value),
        };)* }
    };
}

integers! { u8, i8, u16, i16, u32, i32, u64, i64 }

floats! {
    f16, |value| f16::from_f64(value as f64), f16::from_f64;
    bf16, |value| bf16::from_f64(value as f64), bf16::from_f64;
    f32, |value| value as f32, |value| value as f32;
    f64, |value| value as f64, |value| value;
}

/// An element of `bool`: a byte, 0 or 1.
struct Bool;

impl Element for Bool {
    const BYTES: usize = 1;

    #[inline]
    fn read(bytes: &[u8]) -> Number {
        u8::read(bytes)
    }

    #[inline]
    fn write(number: Number, bytes: &mut [u8]) {
        let is_true = match number {
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
        };
        bytes[0] = is_true.into();
    }
}

/// Calls `$function` with the element type of `$dtype` as its first type argument.
macro_rules! with_element {
    ($dtype:expr, $function:ident $(::<$more:ident>)?, $args:tt, $strings:expr) => {
        match $dtype {
            Dtype::Bool => $function::<Bool $(, $more)?> $args,
            Dtype::Uint8 => $function::<u8 $(, $more)?> $args,
            Dtype::Int8 => $function::<i8 $(, $more)?> $args,
            Dtype::Uint16 => $function::<u16 $(, $more)?> $args,
            Dtype::Int16 => $function::<i16 $(, $more)?> $args,
            Dtype::Uint32 => $function::<u32 $(, $more)?> $args,
            Dtype::Int32 => $function::<i32 $(, $more)?> $args,
            Dtype::Uint64 => $function::<u64 $(, $more)?> $args,
            Dtype::Int64 => $function::<i64 $(, $more)?> $args,
            Dtype::Float16 => $function::<f16 $(, $more)?> $args,
            Dtype::Bfloat16 => $function::<bf16 $(, $more)?> $args,
            Dtype::Float32 => $function::<f32 $(, $more)?> $args,
            Dtype::Float64 => $function::<f64 $(, $more)?> $args,
            Dtype::String => $strings,
        }
    };
}

/// Casts elements from one dtype to another.
#[derive(Clone, Copy)]
pub struct Cast {
    /// The bytes of an element before.
    pub from_bytes: usize,
    /// The bytes of an element after.
    pub to_bytes: usize,
    run: fn(&[u8], &mut [u8]),
}

impl Cast {
    /// The cast between two dtypes; none if one of them is strings.
    pub fn between(from: Dtype, to: Dtype) -> Option<Self> {
        with_element!(from, cast_from, (to), None)
    }

    /// Cast all of `source` into `target`, and ask between parts whether to go on.
    pub fn run<E>(
        self,
        source: &[u8],
        target: &mut [u8],
        may_go_on: impl Fn() -> Result<(), E>,
    ) -> Result<(), E> {
        let sources = source.chunks(ELEMENTS_PER_PART * self.from_bytes);
        let targets = target.chunks_mut(ELEMENTS_PER_PART * self.to_bytes);
        for (source, target) in sources.zip(targets) {
            (self.run)(source, target);
            may_go_on()?;
        }
        Ok(())
    }
}

fn cast_from<From: Element>(to: Dtype) -> Option<Cast> {
    with_element!(to, cast_to::<From>, (), None)
}

fn cast_to<To: Element, From: Element>() -> Option<Cast> {
    let run = |source: &[u8], target: &mut [u8]| {
        let pairs = source.chunks_exact(From::BYTES).zip(target.chunks_exact_mut(To::BYTES));
        for (source, target) in pairs {
            To::write(From::read(source), target);
        }
    };
    Some(Cast { from_bytes: From::BYTES, to_bytes: To::BYTES, run })
}
