//! Numbers, axes and parts, as a program has them.

use std::fmt::Write;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use super::{Array, NUMBER};
use crate::Dtype;

/// The axes of an operation: `()` for all of them together, one as `1` or `-1`, several as
/// `[0, 2]`. [`kept`] leaves them in the shape, with length 1.
#[derive(Clone, Debug)]
pub struct Axes {
    pub(super) axes: String,
    pub(super) are_kept: bool,
}

/// These axes stay in the shape, with length 1: NumPy's `keepdims=True`.
pub fn kept(axes: impl Into<Axes>) -> Axes {
    Axes { are_kept: true, ..axes.into() }
}

impl From<()> for Axes {
    fn from((): ()) -> Self {
        Self { axes: "null".into(), are_kept: false }
    }
}

impl From<i32> for Axes {
    fn from(axis: i32) -> Self {
        Self { axes: axis.to_string(), are_kept: false }
    }
}

impl<const N: usize> From<[i32; N]> for Axes {
    fn from(axes: [i32; N]) -> Self {
        Self { axes: list(axes), are_kept: false }
    }
}

/// What [`Array::index`] takes of one axis. [`part`] makes one.
#[derive(Clone, Debug)]
pub enum Part<'t> {
    /// The part at this index, which may be negative. The axis goes.
    At(i64),
    /// From, up to (not including), and the step, as Python's `from:to:step`.
    Slice(Option<i64>, Option<i64>, Option<i64>),
    /// A new axis of length 1.
    NewAxis,
    /// All axes that are not named: Python's `...`.
    Ellipsis,
    /// The parts at these indices, or where this mask is true.
    Array(Array<'t>),
}

/// An index as Rust writes it: `part(2)`, `part(1..3)`, `part(..)`, `part(mask)`.
pub fn part<'t>(part: impl Into<Part<'t>>) -> Part<'t> {
    part.into()
}

impl From<i64> for Part<'_> {
    fn from(at: i64) -> Self {
        Self::At(at)
    }
}

impl From<i32> for Part<'_> {
    fn from(at: i32) -> Self {
        Self::At(at.into())
    }
}

impl<'t> From<Array<'t>> for Part<'t> {
    fn from(array: Array<'t>) -> Self {
        Self::Array(array)
    }
}

impl<'t> From<&Array<'t>> for Part<'t> {
    fn from(array: &Array<'t>) -> Self {
        Self::Array(array.clone())
    }
}

impl From<Range<i64>> for Part<'_> {
    fn from(range: Range<i64>) -> Self {
        Self::Slice(Some(range.start), Some(range.end), None)
    }
}

impl From<RangeInclusive<i64>> for Part<'_> {
    fn from(range: RangeInclusive<i64>) -> Self {
        Self::Slice(Some(*range.start()), after(*range.end()), None)
    }
}

impl From<RangeToInclusive<i64>> for Part<'_> {
    fn from(range: RangeToInclusive<i64>) -> Self {
        Self::Slice(None, after(range.end), None)
    }
}

/// The end that has this index in the slice, too. After -1 that is the end of the axis.
fn after(last: i64) -> Option<i64> {
    last.checked_add(1).filter(|end| *end != 0)
}

impl From<RangeFrom<i64>> for Part<'_> {
    fn from(range: RangeFrom<i64>) -> Self {
        Self::Slice(Some(range.start), None, None)
    }
}

impl From<RangeTo<i64>> for Part<'_> {
    fn from(range: RangeTo<i64>) -> Self {
        Self::Slice(None, Some(range.end), None)
    }
}

impl From<RangeFull> for Part<'_> {
    fn from(_: RangeFull) -> Self {
        Self::Slice(None, None, None)
    }
}

impl<'t> Part<'t> {
    /// Its text, and the array if it is one.
    pub(super) fn noted(self) -> (String, Option<Array<'t>>) {
        let end = |end: Option<i64>| end.map_or_else(|| "null".into(), |end| end.to_string());
        match self {
            Self::At(at) => (at.to_string(), None),
            Self::Slice(from, to, step) => {
                (format!("[{},{},{}]", end(from), end(to), end(step)), None)
            }
            Self::NewAxis => ("null".into(), None),
            Self::Ellipsis => ("\"...\"".into(), None),
            Self::Array(array) => ("\"array\"".into(), Some(array)),
        }
    }
}

/// A number that reads back as the same. JSON has no NaN and no infinities.
pub(super) fn float(number: f64) -> String {
    if number.is_nan() {
        return "\"nan\"".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "\"inf\"" } else { "\"-inf\"" }.into();
    }
    // With a fraction or an exponent: `2` would be an integer.
    format!("{number:?}")
}

pub(super) fn list(items: impl IntoIterator<Item = impl ToString>) -> String {
    let mut text = String::from("[");
    for item in items {
        let comma = if text.len() > 1 { "," } else { "" };
        let _ = write!(text, "{comma}{}", item.to_string());
    }
    text.push(']');
    text
}

/// A dtype's name in a program.
pub(super) fn name(dtype: Dtype) -> String {
    // The contract's generated types have their own name before it.
    let name = format!("{dtype:?}").to_lowercase();
    format!("\"{}\"", name.rsplit("::").next().unwrap_or(&name))
}

macro_rules! numbers {
    ($($type:ty: $text:expr),* $(,)?) => {$(
        /// A number, which takes the dtype of the array that it meets.
        impl From<$type> for Array<'_> {
            #[track_caller]
            fn from(number: $type) -> Self {
                let text: fn($type) -> String = $text;
                Self::noted(NUMBER, Vec::new(), format!("[{}]", text(number)))
            }
        }
    )*};
}

numbers! {
    bool: |number| number.to_string(),
    i32: |number| number.to_string(),
    i64: |number| number.to_string(),
    u32: |number| number.to_string(),
    u64: |number| number.to_string(),
    f32: |number| float(number.into()),
    f64: float,
}
