//! Why a claim about padding is refused. Texts name the key of the configuration and the cure.

use std::sync::Arc;

use crate::dtype::Dtype;
use crate::padding::value::PadValue;

/// Why inputs cannot be padded as the configuration says.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PaddingFault {
    /// The model has no such input or output.
    #[error(
        "{key} names {name:?}, which is not an {kind} of the model: its {kind}s are {expected:?}"
    )]
    UnknownName {
        /// The key of the configuration.
        key: &'static str,
        /// `input` or `output`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The model's names.
        expected: Vec<Arc<str>>,
    },
    /// The tensor does not have this dimension, or it is that of the rows.
    #[error(
        "{key}.{name}.axis is {axis}: {name:?} has the shape {shape}, so the axis must be one of its \
         dimensions after the first, counted from 1"
    )]
    Axis {
        /// The key of the configuration.
        key: &'static str,
        /// The input or output.
        name: String,
        /// The dimension.
        axis: usize,
        /// The shape of the tensor.
        shape: String,
    },
    /// The dimension has one size.
    #[error(
        "{key}.{name}.axis is {axis}: this dimension of {name:?} is always {size}. Name an open \
         dimension, or export the model with an open one"
    )]
    FixedAxis {
        /// The key of the configuration.
        key: &'static str,
        /// The input or output.
        name: String,
        /// The dimension.
        axis: usize,
        /// Its size.
        size: usize,
    },
    /// The tensor has texts.
    #[error("{key}.{name}: {name:?} has texts (BYTES), which cannot be padded or cut")]
    Texts {
        /// The key of the configuration.
        key: &'static str,
        /// The input or output.
        name: String,
    },
    /// The value is not one of the input's type.
    #[error("pad.{name}.value is {value}: {name:?} has datatype {dtype}, which does not have it")]
    Value {
        /// The input.
        name: String,
        /// The value.
        value: PadValue,
        /// The input's type.
        dtype: Dtype,
    },
    /// A dimension of another name than the padded one has the same name in the model.
    #[error(
        "pad.{padded} fills up a dimension that the model calls {symbol:?}, and dimension {dim} of \
         input {input:?} has the same name, so it must be padded with it: name {input:?} under pad, \
         with axis {dim}"
    )]
    Unpadded {
        /// The input that is padded.
        padded: String,
        /// The model's name for both dimensions.
        symbol: Arc<str>,
        /// The input that is not padded along its dimension.
        input: String,
        /// That dimension.
        dim: usize,
    },
    /// Two dimensions of one input have the name of a padded one.
    #[error(
        "pad.{padded} fills up a dimension that the model calls {symbol:?}, and dimensions {other} \
         and {dim} of input {input:?} have the same name. An input can be filled up along one \
         dimension only, so this model cannot be padded: remove pad"
    )]
    TwoDims {
        /// An input that is padded.
        padded: String,
        /// The model's name for the dimensions.
        symbol: Arc<str>,
        /// The input that has two of them.
        input: String,
        /// One of them.
        other: usize,
        /// The other one.
        dim: usize,
    },
    /// Two dimensions of one name have different buckets.
    #[error(
        "pad.{input}.buckets differ from pad.{other}.buckets, but the model calls both dimensions \
         {symbol:?}, so they have one length: give both the same buckets"
    )]
    UnlikeBuckets {
        /// An input.
        input: String,
        /// Another input.
        other: String,
        /// The model's name for their dimensions.
        symbol: Arc<str>,
    },
    /// An output has the length of an input that is not padded.
    #[error("cut.{output}.as is {input:?}, which is not named under pad")]
    UnpaddedLength {
        /// The output.
        output: String,
        /// The input.
        input: String,
    },
    /// A padded row gets another answer.
    #[error(
        "pad is not true of the model: output {output:?} of a row of length {length} {} when the row \
         is padded to {padded}, so answers would depend on who shares a batch. If the model takes an \
         attention mask, name it under pad with the value that hides padded places; else remove pad",
        change_text(*influence)
    )]
    Differs {
        /// The output.
        output: String,
        /// The length of the row.
        length: usize,
        /// The size to which it was padded.
        padded: usize,
        /// The difference, relative to the largest element of the row's output.
        influence: f64,
    },
    /// An output does not have the length of the padded input.
    #[error(
        "cut.{output} is not true of the model: dimension {axis} of the output is {actual} when a row \
         is padded to {padded}. Name the dimension that grows with the padded input; if none does, \
         remove cut.{output}"
    )]
    Cut {
        /// The output.
        output: String,
        /// The dimension that should be cut.
        axis: usize,
        /// The size to which the row was padded.
        padded: usize,
        /// The size of the dimension.
        actual: usize,
    },
    /// A padded row gets an output of another shape.
    #[error(
        "pad is not true of the model: output {output:?} has the shape {alone:?} for a row of length \
         {length}, and {actual:?} when the row is padded to {padded} and its outputs are cut as cut \
         says. Name the output under cut, with the axis that grows with the padded input"
    )]
    Shape {
        /// The output.
        output: String,
        /// The length of the row.
        length: usize,
        /// The size to which it was padded.
        padded: usize,
        /// The shape without padding.
        alone: Vec<usize>,
        /// The shape with padding.
        actual: Vec<usize>,
    },
}

fn change_text(influence: f64) -> String {
    match influence.is_finite() {
        true => format!("changes by {:.2} % of its largest element", 100.0 * influence),
        false => "is another one".into(),
    }
}
