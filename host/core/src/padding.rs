//! Padding: how rows of different lengths share a batch.
//!
//! A model's configuration makes a claim, a [`PaddingSpec`]: inputs may be filled up along an axis,
//! and outputs are cut back. [`PaddingSpec::resolve`] compares the claim with a model's inputs and
//! outputs; the outcome is a [`Padding`]. Inputs with the same buckets have one length in a
//! request, and are padded together.
//!
//! Refuses to know whether the claim is true: the backends try that. `value` is the number that
//! fills padded places, `fault` says why a claim is refused.

mod fault;
mod value;

use smallvec::SmallVec;

use crate::dtype::Dtype;
use crate::model::{ModelInfo, NamedTensor, TensorInfo};

pub use self::fault::PaddingFault;
pub use self::value::{Element, PadValue};

/// Maximum different lists of buckets of a model.
pub const LENGTHS_MAX: usize = 2;

/// Maximum buckets of an input.
pub const BUCKETS_MAX: usize = 16;

/// A number for each list of buckets.
pub type Lengths = SmallVec<[usize; LENGTHS_MAX]>;

/// What a configuration says of the padding of inputs and outputs, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PaddingSpec {
    /// The inputs that may be padded, with at most [`LENGTHS_MAX`] different lists of buckets.
    pub inputs: Vec<PadSpec>,
    /// The outputs that are cut back.
    pub outputs: Vec<CutSpec>,
}

/// An input that may be padded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PadSpec {
    /// The input.
    pub input: String,
    /// The dimension that is filled up, from 1.
    pub axis: usize,
    /// The value that fills it.
    pub value: PadValue,
    /// The sizes to which it is filled up, ascending, at most [`BUCKETS_MAX`].
    pub buckets: Vec<usize>,
}

/// An output that is cut back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CutSpec {
    /// The output.
    pub output: String,
    /// The dimension that is cut, from 1.
    pub axis: usize,
    /// The padded input that has its length.
    pub input: String,
}

/// How rows of a model are padded. The default is: not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Padding {
    /// The lengths of a request, one for each list of buckets.
    pub lengths: Vec<PaddedLength>,
    /// The outputs that are cut back.
    pub outputs: Vec<CutOutput>,
}

/// Inputs that have one length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedLength {
    /// The sizes to which they are filled up, ascending.
    pub buckets: Vec<usize>,
    /// One at least.
    pub inputs: Vec<PaddedInput>,
}

/// An input that is padded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedInput {
    /// Its index among the model's inputs.
    pub input: usize,
    /// The dimension that is filled up, from 1.
    pub axis: usize,
    /// The value that fills it.
    pub element: Element,
}

/// An output that is cut back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOutput {
    /// Its index among the model's outputs.
    pub output: usize,
    /// The dimension that is cut, from 1.
    pub axis: usize,
    /// The index of its length.
    pub length: usize,
}

impl PaddingSpec {
    /// Whether it says nothing.
    pub fn is_none(&self) -> bool {
        self.inputs.is_empty()
    }

    /// The padding of a model with these inputs and outputs.
    ///
    /// # Errors
    /// [`PaddingFault`] names the first input or output that cannot be padded or cut so.
    pub fn resolve(&self, info: &ModelInfo) -> Result<Padding, PaddingFault> {
        let mut padding = Padding::default();
        for PadSpec { input: name, axis, value, buckets } in &self.inputs {
            let input = open_axis(&info.inputs, ("pad", "input"), name, *axis)?;
            let dtype = info.inputs[input].dtype;
            let wrong = || PaddingFault::Value { name: name.clone(), value: *value, dtype };
            let element = value.element(dtype).ok_or_else(wrong)?;
            let padded = PaddedInput { input, axis: *axis, element };
            match padding.lengths.iter_mut().find(|length| length.buckets == *buckets) {
                Some(length) => length.inputs.push(padded),
                None => {
                    let length = PaddedLength { buckets: buckets.clone(), inputs: vec![padded] };
                    padding.lengths.push(length);
                }
            }
        }
        padding.check_equal_dims(info)?;
        for CutSpec { output: name, axis, input } in &self.outputs {
            let output = open_axis(&info.outputs, ("cut", "output"), name, *axis)?;
            let index = info.inputs.iter().position(|info| *info.name == **input);
            let length = index.and_then(|index| padding.length_of(index)).ok_or_else(|| {
                PaddingFault::UnpaddedLength { output: name.clone(), input: input.clone() }
            })?;
            padding.outputs.push(CutOutput { output, axis: *axis, length });
        }
        Ok(padding)
    }
}

