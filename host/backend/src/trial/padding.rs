//! A trial of padding: does a row get the same answer if it is filled up to a bucket?
//!
//! For each bucket, made-up rows of random lengths run alone, then filled up to the bucket, by
//! themselves and beside each other. Each output, cut back, must be that of the row alone.
//!
//! The rows are as clients send them: an input that is a mask (its datatype is BOOL, or its name
//! has `mask` in it) marks all places as real, and whole numbers are never the value that fills
//! padded places, because some models find these places by that value.

use gristmill_core::{
    Dtype, Element, Fill, Lengths, Likeness, ModelError, PadValue, PaddedInput, Padding,
    PaddingFault, Tensor,
};

use super::values::{Range, Row, USUAL, Values};
use super::{Ends, MORE_PART, SIZES, Trial, Trying};
use crate::certificate::PaddingProof;
use crate::options::ProviderKind;

/// The rows for each bucket: one of any length in it, one that no smaller bucket holds, and one
/// that fills it.
const ROWS: usize = 3;

/// The batches in which they are run filled up.
const ORDERS: [&[usize]; 4] = [&[0], &[1], &[0, 1, 2], &[2, 1, 0]];

/// Why a trial of padding ends before its last run.
enum Stops {
    /// The claim is not true.
    False(PaddingFault),
    /// It is not known whether it is true.
    Ends(Ends),
}

/// A claim that is being tried.
struct Claim<'a> {
    trying: Trying<'a>,
    padding: &'a Padding,
    values: Values<'a>,
}

/// A row, and its outputs alone.
struct Sample {
    row: Row,
    lengths: Lengths,
    alone: Vec<Tensor>,
}

impl<'a> Trial<'a> {
    /// Try whether its rows may be padded.
    ///
    /// # Errors
    /// They may not: [`PaddingFault::Differs`] or [`PaddingFault::Shape`].
    pub(crate) fn run_padded(
        self,
        provider: ProviderKind,
        padding: &'a Padding,
    ) -> Result<PaddingProof, PaddingFault> {
        let (within, left) = (self.within, self.within);
        let values = Values::new(self.info, self.pool);
        let trying = Trying { trial: self, left, runs: 0, influence: 0.0 };
        let mut claim = Claim { trying, padding, values };
        let outcome = claim.all();
        let Trying { runs, influence, .. } = claim.trying;
        let undecided = match outcome {
            Ok(()) => None,
            Err(Stops::False(fault)) => return Err(fault),
            Err(Stops::Ends(ends)) => Some(ends.text(within, runs)),
        };
        Ok(PaddingProof { provider, influence, runs, undecided })
    }
}

