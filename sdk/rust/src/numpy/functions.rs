//! The operations with parameters. Their names and rules are NumPy's.

use super::params::{Axes, Part, float, list, name};
use super::{Array, NUMBER, State};
use crate::Dtype;

/// Operations along axes.
macro_rules! along_axes {
    ($($(#[$doc:meta])* $method:ident;)*) => {
        /// Along axes: `()` for all elements, `1`, `[0, 2]`, `kept(1)`.
        impl Array<'_> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $method(&self, axes: impl Into<Axes>) -> Self {
                let Axes { axes, are_kept } = axes.into();
                let params = format!("[{axes},{are_kept}]");
                Self::noted(stringify!($method), vec![self.clone()], params)
            }
        )*}
    };
}

along_axes! {
    /// The sum.
    sum;
    /// The product.
    prod;
    /// The mean.
    mean;
    /// The largest element; NaN if one is.
    max;
    /// The smallest element; NaN if one is.
    min;
    /// Whether one is not 0.
    any;
    /// Whether none is 0.
    all;
    /// The place of the largest element.
    argmax;
    /// The place of the smallest element.
    argmin;
    /// How many are not 0.
    count_nonzero;
}

/// Operations along one axis.
macro_rules! along_axis {
    ($($(#[$doc:meta])* $method:ident;)*) => {
        /// Along an axis; `()` for the flat array.
        impl Array<'_> {$(
            $(#[$doc])*
            #[track_caller]
            #[must_use]
            pub fn $method(&self, axis: impl Into<Axes>) -> Self {
                let params = format!("[{}]", axis.into().axes);
                Self::noted(stringify!($method), vec![self.clone()], params)
            }
        )*}
    };
}

along_axis! {
    /// The sums of all elements up to each.
    cumulative_sum;
    /// The products of all elements up to each.
    cumulative_prod;
    /// 1, divided among the elements by their powers of e.
    softmax;
    /// Divided by the Euclidean length. What has length 0 stays as it is.
    normalize;
    /// In the opposite order.
    flip;
}

/// What else takes parameters.
impl<'t> Array<'t> {
    #[track_caller]
    fn with(&self, name: &'static str, others: Vec<Self>, params: String) -> Self {
        let operands = std::iter::once(self.clone()).chain(others).collect();
        Self::noted(name, operands, params)
    }

    #[track_caller]
    fn deviation(&self, name: &'static str, axes: impl Into<Axes>, correction: f64) -> Self {
        let Axes { axes, are_kept } = axes.into();
        self.with(name, vec![], format!("[{axes},{are_kept},{}]", float(correction)))
    }

    /// The variance; `correction` is NumPy's `ddof`.
    #[track_caller]
    #[must_use]
    pub fn var(&self, axes: impl Into<Axes>, correction: f64) -> Self {
        self.deviation("var", axes, correction)
    }

    /// The standard deviation; `correction` is NumPy's `ddof`.
    #[track_caller]
    #[must_use]
    pub fn std(&self, axes: impl Into<Axes>, correction: f64) -> Self {
        self.deviation("std", axes, correction)
    }

    #[track_caller]
    fn in_order(&self, name: &'static str, axis: impl Into<Axes>, is_descending: bool) -> Self {
        self.with(name, vec![], format!("[{},{is_descending}]", axis.into().axes))
    }

    /// In order along an axis; NaN comes last.
    #[track_caller]
    #[must_use]
    pub fn sort(&self, axis: impl Into<Axes>, is_descending: bool) -> Self {
        self.in_order("sort", axis, is_descending)
    }

    /// The places of the elements in sorted order; equal ones stay in their order.
    #[track_caller]
    #[must_use]
    pub fn argsort(&self, axis: impl Into<Axes>, is_descending: bool) -> Self {
        self.in_order("argsort", axis, is_descending)
    }

    /// The `k` largest elements along an axis, largest first, and their places.
    #[track_caller]
    #[must_use]
    pub fn top_k(&self, k: usize, axis: i32) -> (Self, Self) {
        let places = self.with("argtopk", vec![], format!("[{axis},{k}]"));
        (self.take_along_axis(&places, axis), places)
    }

    /// The elements where this is true or not 0, and those of the other one elsewhere: NumPy's
    /// `where(self, x, y)`.
    #[track_caller]
    #[must_use]
    pub fn choose(&self, x: impl Into<Array<'t>>, y: impl Into<Array<'t>>) -> Self {
        self.with("where", vec![x.into(), y.into()], "[]".into())
    }

    /// No less than `min`, no more than `max`.
    #[track_caller]
    #[must_use]
    pub fn clip(&self, min: impl Into<Array<'t>>, max: impl Into<Array<'t>>) -> Self {
        self.maximum(min).minimum(max)
    }

    /// The means over the tokens of texts that the mask does not leave out. This is
    /// `[texts, tokens, width]`, as the last layer of an encoder gives it, and `mask` is
    /// `[texts, tokens]`, 1 for tokens and 0 for padding. A text without tokens gives 0.
    #[track_caller]
    #[must_use]
    pub fn mean_pool(&self, mask: impl Into<Array<'t>>) -> Self {
        let weights = mask.into().astype(Dtype::Float32);
        let weights = weights.index([Part::Ellipsis, Part::NewAxis]);
        self.multiply(&weights).sum(1).divide(weights.sum(1).maximum(1e-9))
    }

    /// To so many decimals; a half goes to the even digit.
    #[track_caller]
    #[must_use]
    pub fn round(&self, decimals: i32) -> Self {
        self.with("round", vec![], format!("[{decimals}]"))
    }

    /// The same values in another dtype, as [`Tensor::cast`](crate::Tensor::cast).
    #[track_caller]
    #[must_use]
    pub fn astype(&self, dtype: Dtype) -> Self {
        self.with("astype", vec![], format!("[{}]", name(dtype)))
    }

    /// Another shape of as many elements. One dimension may be -1.
    #[track_caller]
    #[must_use]
    pub fn reshape<const N: usize>(&self, shape: [i64; N]) -> Self {
        self.with("reshape", vec![], format!("[{}]", list(shape)))
    }

    /// Repeated along new dimensions and those of length 1.
    #[track_caller]
    #[must_use]
    pub fn broadcast_to<const N: usize>(&self, shape: [usize; N]) -> Self {
        self.with("broadcast_to", vec![], format!("[{}]", list(shape)))
    }

    /// The dimensions in another order: NumPy's `transpose(axes)`.
    #[track_caller]
    #[must_use]
    pub fn permute_dims<const N: usize>(&self, axes: [i32; N]) -> Self {
        self.with("permute_dims", vec![], format!("[{}]", list(axes)))
    }

    /// The dimensions in the opposite order: NumPy's `T`.
    #[track_caller]
    #[must_use]
    pub fn transpose(&self) -> Self {
        self.with("permute_dims", vec![], "[null]".into())
    }

    /// The parts of each axis: `index([part(0), part(1..3), part(mask)])`.
    #[track_caller]
    #[must_use]
    pub fn index<const N: usize>(&self, parts: [Part<'t>; N]) -> Self {
        let (texts, arrays): (Vec<_>, Vec<_>) = parts.into_iter().map(Part::noted).unzip();
        self.with("index", arrays.into_iter().flatten().collect(), format!("[{}]", list(texts)))
    }

    /// The elements at these indices along an axis; `()` for the flat array.
    #[track_caller]
    #[must_use]
    pub fn take(&self, indices: impl Into<Array<'t>>, axis: impl Into<Axes>) -> Self {
        self.with("take", vec![indices.into()], format!("[{}]", axis.into().axes))
    }

    /// For each place of `indices`, the element that it names along the axis.
    #[track_caller]
    #[must_use]
    pub fn take_along_axis(&self, indices: impl Into<Array<'t>>, axis: i32) -> Self {
        self.with("take_along_axis", vec![indices.into()], format!("[{axis}]"))
    }

    /// Each element so many times along an axis; `()` for the flat array.
    #[track_caller]
    #[must_use]
    pub fn repeat(&self, count: usize, axis: impl Into<Axes>) -> Self {
        self.with("repeat", vec![], format!("[{count},{}]", axis.into().axes))
    }

    /// 1 at each index along a new last axis, 0 elsewhere, in float32.
    #[track_caller]
    #[must_use]
    pub fn one_hot(&self, classes: usize) -> Self {
        self.with("one_hot", vec![], format!("[{classes},{}]", name(Dtype::Float32)))
    }

    /// Which boxes `[n, 4]` (x1, y1, x2, y2) with these scores stay, best first: as
    /// `torchvision.ops.nms`. A box goes if it overlaps a better one that stays by more than
    /// `overlap`, or its score is under `least`.
    #[track_caller]
    #[must_use]
    pub fn nms(
        &self,
        scores: impl Into<Array<'t>>,
        overlap: f64,
        least: Option<f64>,
        most: Option<usize>,
    ) -> Self {
        let least = least.map_or_else(|| "null".into(), float);
        let most = most.map_or_else(|| "null".into(), |most| most.to_string());
        self.with("nms", vec![scores.into()], format!("[{},{least},{most}]", float(overlap)))
    }

    /// One after another along an axis; `()` for all of them flat.
    #[track_caller]
    #[must_use]
    pub fn concat(
        arrays: impl IntoIterator<Item = impl Into<Array<'t>>>,
        axis: impl Into<Axes>,
    ) -> Self {
        let arrays = arrays.into_iter().map(Into::into).collect();
        Self::noted("concat", arrays, format!("[{}]", axis.into().axes))
    }

    /// Along a new axis.
    #[track_caller]
    #[must_use]
    pub fn stack(arrays: impl IntoIterator<Item = impl Into<Array<'t>>>, axis: i32) -> Self {
        let arrays = arrays.into_iter().map(Into::into).collect();
        Self::noted("stack", arrays, format!("[{axis}]"))
    }

    /// An array of one value.
    #[track_caller]
    #[must_use]
    pub fn full<const N: usize>(
        shape: [usize; N],
        value: impl Into<Array<'t>>,
        dtype: Dtype,
    ) -> Self {
        let value = value.into();
        // A number's own parameter is its text.
        let text = match &*value.0.state.borrow() {
            State::Noted(step) if step.name == NUMBER => {
                Some(step.params.trim_matches(['[', ']']).to_owned())
            }
            _ => None,
        };
        let Some(text) = text else { return value.astype(dtype).broadcast_to(shape) };
        Self::noted("full", vec![], format!("[{text},{},{}]", list(shape), name(dtype)))
    }

    /// An array of zeros.
    #[track_caller]
    #[must_use]
    pub fn zeros<const N: usize>(shape: [usize; N], dtype: Dtype) -> Self {
        Self::full(shape, 0, dtype)
    }

    /// Numbers from `start` up to, not including, `stop`, in int64.
    #[track_caller]
    #[must_use]
    pub fn arange(start: i64, stop: i64, step: i64) -> Self {
        Self::noted("arange", vec![], format!("[{start},{stop},{step},null]"))
    }

    /// `count` numbers at equal distances, both ends included, in float64.
    #[track_caller]
    #[must_use]
    pub fn linspace(start: f64, stop: f64, count: usize) -> Self {
        let (start, stop) = (float(start), float(stop));
        Self::noted("linspace", vec![], format!("[{start},{stop},{count},true,null]"))
    }

    /// The square matrix with ones on its diagonal.
    #[track_caller]
    #[must_use]
    pub fn eye(rows: usize, dtype: Dtype) -> Self {
        Self::noted("eye", vec![], format!("[{rows},null,0,{}]", name(dtype)))
    }
}