/// The index of the tensor called `name`, whose dimension `axis` is open.
fn open_axis(
    all: &[TensorInfo],
    (key, kind): (&'static str, &'static str),
    name: &str,
    axis: usize,
) -> Result<usize, PaddingFault> {
    let Some(index) = all.iter().position(|info| *info.name == *name) else {
        let expected = all.iter().map(|info| info.name.clone()).collect();
        return Err(PaddingFault::UnknownName { key, kind, name: name.into(), expected });
    };
    let (info, name) = (&all[index], name.to_owned());
    match info.dims.get(axis) {
        _ if info.dtype == Dtype::String => Err(PaddingFault::Texts { key, name }),
        Some(None) if axis > 0 => Ok(index),
        Some(Some(size)) if axis > 0 => {
            Err(PaddingFault::FixedAxis { key, name, axis, size: *size })
        }
        _ => Err(PaddingFault::Axis { key, name, axis, shape: info.shape_text() }),
    }
}

impl Padding {
    /// Whether nothing is padded.
    pub fn is_none(&self) -> bool {
        self.lengths.is_empty()
    }

    /// The index of an input's length, and how it is padded. None if it is not padded.
    pub fn of_input(&self, input: usize) -> Option<(usize, &PaddedInput)> {
        let mut all = self.lengths.iter().enumerate();
        all.find_map(|(index, length)| {
            Some((index, length.inputs.iter().find(|padded| padded.input == input)?))
        })
    }

    fn length_of(&self, input: usize) -> Option<usize> {
        self.of_input(input).map(|(length, _)| length)
    }

    /// The lengths of a request with these `inputs`, which are in the model's order. None if it is
    /// not padded: nothing is, or inputs that have one length differ in it.
    pub fn lengths_of(&self, inputs: &[NamedTensor]) -> Option<Lengths> {
        let size_of = |PaddedInput { input, axis, .. }: &PaddedInput| {
            inputs.get(*input)?.tensor.shape().get(*axis).copied()
        };
        let of_all = |PaddedLength { inputs, .. }: &PaddedLength| {
            let mut sizes = inputs.iter().map(size_of);
            let first = sizes.next()??;
            sizes.all(|size| size == Some(first)).then_some(first)
        };
        let lengths: Option<Lengths> = self.lengths.iter().map(of_all).collect();
        lengths.filter(|lengths| !lengths.is_empty())
    }

    /// The index of the smallest bucket that holds each of `lengths`. None if one is longer than
    /// the largest.
    pub fn buckets_of(&self, lengths: &[usize]) -> Option<Lengths> {
        let bucket = |(length, size): (&PaddedLength, &usize)| {
            length.buckets.iter().position(|bucket| bucket >= size)
        };
        self.lengths.iter().zip(lengths).map(bucket).collect()
    }

    /// The sizes to which `lengths` are padded. None if one is longer than the largest bucket.
    pub fn padded(&self, lengths: &[usize]) -> Option<Lengths> {
        let buckets = self.buckets_of(lengths)?;
        Some(self.lengths.iter().zip(buckets).map(|(length, at)| length.buckets[at]).collect())
    }

    /// Check that dimensions with one name in the model are padded together.
    fn check_equal_dims(&self, info: &ModelInfo) -> Result<(), PaddingFault> {
        let name = |input: usize| info.inputs[input].name.to_string();
        for dims in &info.equal_dims {
            let length = |(input, dim): (usize, usize)| {
                let (length, padded) = self.of_input(input)?;
                (padded.axis == dim).then_some((input, length))
            };
            let Some((first, expected)) = dims.places.iter().find_map(|place| length(*place))
            else {
                continue;
            };
            for (at, (input, dim)) in dims.places.iter().copied().enumerate() {
                let symbol = dims.symbol.clone();
                let mut before = dims.places[..at].iter();
                if let Some((_, other)) = before.find(|(other, _)| *other == input) {
                    let (padded, input, other) = (name(first), name(input), *other);
                    return Err(PaddingFault::TwoDims { padded, symbol, input, other, dim });
                }
            }
            for (input, dim) in dims.places.iter().copied() {
                let symbol = dims.symbol.clone();
                match length((input, dim)) {
                    Some((_, length)) if length == expected => {}
                    Some(_) => {
                        let (input, other) = (name(input), name(first));
                        return Err(PaddingFault::UnlikeBuckets { input, other, symbol });
                    }
                    None => {
                        let (padded, input) = (name(first), name(input));
                        return Err(PaddingFault::Unpadded { padded, symbol, input, dim });
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