impl Claim<'_> {
    /// Each bucket with rows that the model takes, then with rows of other ranges as long as there
    /// is time.
    fn all(&mut self) -> Result<(), Stops> {
        let buckets = self.padding.lengths.iter().map(|length| length.buckets.len());
        let buckets = buckets.max().unwrap_or_default();
        let mut ranges = self.ranges();
        for bucket in 0..buckets {
            let taken = self.try_ranges(bucket, &ranges)?;
            ranges[..=taken].rotate_right(1);
        }
        // An upload waits for it.
        let more = self.trying.trial.within / MORE_PART;
        self.trying.left = self.trying.left.min(more);
        let size = ranges[0].1;
        for (range, _) in ranges.iter().skip(1).filter(|(_, other)| *other == size) {
            for bucket in 0..buckets {
                match self.try_range(bucket, (*range, size)) {
                    // The model may refuse the range.
                    Ok(()) | Err(Stops::Ends(Ends::Failed(_))) => {}
                    Err(Stops::Ends(_)) => return Ok(()),
                    Err(fault) => return Err(fault),
                }
            }
        }
        Ok(())
    }

    /// The ranges of values, each with a size of the open dimensions that are not padded.
    fn ranges(&self) -> Vec<(Range, usize)> {
        let mut inputs = self.trying.trial.info.inputs.iter().enumerate();
        let has_others = inputs.any(|(index, input)| {
            let padded = self.padding.of_input(index).map(|(_, padded)| padded.axis);
            let mut dims = input.dims.iter().enumerate().skip(1);
            dims.any(|(at, dim)| dim.is_none() && Some(at) != padded)
        });
        let sizes = if has_others { &SIZES[..] } else { &SIZES[..1] };
        sizes.iter().flat_map(|size| USUAL.map(|range| (range, *size))).collect()
    }

    /// Try a bucket with the first of `ranges` that the model takes. Returns its index.
    fn try_ranges(&mut self, bucket: usize, ranges: &[(Range, usize)]) -> Result<usize, Stops> {
        let mut last = None;
        for (index, range) in ranges.iter().enumerate() {
            match self.try_range(bucket, *range) {
                Err(Stops::Ends(Ends::Failed(error))) => last = Some(error),
                Err(stops) => return Err(stops),
                Ok(()) => return Ok(index),
            }
        }
        Err(Stops::Ends(Ends::Failed(last.unwrap_or_else(|| ModelError::new("no rows")))))
    }

    fn try_range(&mut self, bucket: usize, range: (Range, usize)) -> Result<(), Stops> {
        let lengths = self.padding.lengths.iter();
        let filled = lengths.map(|length| length.buckets[bucket.min(length.buckets.len() - 1)]);
        let filled: Lengths = filled.collect();
        let samples = (0..ROWS).map(|number| self.sample(number, &filled, range));
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        for order in ORDERS {
            let batch: Vec<&Sample> = order.iter().map(|at| &samples[*at]).collect();
            let inputs = self.inputs(&batch, &filled)?;
            let outputs = self.trying.run(&inputs)?;
            self.trying.check_rows(&outputs, batch.len())?;
            for (place, sample) in batch.into_iter().enumerate() {
                self.compare(sample, place, &outputs, &filled)?;
            }
        }
        Ok(())
    }

    /// The row of this `number` for the buckets that are `filled`, run alone.
    fn sample(
        &mut self,
        number: usize,
        filled: &Lengths,
        (range, size): (Range, usize),
    ) -> Result<Sample, Ends> {
        let (padding, values) = (self.padding, &mut self.values);
        let lengths = padding.lengths.iter().zip(filled).map(|(length, filled)| {
            let smaller = length.buckets.iter().rev().find(|bucket| *bucket < filled);
            match number {
                0 => values.length(1, (filled - 1).max(1)),
                1 => values.length(smaller.map_or(1, |smaller| smaller + 1), *filled),
                _ => *filled,
            }
        });
        let lengths: Lengths = lengths.collect();
        let row = values.row_of(range, size, |input, shape| {
            if let Some((length, padded)) = padding.of_input(input) {
                shape[padded.axis] = lengths[length];
            }
        });
        let too_large = || Ends::Failed(ModelError::new("a row is too large"));
        let mut row = row.ok_or_else(too_large)?;
        for (input, tensor) in row.iter_mut().enumerate() {
            if let Some((_, padded)) = padding.of_input(input)
                && let Some(real) = self.real(padded, tensor)
            {
                *tensor = real;
            }
        }
        let alone = self.trying.run(&row)?;
        self.trying.check_rows(&alone, 1)?;
        Ok(Sample { row, lengths, alone })
    }

    /// The tensor with real places only. None if all of its places are.
    fn real(&self, padded: &PaddedInput, tensor: &Tensor) -> Option<Tensor> {
        let Trial { info, pool, .. } = &self.trying.trial;
        let (dtype, name) = (tensor.dtype(), &info.inputs[padded.input].name);
        let is_mask = dtype == Dtype::Bool || name.to_lowercase().contains("mask");
        let size = dtype.size_bytes()?;
        let mut bytes = tensor.as_bytes().to_vec();
        if is_mask {
            let one = PadValue::Whole(1).element(dtype)?;
            let real = if padded.element == one { Element::from_elem(0, size) } else { one };
            bytes.chunks_exact_mut(size).for_each(|place| place.copy_from_slice(&real));
        } else if is_whole(dtype) {
            let filling =
                bytes.chunks_exact_mut(size).filter(|place| **place == padded.element[..]);
            // The next number in its lowest byte.
            filling.for_each(|place| place[0] = place[0].wrapping_add(1));
        } else {
            return None;
        }
        Tensor::new(dtype, tensor.shape().into(), pool.copy_from(&bytes)).ok()
    }

    /// The inputs of a batch of rows that are `filled` up.
    fn inputs(&self, batch: &[&Sample], filled: &Lengths) -> Result<Vec<Tensor>, Ends> {
        let Trial { info, pool, .. } = &self.trying.trial;
        let stacked = (0..info.inputs.len()).map(|input| {
            let parts = batch.iter().map(|sample| &sample.row[input]);
            match self.padding.of_input(input) {
                Some((length, PaddedInput { axis, element, .. })) => {
                    let fill = Fill { axis: *axis, size: filled[length], element };
                    Tensor::stack_filled(pool, parts, fill)
                }
                None => Tensor::stack(pool, parts),
            }
        });
        let stacked: Result<Vec<_>, _> = stacked.collect();
        stacked.map_err(|error| Ends::Failed(ModelError::new(error.to_string())))
    }

    /// Compare the row at `place` of the `outputs` of rows that were `filled` up with the same row
    /// alone.
    fn compare(
        &mut self,
        sample: &Sample,
        place: usize,
        outputs: &[Tensor],
        filled: &Lengths,
    ) -> Result<(), Stops> {
        let Trial { info, pool, slack, .. } = &self.trying.trial;
        let mut lengths = sample.lengths.iter().zip(filled);
        let differing = lengths.find(|(length, filled)| length != filled);
        let (length, padded) = differing.map_or((filled[0], filled[0]), |(a, b)| (*a, *b));
        for (index, (alone, output)) in sample.alone.iter().zip(outputs).enumerate() {
            let mut row = output.slice_rows(place..place + 1).unwrap_or_else(|| output.clone());
            for cut in self.padding.outputs.iter().filter(|cut| cut.output == index) {
                if row.shape().get(cut.axis) == Some(&filled[cut.length]) {
                    row = row.cut(pool, cut.axis, sample.lengths[cut.length]).unwrap_or(row);
                }
            }
            let output = info.outputs[index].name.to_string();
            if alone.shape() != row.shape() {
                let (alone, actual) = (alone.shape().to_vec(), row.shape().to_vec());
                return Err(PaddingFault::Shape { output, length, padded, alone, actual }.into());
            }
            let Likeness { influence, differs } = Likeness::of(alone, &row, *slack);
            if differs {
                return Err(PaddingFault::Differs { output, length, padded, influence }.into());
            }
            self.trying.influence = self.trying.influence.max(influence);
        }
        Ok(())
    }
}

fn is_whole(dtype: Dtype) -> bool {
    let fractions = [Dtype::Float16, Dtype::Bfloat16, Dtype::Float32, Dtype::Float64];
    !fractions.contains(&dtype) && dtype != Dtype::String
}

impl From<Ends> for Stops {
    fn from(ends: Ends) -> Self {
        Self::Ends(ends)
    }
}

impl From<PaddingFault> for Stops {
    fn from(fault: PaddingFault) -> Self {
        Self::False(fault)
    }
}

#[cfg(test)]
mod tests;
