//! What an operation does with single elements, where types differ.

use num_traits::{Float, WrappingAdd, WrappingMul, WrappingSub};

/// An element that is computed with.
pub(crate) trait Element: bytemuck::Pod + PartialOrd + Send + Sync {
    const ZERO: Self;
    const ONE: Self;

    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    /// Rounded down. By 0, integers give 0.
    fn floor_divide(self, other: Self) -> Self;
    /// With the sign of `other`.
    fn remainder(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    fn negative(self) -> Self;
    fn absolute(self) -> Self;
    fn sign(self) -> Self;
    fn is_nan(self) -> bool;
    fn to_f64(self) -> f64;

    /// The smaller one, or NaN.
    fn smaller(self, other: Self) -> Self {
        if self.is_nan() || self <= other { self } else { other }
    }

    /// The larger one, or NaN.
    fn larger(self, other: Self) -> Self {
        if self.is_nan() || self >= other { self } else { other }
    }

    /// Before the other one in sorted order: NaN comes last.
    fn before(self, other: Self) -> bool {
        self < other || (!self.is_nan() && other.is_nan())
    }
}

macro_rules! integers {
    ($($ty:ty, $negative:expr, $absolute:expr, $sign:expr, $floor_divide:expr, $remainder:expr;)*) => {
        $(impl Element for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;

            fn add(self, other: Self) -> Self { WrappingAdd::wrapping_add(&self, &other) }
            fn subtract(self, other: Self) -> Self { WrappingSub::wrapping_sub(&self, &other) }
            fn multiply(self, other: Self) -> Self { WrappingMul::wrapping_mul(&self, &other) }
            fn floor_divide(self, other: Self) -> Self {
                if other == 0 { 0 } else { $floor_divide(self, other) }
            }
            fn remainder(self, other: Self) -> Self {
                if other == 0 { 0 } else { $remainder(self, other) }
            }
            fn power(self, other: Self) -> Self {
                // Exponents are not negative (`elementwise`), and wrap as multiplications do.
                let (mut base, mut exponent, mut result) = (self, other as u64, 1);
                while exponent > 0 {
                    if exponent & 1 == 1 {
                        result = base.multiply(result);
                    }
                    base = base.multiply(base);
                    exponent >>= 1;
                }
                result
            }
            fn negative(self) -> Self { $negative(self) }
            fn absolute(self) -> Self { $absolute(self) }
            fn sign(self) -> Self { $sign(self) }
            fn is_nan(self) -> bool { false }
            fn to_f64(self) -> f64 { self as f64 }
        })*
    };
}

macro_rules! unsigned {
    ($($ty:ident),*) => { integers! { $(
        $ty, |it: $ty| it.wrapping_neg(), |it: $ty| it, |it: $ty| it.min(1),
        |it: $ty, other: $ty| it / other, |it: $ty, other: $ty| it % other;
    )* } };
}

macro_rules! signed {
    ($($ty:ident),*) => { integers! { $(
        $ty, |it: $ty| it.wrapping_neg(), |it: $ty| it.wrapping_abs(), |it: $ty| it.signum(),
        |it: $ty, other: $ty| {
            let (quotient, rest) = (it.wrapping_div(other), it.wrapping_rem(other));
            if rest != 0 && (rest < 0) != (other < 0) { quotient - 1 } else { quotient }
        },
        |it: $ty, other: $ty| {
            let rest = it.wrapping_rem(other);
            if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest }
        };
    )* } };
}

unsigned! { u8, u16, u32, u64 }
signed! { i8, i16, i32, i64 }

macro_rules! floats {
    ($($ty:ty),*) => {
        $(impl Element for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            fn add(self, other: Self) -> Self { self + other }
            fn subtract(self, other: Self) -> Self { self - other }
            fn multiply(self, other: Self) -> Self { self * other }
            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (rest < 0.0) != (other < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return (0.0 as $ty).copysign(self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                if rest == 0.0 {
                    return rest.copysign(other);
                }
                if (rest < 0.0) != (other < 0.0) { rest + other } else { rest }
            }
            fn power(self, other: Self) -> Self {
                if other == 2.0 { self * self } else { self.powf(other) }
            }
            fn negative(self) -> Self { -self }
            fn absolute(self) -> Self { self.abs() }
            fn sign(self) -> Self {
                if Float::is_nan(self) || self == 0.0 { self + 0.0 } else { self.signum() }
            }
            fn is_nan(self) -> bool { self != self }
            fn to_f64(self) -> f64 { self.into() }
        })*
    };
}

floats! { f32, f64 }

/// 1 / (1 + exp(-x)), without an overflow.
pub(crate) fn sigmoid<T: Float>(x: T) -> T {
    if x >= T::zero() {
        T::one() / (T::one() + (-x).exp())
    } else {
        let e = x.exp();
        e / (T::one() + e)
    }
}

/// To the nearest integer, and to the even one of two that are as near.
pub(crate) fn round_even<T: Float>(x: T) -> T {
    let rounded = x.round();
    let half = T::from(0.5).unwrap_or_else(T::zero);
    if (x - x.trunc()).abs() == half {
        let two = T::one() + T::one();
        (x / two).round() * two
    } else {
        rounded
    }
}
