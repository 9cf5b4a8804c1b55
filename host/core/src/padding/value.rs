//! The number that fills padded places, and its element in a tensor.

use std::fmt;

use smallvec::SmallVec;

use crate::dtype::Dtype;

/// The bytes of an element.
pub type Element = SmallVec<[u8; 8]>;

/// A number that fills padded places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PadValue {
    /// A whole number, which may be one of any type.
    Whole(i128),
    /// The bits of a finite number that is not whole, or larger than any type of whole numbers has.
    Fraction(u64),
}

impl PadValue {
    /// The value of a number. None if it is not finite.
    pub fn of(number: f64) -> Option<Self> {
        let is_whole = number.fract() == 0.0 && number.abs() <= u64::MAX as f64;
        let value =
            if is_whole { Self::Whole(number as i128) } else { Self::Fraction(number.to_bits()) };
        number.is_finite().then_some(value)
    }

    fn number(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Fraction(bits) => f64::from_bits(bits),
        }
    }

    /// Its element in a tensor of `dtype`. None if the type does not have it.
    pub fn element(self, dtype: Dtype) -> Option<Element> {
        let number = self.number();
        match (dtype, self) {
            (Dtype::Float16, _) => {
                let half = Some(half::f16::from_f64(number)).filter(|half| half.is_finite())?;
                Some(Element::from_slice(&half.to_le_bytes()))
            }
            (Dtype::Bfloat16, _) => {
                let half = Some(half::bf16::from_f64(number)).filter(|half| half.is_finite())?;
                Some(Element::from_slice(&half.to_le_bytes()))
            }
            (Dtype::Float32, _) => {
                let float = Some(number as f32).filter(|float| float.is_finite())?;
                Some(Element::from_slice(&float.to_le_bytes()))
            }
            (Dtype::Float64, _) => Some(Element::from_slice(&number.to_le_bytes())),
            (Dtype::String, _) | (_, Self::Fraction(_)) => None,
            (dtype, Self::Whole(whole)) => {
                let (min, max): (i128, i128) = match dtype {
                    Dtype::Bool => (0, 1),
                    Dtype::Uint8 => (0, u8::MAX.into()),
                    Dtype::Int8 => (i8::MIN.into(), i8::MAX.into()),
                    Dtype::Uint16 => (0, u16::MAX.into()),
                    Dtype::Int16 => (i16::MIN.into(), i16::MAX.into()),
                    Dtype::Uint32 => (0, u32::MAX.into()),
                    Dtype::Int32 => (i32::MIN.into(), i32::MAX.into()),
                    Dtype::Uint64 => (0, u64::MAX.into()),
                    _ => (i64::MIN.into(), i64::MAX.into()),
                };
                let fits = (min..=max).contains(&whole);
                // The low bytes of a number are the same number in a smaller type.
                let bytes = whole.to_le_bytes();
                fits.then(|| Element::from_slice(&bytes[..dtype.size_bytes().unwrap_or(8)]))
            }
        }
    }
}

impl fmt::Display for PadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => write!(f, "{whole}"),
            Self::Fraction(bits) => write!(f, "{}", f64::from_bits(*bits)),
        }
    }
}
