use std::time::Duration;

use gristmill_core::{
    BufferPool, CutSpec, Model, ModelInfo, PadSpec, PaddingSpec, Shape, TensorInfo,
};

use super::*;

/// A model of rows of fractions and their masks. It computes an output row by row: its values, and
/// whether it has one for each place of the row or one in all.
struct OfRows<F>(F);

impl<F: FnMut(&[f32], &[i64]) -> Vec<f32> + Send> Model for OfRows<F> {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let (rows, length) = (inputs[0].rows(), inputs[0].shape()[1]);
        let values = inputs[0].as_f32().unwrap();
        let masks: &[i64] = bytemuck::cast_slice(inputs[1].as_bytes());
        let rows_of = values.chunks(length).zip(masks.chunks(length));
        let output: Vec<f32> =
            rows_of.flat_map(|(values, masks)| (self.0)(values, masks)).collect();
        let buffer = BufferPool::new(0).copy_from(bytemuck::cast_slice(&output));
        let shape = Shape::from_slice(&[rows, output.len() / rows]);
        Ok(vec![Tensor::new(Dtype::Float32, shape, buffer).unwrap()])
    }
}

/// The trial of such a model that may be padded to 4 and 16, whose output is cut back or not.
fn trial(
    compute: impl FnMut(&[f32], &[i64]) -> Vec<f32> + Send,
    is_cut: bool,
    within: Duration,
) -> Result<PaddingProof, PaddingFault> {
    let inputs = [("x", Dtype::Float32, 16), ("attention_mask", Dtype::Int64, 16)];
    trial_of(&mut OfRows(compute), inputs, is_cut, within)
}

/// The trial of a model with two inputs, each with its datatype and its second bucket.
fn trial_of(
    model: &mut dyn Model,
    inputs: [(&str, Dtype, usize); 2],
    is_cut: bool,
    within: Duration,
) -> Result<PaddingProof, PaddingFault> {
    let tensor =
        |name: &str, dtype| TensorInfo { name: name.into(), dtype, dims: vec![None, None] };
    let info = ModelInfo {
        backend: "test",
        inputs: inputs.map(|(name, dtype, _)| tensor(name, dtype)).to_vec(),
        outputs: vec![tensor("y", Dtype::Float32)],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    let pad = |(input, _, bucket): (&str, Dtype, usize)| PadSpec {
        input: input.into(),
        axis: 1,
        value: PadValue::Whole(0),
        buckets: vec![4, bucket],
    };
    let cut = CutSpec { output: "y".into(), axis: 1, input: inputs[0].0.into() };
    let spec = PaddingSpec {
        inputs: inputs.map(pad).to_vec(),
        outputs: if is_cut { vec![cut] } else { Vec::new() },
    };
    let padding = spec.resolve(&info).unwrap();
    let pool = BufferPool::new(0);
    let trial = Trial { model, info: &info, pool: &pool, slack: 1.0, within };
    trial.run_padded(ProviderKind::Cpu, &padding)
}

/// A model of whole numbers in two inputs, which may refuse the places of a row.
struct OfWhole<F>(F);

impl<F: FnMut(&[i64], &[i64]) -> Option<f32> + Send> Model for OfWhole<F> {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let rows = inputs[0].rows();
        let places = |input: &Tensor| -> Vec<Vec<i64>> {
            let places: &[i64] = bytemuck::cast_slice(input.as_bytes());
            places.chunks(input.shape()[1]).map(<[i64]>::to_vec).collect()
        };
        let both = places(&inputs[0]).into_iter().zip(places(&inputs[1]));
        let output: Option<Vec<f32>> = both.map(|(one, other)| (self.0)(&one, &other)).collect();
        let output = output.ok_or_else(|| ModelError::new("out of range"))?;
        let buffer = BufferPool::new(0).copy_from(bytemuck::cast_slice(&output));
        let shape = Shape::from_slice(&[rows, 1]);
        Ok(vec![Tensor::new(Dtype::Float32, shape, buffer).unwrap()])
    }
}

fn trial_of_whole(
    compute: impl FnMut(&[i64], &[i64]) -> Option<f32> + Send,
    second: (&str, usize),
) -> Result<PaddingProof, PaddingFault> {
    let inputs = [("ids", Dtype::Int64, 16), (second.0, Dtype::Int64, second.1)];
    trial_of(&mut OfWhole(compute), inputs, false, ENOUGH)
}

const ENOUGH: Duration = Duration::from_secs(600);

/// The mean of the places that the mask marks.
fn mean(values: &[f32], mask: &[i64]) -> Vec<f32> {
    let marked = values.iter().zip(mask).filter(|(_, mask)| **mask == 1);
    let sum: f32 = marked.map(|(value, _)| value).sum();
    vec![sum / mask.iter().sum::<i64>() as f32]
}

#[test]
fn a_model_that_uses_its_mask_may_be_padded() {
    let proof = trial(mean, false, ENOUGH).unwrap();
    assert_eq!((proof.reason, proof.provider), (None, ProviderKind::Cpu));
    assert!(proof.runs > 14 && proof.influence < 1e-4, "{} {}", proof.runs, proof.influence);
}

