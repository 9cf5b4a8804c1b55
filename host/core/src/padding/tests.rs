use super::*;
use crate::model::EqualDims;
use crate::pool::BufferPool;
use crate::tensor::Tensor;

fn tensor(name: &str, dtype: Dtype, dims: &[Option<usize>]) -> TensorInfo {
    TensorInfo { name: name.into(), dtype, dims: dims.to_vec() }
}

/// A model of texts: its tokens and their mask have one length, and `boxes` has four numbers each.
fn info() -> ModelInfo {
    let open = [None, None];
    ModelInfo {
        backend: "test",
        inputs: vec![
            tensor("ids", Dtype::Int64, &open),
            tensor("mask", Dtype::Int64, &open),
            tensor("boxes", Dtype::Float32, &[None, None, Some(4)]),
            tensor("texts", Dtype::String, &open),
        ],
        outputs: vec![tensor("tokens", Dtype::Float32, &[None, None, Some(8)])],
        forms_batches: true,
        optional: Vec::new(),
        equal_dims: vec![EqualDims { symbol: "sequence".into(), places: vec![(0, 1), (1, 1)] }],
    }
}

fn pad(input: &str, axis: usize, value: PadValue, buckets: &[usize]) -> PadSpec {
    PadSpec { input: input.into(), axis, value, buckets: buckets.to_vec() }
}

const ZERO: PadValue = PadValue::Whole(0);

fn spec(inputs: Vec<PadSpec>, cut: &[(&str, usize, &str)]) -> PaddingSpec {
    let cut = cut.iter().map(|(output, axis, input)| CutSpec {
        output: (*output).into(),
        axis: *axis,
        input: (*input).into(),
    });
    PaddingSpec { inputs, outputs: cut.collect() }
}

fn both(buckets: &[usize]) -> Vec<PadSpec> {
    vec![pad("ids", 1, ZERO, buckets), pad("mask", 1, ZERO, buckets)]
}

#[test]
fn inputs_with_the_same_buckets_have_one_length() {
    let mut inputs = both(&[16, 32]);
    inputs.push(pad("boxes", 1, PadValue::of(-0.5).unwrap(), &[4]));
    let padding = spec(inputs, &[("tokens", 1, "mask")]).resolve(&info()).unwrap();
    assert_eq!(padding.lengths.len(), 2);
    assert_eq!(padding.lengths[0].inputs.len(), 2);
    assert_eq!(padding.outputs, [CutOutput { output: 0, axis: 1, length: 0 }]);
    assert_eq!(padding.of_input(2).unwrap().0, 1);
    assert!(padding.of_input(3).is_none());
    assert_eq!(padding.padded(&[3, 4]).unwrap()[..], [16, 4]);
    assert_eq!(padding.buckets_of(&[17, 1]).unwrap()[..], [1, 0]);
    assert!(padding.padded(&[33, 1]).is_none() && padding.padded(&[3, 5]).is_none());
}

#[test]
fn a_request_is_padded_only_if_its_inputs_agree() {
    let padding = spec(both(&[16]), &[]).resolve(&info()).unwrap();
    let input = |size: usize| {
        let zeros = BufferPool::new(0).copy_from(&vec![0; 8 * size]);
        let tensor = Tensor::new(Dtype::Int64, [1, size].as_slice().into(), zeros).unwrap();
        NamedTensor { name: "x".into(), tensor }
    };
    assert_eq!(padding.lengths_of(&[input(3), input(3)]).unwrap()[..], [3]);
    assert!(padding.lengths_of(&[input(3), input(4)]).is_none());
    assert!(Padding::default().lengths_of(&[input(3)]).is_none());
}

#[track_caller]
fn assert_refused(spec: &PaddingSpec, named: &[&str]) {
    let text = spec.resolve(&info()).unwrap_err().to_string();
    assert!(named.iter().all(|named| text.contains(named)), "{text}");
}

#[test]
fn what_the_model_does_not_have_is_named() {
    let one = |input: &str, axis, value| spec(vec![pad(input, axis, value, &[16])], &[]);
    assert_refused(&one("id", 1, ZERO), &["pad names \"id\"", "inputs are [\"ids\", \"mask\""]);
    assert_refused(&one("ids", 2, ZERO), &["pad.ids.axis is 2", "[-1, -1]"]);
    assert_refused(&one("ids", 0, ZERO), &["pad.ids.axis is 0", "after the first"]);
    assert_refused(&one("boxes", 2, ZERO), &["pad.boxes.axis is 2", "always 4"]);
    assert_refused(&one("texts", 1, ZERO), &["pad.texts", "cannot be padded"]);
    let half = PadValue::of(0.5).unwrap();
    assert_refused(&one("ids", 1, half), &["pad.ids.value is 0.5", "INT64"]);
    assert_refused(&one("ids", 1, ZERO), &["pad.ids", "\"sequence\"", "name \"mask\" under pad"]);
    let mut square = info();
    square.inputs[1].dims.push(None);
    square.equal_dims[0].places.push((1, 2));
    for spec in [one("ids", 1, ZERO), spec(both(&[16]), &[])] {
        let text = spec.resolve(&square).unwrap_err().to_string();
        assert!(
            text.contains("dimensions 1 and 2 of input \"mask\"") && !text.contains("name \""),
            "{text}"
        );
    }
    let unlike = vec![pad("ids", 1, ZERO, &[16]), pad("mask", 1, ZERO, &[32])];
    assert_refused(&spec(unlike, &[]), &["pad.mask.buckets differ from pad.ids.buckets"]);
    let cut = |cut| spec(both(&[16]), &[cut]);
    assert_refused(&cut(("pooled", 1, "ids")), &["cut names \"pooled\"", "[\"tokens\"]"]);
    assert_refused(&cut(("tokens", 2, "ids")), &["cut.tokens.axis is 2", "always 8"]);
    assert_refused(&cut(("tokens", 1, "boxes")), &["cut.tokens.as is \"boxes\"", "under pad"]);
}

#[test]
fn a_value_is_an_element_of_the_types_that_have_it() {
    let element = |number: f64, dtype| PadValue::of(number).unwrap().element(dtype);
    assert_eq!(element(-1.0, Dtype::Int16).unwrap()[..], [255, 255]);
    assert_eq!(element(1.0, Dtype::Bool).unwrap()[..], [1]);
    assert_eq!(element(0.5, Dtype::Float32).unwrap()[..], 0.5_f32.to_le_bytes());
    assert_eq!(element(1.0, Dtype::Float16).unwrap()[..], [0, 60]);
    assert_eq!(PadValue::Whole(u64::MAX.into()).element(Dtype::Uint64).unwrap()[..], [255; 8]);
    assert_eq!(element(1e18, Dtype::Int64).unwrap()[..], (10_i64.pow(18)).to_le_bytes());
    for (number, dtype) in [
        (-1.0, Dtype::Uint8),
        (256.0, Dtype::Uint8),
        (2.0, Dtype::Bool),
        (0.5, Dtype::Int64),
        (1e19, Dtype::Int64),
        (1e300, Dtype::Float32),
        (1e6, Dtype::Float16),
        (0.0, Dtype::String),
    ] {
        assert!(element(number, dtype).is_none(), "{number} {dtype}");
    }
    assert!(PadValue::of(f64::NAN).is_none());
    assert_eq!(PadValue::of(-1.5).unwrap().to_string(), "-1.5");
}
