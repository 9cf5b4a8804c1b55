//! Rust's operators: of arrays, and of arrays and numbers.

use std::ops;

use super::Array;

macro_rules! operators {
    ($($trait:ident $operator:ident $method:ident;)*) => {$(
        impl<'t, T: Into<Array<'t>>> ops::$trait<T> for Array<'t> {
            type Output = Array<'t>;

            #[track_caller]
            fn $operator(self, other: T) -> Array<'t> {
                Array::$method(&self, other)
            }
        }

        impl<'t, T: Into<Array<'t>>> ops::$trait<T> for &Array<'t> {
            type Output = Array<'t>;

            #[track_caller]
            fn $operator(self, other: T) -> Array<'t> {
                Array::$method(self, other)
            }
        }

        operators!(numbers $trait $operator $method: i32, i64, f32, f64);
    )*};
    (numbers $trait:ident $operator:ident $method:ident: $($number:ty),*) => {$(
        impl<'t> ops::$trait<Array<'t>> for $number {
            type Output = Array<'t>;

            #[track_caller]
            fn $operator(self, other: Array<'t>) -> Array<'t> {
                Array::$method(&self.into(), other)
            }
        }

        impl<'t> ops::$trait<&Array<'t>> for $number {
            type Output = Array<'t>;

            #[track_caller]
            fn $operator(self, other: &Array<'t>) -> Array<'t> {
                Array::$method(&self.into(), other)
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
    Rem rem remainder;
}

impl<'t> ops::Neg for Array<'t> {
    type Output = Array<'t>;

    #[track_caller]
    fn neg(self) -> Array<'t> {
        self.negative()
    }
}

impl<'t> ops::Neg for &Array<'t> {
    type Output = Array<'t>;

    #[track_caller]
    fn neg(self) -> Array<'t> {
        self.negative()
    }
}
