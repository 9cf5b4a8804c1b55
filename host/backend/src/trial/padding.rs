//! A trial of padding: does a row get the same answer if it is filled up to a bucket?
//!
//! For each bucket, made-up rows of some lengths run alone, then filled up to the bucket, by
//! themselves and beside each other. Each output, cut back, must be that of the row alone.
//!
//! The rows are as clients send them: an input that is a mask (its datatype is BOOL, or its name
//! has `mask` in it) marks all places as real, and whole numbers are never the value that fills
//! padded places, because some models find these places by that value. Rows of negative numbers
//! are tried, too: beside them a place that is 0 can be the largest. A model may refuse them.
//!
//! A trial can show that a claim is false. It cannot prove that it is true, so some padded batches
//! are checked while they serve (`batch::sharing`).

use gristmill_core::{
    CutOutput, Dtype, Element, Fill, Lengths, Likeness, ModelError, PadValue, PaddedInput,
    PaddedLength, Padding, PaddingFault, Tensor,
};

use super::values::{Range, Row, Values};
use super::{Ends, MORE_PART, SIZES, Trial, Trying};
use crate::certificate::PaddingProof;
use crate::options::ProviderKind;

/// The rows for each bucket: one of length 1, one of any length in it, one that no smaller bucket
/// holds, and one that fills it.
const ROWS: usize = 4;

/// The ranges that are tried as long as there is time.
const MORE: [Range; 3] = [Range::Small, Range::Pixels, Range::Sparse];

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

/// How rows are made up.
#[derive(Clone)]
struct Recipe {
    /// The size of the open dimensions that are not padded.
    size: usize,
    /// The range of each input.
    ranges: Vec<Range>,
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
    /// They may not: [`PaddingFault::Differs`], [`PaddingFault::Shape`] or [`PaddingFault::Cut`].
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
        let is_unfinished = matches!(outcome, Err(Stops::Ends(Ends::Starved)));
        let reason = match outcome {
            Ok(()) => None,
            Err(Stops::False(fault)) => return Err(fault),
            Err(Stops::Ends(ends)) => Some(ends.text(within, runs)),
        };
        Ok(PaddingProof { provider, influence, runs, reason, is_unfinished, is_false: false })
    }
}

