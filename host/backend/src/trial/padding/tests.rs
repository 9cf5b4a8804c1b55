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
    let tensor =
        |name: &str, dtype| TensorInfo { name: name.into(), dtype, dims: vec![None, None] };
    let info = ModelInfo {
        backend: "test",
        inputs: vec![tensor("x", Dtype::Float32), tensor("attention_mask", Dtype::Int64)],
        outputs: vec![tensor("y", Dtype::Float32)],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: Vec::new(),
    };
    let pad = |input: &str| PadSpec {
        input: input.into(),
        axis: 1,
        value: PadValue::Whole(0),
        buckets: vec![4, 16],
    };
    let cut = CutSpec { output: "y".into(), axis: 1, input: "x".into() };
    let spec = PaddingSpec {
        inputs: vec![pad("x"), pad("attention_mask")],
        outputs: if is_cut { vec![cut] } else { Vec::new() },
    };
    let padding = spec.resolve(&info).unwrap();
    let (mut model, pool) = (OfRows(compute), BufferPool::new(0));
    let trial = Trial { model: &mut model, info: &info, pool: &pool, slack: 1.0, within };
    trial.run_padded(ProviderKind::Cpu, &padding)
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
    assert_eq!((proof.undecided, proof.provider), (None, ProviderKind::Cpu));
    assert!(proof.runs > 14 && proof.influence < 1e-4, "{} {}", proof.runs, proof.influence);
}

#[test]
fn an_output_for_each_place_is_cut_back() {
    let less = |values: &[f32], mask: &[i64]| {
        let mean = mean(values, mask)[0];
        values.iter().map(|value| value - mean).collect()
    };
    assert_eq!(trial(less, true, ENOUGH).unwrap().undecided, None);
    let fault = trial(less, false, ENOUGH).unwrap_err();
    let PaddingFault::Shape { output, length, padded, alone, actual } = &fault else {
        panic!("{fault}")
    };
    assert_eq!((&output[..], *padded), ("y", 4));
    assert_eq!((&alone[..], &actual[..]), (&[1, *length][..], &[1, 4][..]));
    assert!(fault.to_string().contains("under cut"), "{fault}");
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
    let late = trial(mean, false, Duration::ZERO).unwrap().undecided.unwrap();
    assert!(late.contains("raise batch_proof_ms"), "{late}");
    let panics = |_: &[f32], _: &[i64]| -> Vec<f32> { panic!("as told") };
    let failed = trial(panics, false, ENOUGH).unwrap().undecided.unwrap();
    assert!(failed.contains("it fails on rows that are made up"), "{failed}");
}