#[test]
fn an_output_for_each_place_is_cut_back() {
    let less = |values: &[f32], mask: &[i64]| {
        let mean = mean(values, mask)[0];
        values.iter().map(|value| value - mean).collect()
    };
    assert_eq!(trial(less, true, ENOUGH).unwrap().reason, None);
    let fault = trial(less, false, ENOUGH).unwrap_err();
    let PaddingFault::Shape { output, length, padded, alone, actual } = &fault else {
        panic!("{fault}")
    };
    assert_eq!((&output[..], *padded), ("y", 4));
    assert_eq!((&alone[..], &actual[..]), (&[1, *length][..], &[1, 4][..]));
    assert!(fault.to_string().contains("under cut"), "{fault}");
    let fault = trial(mean, true, ENOUGH).unwrap_err();
    assert!(matches!(fault, PaddingFault::Cut { axis: 1, padded: 4, actual: 1, .. }), "{fault}");
}

#[test]
fn a_claim_that_is_not_true_is_refused_with_the_difference() {
    let of_all =
        |values: &[f32], _: &[i64]| vec![1.0 + values.iter().sum::<f32>() / values.len() as f32];
    let fault = trial(of_all, false, ENOUGH).unwrap_err();
    let PaddingFault::Differs { output, length, padded, influence } = &fault else {
        panic!("{fault}")
    };
    assert_eq!(output, "y");
    assert!(length < padded && *influence > 1e-3, "{fault}");
    assert!(fault.to_string().contains("output \"y\" of a row of length"), "{fault}");
    // Only long rows are wrong.
    let long = |values: &[f32], mask: &[i64]| {
        vec![if values.len() > 4 { values.len() as f32 } else { mean(values, mask)[0] }]
    };
    let fault = trial(long, false, ENOUGH).unwrap_err();
    assert!(matches!(fault, PaddingFault::Differs { padded: 16, .. }), "{fault}");
}

#[test]
fn a_trial_without_time_or_with_a_model_that_fails_is_undecided() {
    let late = trial(mean, false, Duration::ZERO).unwrap().reason.unwrap();
    assert!(late.contains("raise batch_proof_ms"), "{late}");
    let panics = |_: &[f32], _: &[i64]| -> Vec<f32> { panic!("as told") };
    let failed = trial(panics, false, ENOUGH).unwrap().reason.unwrap();
    assert!(failed.contains("it fails on rows that are made up"), "{failed}");
}

/// The place that fills a row up is the largest only beside places below 0.
#[test]
fn a_claim_that_is_false_for_negative_numbers_only_is_refused() {
    let largest = |values: &[f32], _: &[i64]| vec![values.iter().copied().fold(-1e9, f32::max)];
    assert!(matches!(trial(largest, false, ENOUGH), Err(PaddingFault::Differs { .. })));
    let largest = |ids: &[i64], _: &[i64]| Some(*ids.iter().max()? as f32);
    let fault = trial_of_whole(largest, ("attention_mask", 16)).unwrap_err();
    assert!(matches!(fault, PaddingFault::Differs { .. }), "{fault}");
}

/// A table of 100 words and one of two kinds, as a text model has them: other numbers are refused.
#[test]
fn numbers_that_are_looked_up_in_tables_are_tried_as_far_as_the_model_takes_them() {
    let mut seen = std::collections::BTreeSet::new();
    let looked_up = |ids: &[i64], kinds: &[i64]| {
        let is_taken = ids.iter().all(|id| (0..100).contains(id))
            && kinds.iter().all(|kind| (0..2).contains(kind));
        if !is_taken {
            return None;
        }
        let pairs = ids.iter().copied().zip(kinds.iter().copied());
        seen.extend(pairs.clone());
        Some(pairs.map(|(id, kind)| (id * (1 + kind)) as f32).sum::<f32>())
    };
    assert_eq!(trial_of_whole(looked_up, ("kinds", 16)).unwrap().reason, None);
    let varied = seen.iter().filter(|(id, kind)| (1..8).contains(id) && (0..2).contains(kind));
    assert_eq!(varied.count(), 14, "{seen:?}");
}

#[test]
fn a_model_may_refuse_short_rows() {
    let sum = |ids: &[i64], _: &[i64]| (ids.len() > 1).then(|| ids.iter().sum::<i64>() as f32);
    assert_eq!(trial_of_whole(sum, ("attention_mask", 16)).unwrap().reason, None);
}

/// Both inputs have a length of their own, and the second one has larger buckets.
#[test]
fn the_smallest_bucket_of_a_length_is_tried_beside_the_largest_of_another() {
    let odd = |ids: &[i64], others: &[i64]| Some(f32::from(ids.len() == 4 && others.len() == 32));
    let fault = trial_of_whole(odd, ("others", 32)).unwrap_err();
    assert!(matches!(fault, PaddingFault::Differs { .. }), "{fault}");
}