impl Claim<'_> {
    /// All buckets with rows that the model takes, and with negative numbers if it takes them. Then
    /// other ranges, as long as there is time.
    fn all(&mut self) -> Result<(), Stops> {
        let buckets = self.buckets();
        let mut recipes = self.recipes();
        for filled in &buckets {
            let taken = self.try_recipes(filled, &recipes)?;
            recipes[..=taken].rotate_right(1);
        }
        let taken = recipes.swap_remove(0);
        let inputs = &self.trying.trial.info.inputs;
        let fractions: Vec<bool> = inputs.iter().map(|input| !is_whole(input.dtype)).collect();
        let is_refused = !self.try_all(&buckets, &taken.with(Range::Negative, |_| true))?;
        if is_refused && fractions.contains(&true) {
            // Whole numbers may be places in a table.
            self.try_all(&buckets, &taken.with(Range::Negative, |input| fractions[input]))?;
        }
        // An upload waits for it.
        let more = self.trying.trial.within / MORE_PART;
        self.trying.left = self.trying.left.min(more);
        for range in MORE {
            match self.try_all(&buckets, &taken.with(range, |_| true)) {
                Err(Stops::Ends(Ends::Late | Ends::Starved)) => return Ok(()),
                tried => tried.map(drop)?,
            }
        }
        Ok(())
    }

    /// The sizes to which rows are filled up: all of a list of buckets, and the smallest of one
    /// beside the largest of the other. At run time any two meet.
    fn buckets(&self) -> Vec<Lengths> {
        let lengths = &self.padding.lengths;
        let count = lengths.iter().map(|length| length.buckets.len()).max().unwrap_or_default();
        let size = |length: &PaddedLength, at: usize| {
            length.buckets.get(at).or(length.buckets.last()).copied().unwrap_or(1)
        };
        let like =
            |at: usize| -> Lengths { lengths.iter().map(|length| size(length, at)).collect() };
        let mut all: Vec<Lengths> = (0..count).map(like).collect();
        if let [one, other] = &lengths[..] {
            for (one_at, other_at) in [(0, count), (count, 0)] {
                let corner = Lengths::from_slice(&[size(one, one_at), size(other, other_at)]);
                if !all.contains(&corner) {
                    all.push(corner);
                }
            }
        }
        all
    }

    /// How rows may be made up, the best first. Some models take only 0 and 1 in an input, such as
    /// one that says to which of two texts a token belongs.
    fn recipes(&self) -> Vec<Recipe> {
        let inputs = &self.trying.trial.info.inputs;
        let mut all_dims = inputs.iter().enumerate().flat_map(|(input, info)| {
            let padded = self.padding.of_input(input).map(|(_, padded)| padded.axis);
            let dims = info.dims.iter().enumerate().skip(1);
            dims.map(move |(at, dim)| dim.is_none() && Some(at) != padded)
        });
        let sizes = if all_dims.any(|is_other| is_other) { &SIZES[..] } else { &SIZES[..1] };
        let signed = vec![Range::Signed; inputs.len()];
        let mut ranges = vec![signed.clone()];
        let whole = (0..inputs.len()).filter(|input| is_whole(inputs[*input].dtype));
        let whole: Vec<usize> = whole.collect();
        for input in &whole {
            let mut narrow = signed.clone();
            narrow[*input] = Range::Unit;
            ranges.push(narrow);
        }
        if whole.len() > 1 {
            let mut narrow = signed;
            whole.iter().for_each(|input| narrow[*input] = Range::Unit);
            ranges.push(narrow);
        }
        let of_size = |size: &usize| {
            let size = *size;
            ranges.iter().map(move |ranges| Recipe { size, ranges: ranges.clone() })
        };
        sizes.iter().flat_map(of_size).collect()
    }

    /// Try buckets with the first of `recipes` that the model takes. Returns its index.
    fn try_recipes(&mut self, filled: &Lengths, recipes: &[Recipe]) -> Result<usize, Stops> {
        let mut last = None;
        for (index, recipe) in recipes.iter().enumerate() {
            match self.try_one(filled, recipe) {
                Err(Stops::Ends(Ends::Failed(error))) => last = Some(error),
                Err(stops) => return Err(stops),
                Ok(()) => return Ok(index),
            }
        }
        Err(Stops::Ends(Ends::Failed(last.unwrap_or_else(|| ModelError::new("no rows")))))
    }

    /// Try all `buckets` with a recipe. Returns whether the model takes it.
    fn try_all(&mut self, buckets: &[Lengths], recipe: &Recipe) -> Result<bool, Stops> {
        for filled in buckets {
            match self.try_one(filled, recipe) {
                Err(Stops::Ends(Ends::Failed(_))) => return Ok(false),
                tried => tried?,
            }
        }
        Ok(true)
    }

    fn try_one(&mut self, filled: &Lengths, recipe: &Recipe) -> Result<(), Stops> {
        let (mut samples, mut last) = (Vec::with_capacity(ROWS), None);
        for number in 0..ROWS {
            match self.sample(number, filled, recipe) {
                // The model may need longer rows.
                Err(Ends::Failed(error)) if number + 1 < ROWS => last = Some(error),
                sample => samples.push(sample?),
            }
        }
        if let (1, Some(error)) = (samples.len(), last) {
            return Err(Ends::Failed(error).into());
        }
        let forward: Vec<&Sample> = samples.iter().collect();
        let backward: Vec<&Sample> = samples.iter().rev().collect();
        for batch in [&forward[..1], &forward[..], &backward[..]] {
            let inputs = self.inputs(batch, filled)?;
            let outputs = self.trying.run(&inputs)?;
            self.trying.check_rows(&outputs, batch.len())?;
            for (place, sample) in batch.iter().enumerate() {
                self.compare(sample, place, &outputs, filled)?;
            }
        }
        Ok(())
    }

    /// The row of this `number` for the buckets that are `filled`, run alone.
    fn sample(
        &mut self,
        number: usize,
        filled: &Lengths,
        Recipe { size, ranges }: &Recipe,
    ) -> Result<Sample, Ends> {
        let (padding, values) = (self.padding, &mut self.values);
        let lengths = padding.lengths.iter().zip(filled).map(|(length, filled)| {
            let smaller = length.buckets.iter().rev().find(|bucket| *bucket < filled);
            match number {
                0 => 1,
                1 => values.length(1, (filled - 1).max(1)),
                2 => values.length(smaller.map_or(1, |smaller| smaller + 1), *filled),
                _ => *filled,
            }
        });
        let lengths: Lengths = lengths.collect();
        let row = values.row_of(*size, |input, shape| {
            if let Some((length, padded)) = padding.of_input(input) {
                shape[padded.axis] = lengths[length];
            }
            ranges[input]
        });
        let too_large = || Ends::Failed(ModelError::new("a row is too large"));
        let mut row = row.ok_or_else(too_large)?;
        for (input, tensor) in row.iter_mut().enumerate() {
            if let Some((_, padded)) = padding.of_input(input)
                && let Some(real) = self.real(padded, ranges[input], tensor)
            {
                *tensor = real;
            }
        }
        let alone = self.trying.run(&row)?;
        self.trying.check_rows(&alone, 1)?;
        Ok(Sample { row, lengths, alone })
    }

    /// The tensor with real places only. None if all of its places are. An input that takes only 0
    /// and 1 has to say something, so that only its first place is certain to be real.
    fn real(&self, padded: &PaddedInput, range: Range, tensor: &Tensor) -> Option<Tensor> {
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
            let places = if range == Range::Unit { 1 } else { usize::MAX };
            let places = bytes.chunks_exact_mut(size).take(places);
            let filling = places.filter(|place| **place == padded.element[..]);
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
            let output = info.outputs[index].name.to_string();
            let cuts = self.padding.outputs.iter().filter(|cut| cut.output == index);
            for CutOutput { axis, length, .. } in cuts {
                let (axis, padded) = (*axis, filled[*length]);
                let actual = row.shape().get(axis).copied().unwrap_or(1);
                if actual != padded {
                    return Err(PaddingFault::Cut { output, axis, padded, actual }.into());
                }
                row = row.cut(pool, axis, sample.lengths[*length]).unwrap_or(row);
            }
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

impl Recipe {
    /// The same with another range for these inputs. Those that take only 0 and 1 keep theirs.
    fn with(&self, range: Range, changes: impl Fn(usize) -> bool) -> Self {
        let mut other = self.clone();
        for (input, of_input) in other.ranges.iter_mut().enumerate() {
            if *of_input != Range::Unit && changes(input) {
                *of_input = range;
            }
        }
        other
    }
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
