use crate::testing::outputs;
use crate::{Dtype, Failure, Tensor, TensorError};

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

fn internal(failure: Option<Failure>) -> String {
    match failure {
        Some(Failure::Internal(text)) => text,
        other => panic!("{other:?} is not internal"),
    }
}

#[test]
fn every_number_type_goes_there_and_back() {
    macro_rules! check {
        ($($ty:ty: $values:expr),* $(,)?) => {$(
            let values: [$ty; 3] = $values;
            let tensor = Tensor::from_slice(&[3, 1], &values).unwrap();
            let view = tensor.view::<$ty>().unwrap();
            assert_eq!(view.as_slice(), values);
            assert_eq!(view.shape(), [3, 1]);
        )*};
    }
    check! {
        bool: [true, false, true],
        u8: [0, 1, u8::MAX],
        i8: [i8::MIN, 0, i8::MAX],
        u16: [0, 1, u16::MAX],
        i16: [i16::MIN, 0, i16::MAX],
        u32: [0, 1, u32::MAX],
        i32: [i32::MIN, 0, i32::MAX],
        u64: [0, 1, u64::MAX],
        i64: [i64::MIN, 0, i64::MAX],
        f32: [f32::MIN, 0.5, f32::INFINITY],
        f64: [f64::MIN, 0.5, f64::INFINITY],
    }
}

#[cfg(feature = "half")]
#[test]
fn half_precision_goes_there_and_back() {
    let values = [half::f16::from_f32(0.5), half::f16::MAX];
    let tensor = Tensor::from_slice(&[2], &values).unwrap();
    assert_eq!(tensor.dtype(), Dtype::Float16);
    assert_eq!(tensor.view::<half::f16>().unwrap().as_slice(), values);
    let cast = tensor.cast_to::<half::bf16>().unwrap();
    assert_eq!(cast.view::<half::bf16>().unwrap().as_slice()[0].to_f32(), 0.5);
}

#[test]
fn strings_go_there_and_back() {
    let tensor = Tensor::from_strings(&[3, 1], &["one", "", "drei ä"]).unwrap();
    assert_eq!(tensor.dtype(), Dtype::String);
    assert_eq!(tensor.strings().unwrap(), ["one", "", "drei ä"]);
    assert_eq!(tensor.range(0, 2..).unwrap().strings().unwrap(), ["drei ä"]);
    let other = floats(&[1], &[1.0]);
    assert_eq!(internal(other.strings().err()), "tensor is Float32, wanted String");
    assert!(Tensor::from_strings(&[3], &["one"]).is_err());
}

#[test]
fn another_length_is_refused_with_both_lengths() {
    let refused = Tensor::from_slice(&[2, 2], &[1.0_f32; 3]).err().unwrap();
    let TensorError::LengthMismatch(lengths) = &refused else { panic!("{refused:?}") };
    assert_eq!((lengths.expected, lengths.actual), (16, 12));
    let text = internal(Some(refused.into()));
    assert_eq!(text, "tensor data is 12 bytes long, but dtype and shape need 16");
}

#[test]
fn a_view_of_another_type_is_refused() {
    let tensor = floats(&[1], &[1.0]);
    assert_eq!(internal(tensor.view::<i64>().err()), "tensor is Float32, wanted Int64");
}

#[test]
fn rows_are_slices_of_all_other_dimensions() {
    let view = floats(&[2, 1, 2], &[1., 2., 3., 4.]).view::<f32>().unwrap();
    assert_eq!(view.rows().collect::<Vec<_>>(), [[1., 2.], [3., 4.]]);
}

#[test]
fn a_range_along_an_axis_is_taken() {
    let tensor = floats(&[2, 3], &[1., 2., 3., 4., 5., 6.]);
    let taken = |part: Result<Tensor, TensorError>| {
        let part = part.unwrap();
        (part.dims(), part.view::<f32>().unwrap().as_slice().to_vec())
    };
    assert_eq!(taken(tensor.range(1, 1..)), (vec![2, 2], vec![2., 3., 5., 6.]));
    assert_eq!(taken(tensor.range(1, ..=0)), (vec![2, 1], vec![1., 4.]));
    assert_eq!(taken(tensor.range(0, 1..2)), (vec![1, 3], vec![4., 5., 6.]));
    assert_eq!(taken(tensor.range(0, ..)).0, [2, 3]);
    for (axis, range) in [(2, 0..1), (0, 1..3), (usize::MAX, 0..1)] {
        let refused = tensor.range(axis, range.clone()).err();
        assert!(matches!(refused, Some(TensorError::InvalidArgument(_))), "{axis} {range:?}");
    }
}

#[test]
fn outputs_are_listed_in_their_order_and_found_by_name() {
    let outputs =
        outputs([("scores", floats(&[1, 2], &[0.1, 0.9])), ("boxes", floats(&[1, 4], &[0.; 4]))]);
    assert_eq!(outputs.names().collect::<Vec<_>>(), ["scores", "boxes"]);
    let dims: Vec<_> = outputs.iter().map(|(name, tensor)| (name, tensor.dims())).collect();
    assert_eq!(dims, [("scores", vec![1, 2]), ("boxes", vec![1, 4])]);
    let scores = outputs.view::<f32>("scores", &[Some(1), None]).unwrap();
    assert_eq!(scores.as_slice(), [0.1, 0.9]);
    assert_eq!(
        internal(outputs.get("labels").err()),
        r#"the model has no output "labels", it has ["scores", "boxes"]"#
    );
    let shape = internal(outputs.view::<f32>("boxes", &[None, Some(5)]).err());
    assert_eq!(shape, r#"output "boxes" has shape [1, 4], wanted [None, Some(5)]"#);
}
