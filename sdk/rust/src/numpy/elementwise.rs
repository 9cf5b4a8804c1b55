//! The operations without parameters. Their names and rules are NumPy's.

use super::Array;

/// Operations without parameters.
macro_rules! operations {
    ($($(#[$doc:meta])* $method:ident($($operand:ident),*);)*) => {
        /// Each element by itself, and products.
        impl<'t> Array<'t> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $method(&self $(, $operand: impl Into<Array<'t>>)*) -> Self {
                Self::noted(stringify!($method), vec![self.clone() $(, $operand.into())*], "[]".into())
            }
        )*}
    };
}

operations! {
    /// `-x`.
    negative();
    /// Without its sign.
    absolute();
    /// -1, 0 or 1.
    sign();
    /// `x * x`.
    square();
    /// The largest integer that is not above.
    floor();
    /// The smallest integer that is not below.
    ceil();
    /// Without its fraction.
    trunc();
    /// The nearest integer; a half goes to the even one.
    rint();
    /// Whether it is NaN.
    isnan();
    /// Whether it is infinite.
    isinf();
    /// Whether it is a number.
    isfinite();
    /// Whether it is 0.
    logical_not();
    /// All bits.
    invert();
    /// e to this power.
    exp();
    /// 2 to this power.
    exp2();
    /// `exp(x) - 1`.
    expm1();
    /// The natural logarithm.
    log();
    /// The logarithm to base 2.
    log2();
    /// The logarithm to base 10.
    log10();
    /// `log(1 + x)`.
    log1p();
    /// The square root.
    sqrt();
    /// `1 / x`.
    reciprocal();
    /// `1 / (1 + exp(-x))`.
    sigmoid();
    /// Of radians.
    sin();
    /// Of radians.
    cos();
    /// Of radians.
    tan();
    /// In radians.
    arcsin();
    /// In radians.
    arccos();
    /// In radians.
    arctan();
    /// Hyperbolic.
    sinh();
    /// Hyperbolic.
    cosh();
    /// Hyperbolic.
    tanh();
    /// In radians, of this over `other`.
    arctan2(other);
    /// `sqrt(x * x + y * y)`.
    hypot(other);
    /// `x + y`.
    add(other);
    /// `x - y`.
    subtract(other);
    /// `x * y`.
    multiply(other);
    /// `x / y`, always of floats.
    divide(other);
    /// `x / y`, rounded down.
    floor_divide(other);
    /// What `floor_divide` leaves; it has the sign of `other`.
    remainder(other);
    /// This to the power `other`.
    power(other);
    /// The smaller one; NaN if one is.
    minimum(other);
    /// The larger one; NaN if one is.
    maximum(other);
    /// `x == y`.
    equal(other);
    /// `x != y`.
    not_equal(other);
    /// `x < y`.
    less(other);
    /// `x <= y`.
    less_equal(other);
    /// `x > y`.
    greater(other);
    /// `x >= y`.
    greater_equal(other);
    /// Whether both are not 0.
    logical_and(other);
    /// Whether one is not 0.
    logical_or(other);
    /// Whether exactly one is not 0.
    logical_xor(other);
    /// The bits that both have.
    bitwise_and(other);
    /// The bits that one has.
    bitwise_or(other);
    /// The bits that exactly one has.
    bitwise_xor(other);
    /// Bits moved up.
    left_shift(other);
    /// Bits moved down.
    right_shift(other);
    /// The product of matrices; a vector is a row on the left and a column on the right.
    matmul(other);
    /// The different elements in order.
    unique_values();
    /// How often each of the different elements is there.
    unique_counts();
    /// The places of the elements that are not 0: a row for each dimension.
    nonzero();
    /// Where in this sorted array each value would be put in.
    searchsorted(values);
    /// The same, behind equal elements.
    searchsorted_right(values);
}
