use super::*;

fn bytes(shape: &[u32], values: &[u8]) -> Tensor {
    Tensor::create(Dtype::Uint8, shape, values).unwrap()
}

fn floats(shape: &[usize], values: &[f32]) -> Tensor {
    Tensor::from_slice(shape, values).unwrap()
}

fn made(tensor: Result<Tensor, TensorError>) -> (Vec<u32>, Vec<u8>) {
    let tensor = tensor.unwrap();
    (tensor.shape(), tensor.data())
}

fn refused(tensor: Result<Tensor, TensorError>) -> String {
    match tensor.unwrap_err() {
        TensorError::InvalidArgument(why)
        | TensorError::InvalidElement(why)
        | TensorError::TooLarge(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn tensors_are_joined_along_any_axis() {
    let (a, b) = (bytes(&[2, 2], &[1, 2, 3, 4]), bytes(&[2, 1], &[5, 6]));
    assert_eq!(made(Tensor::concat(&[&a, &b], 1)), (vec![2, 3], vec![1, 2, 5, 3, 4, 6]));
    let (a, b) = (bytes(&[2], &[1, 2]), bytes(&[2], &[3, 4]));
    assert_eq!(made(Tensor::stack(&[&a, &b], 0)), (vec![2, 2], vec![1, 2, 3, 4]));
    assert_eq!(made(Tensor::stack(&[&a, &b], 1)), (vec![2, 2], vec![1, 3, 2, 4]));
    let (a, b) = (bytes(&[0, 2], &[]), bytes(&[0, 3], &[]));
    assert_eq!(made(Tensor::concat(&[&a, &b], 1)), (vec![0, 5], vec![]));
}

#[test]
fn tensors_that_do_not_fit_are_refused_by_name() {
    let (a, b) = (bytes(&[2, 2], &[0; 4]), bytes(&[1, 2], &[0; 2]));
    let unlike = "tensor 1 has shape [1, 2], which does not fit [2, 2] of tensor 0";
    assert_eq!(refused(Tensor::concat(&[&a, &b], 1)), unlike);
    assert_eq!(refused(Tensor::stack(&[&a, &b], 0)), unlike);
    assert!(refused(Tensor::concat(&[&a, &b], 2)).starts_with("axis is 2"));
    assert!(refused(Tensor::concat(&[], 0)).contains("at least one"));
    assert!(refused(a.slice(1, 2, 4)).contains("2 to 4"));
    let (c, d) = (floats(&[1], &[1.0]), bytes(&[1], &[1]));
    assert_eq!(refused(Tensor::stack(&[&c, &d], 0)), "tensor 1 is Uint8, but tensor 0 is Float32");
    let texts = Tensor::from_strings(&[1, 1], &["a"]).unwrap();
    assert!(refused(Tensor::concat(&[&texts, &texts], 1)).contains("strings"));
}

#[test]
fn rows_of_strings_are_joined_and_taken() {
    let (a, b) = (
        Tensor::from_strings(&[1, 2], &["one", ""]).unwrap(),
        Tensor::from_strings(&[2, 2], &["three", "4", "fünf", "6"]).unwrap(),
    );
    let both = Tensor::concat(&[&a, &b], 0).unwrap();
    let rows = both.slice(0, 1, 3).unwrap();
    assert_eq!(rows.shape(), [2, 2]);
    assert_eq!(rows.strings().unwrap(), ["three", "4", "fünf", "6"]);
}

#[test]
fn casts_saturate_and_make_zero_of_nan() {
    let tensor = floats(&[4], &[-1.9, 300.0, f32::NAN, 2.9]);
    assert_eq!(tensor.cast(Dtype::Uint8).unwrap().data(), [0, 255, 0, 2]);
    assert_eq!(tensor.cast(Dtype::Bool).unwrap().data(), [1, 1, 1, 1]);
    let most = Tensor::from_slice(&[1], &[u64::MAX]).unwrap().cast(Dtype::Int64).unwrap();
    assert_eq!(most.view::<i64>().unwrap().as_slice(), [i64::MAX]);
    let half = floats(&[1], &[0.5]).cast(Dtype::Float16).unwrap();
    assert_eq!(half.data(), 0x3800_u16.to_le_bytes());
    assert_eq!(half.cast(Dtype::Float32).unwrap().data(), 0.5_f32.to_le_bytes());
    let texts = Tensor::from_strings(&[1], &["1"]).unwrap();
    assert_eq!(refused(texts.cast(Dtype::Int8)), "String cannot be cast to Int8");
}

#[test]
fn elements_that_a_dtype_does_not_have_are_refused() {
    assert_eq!(
        refused(Tensor::create(Dtype::Bool, &[2], &[1, 2])),
        "element 1 of a bool tensor is 2"
    );
    let cut = Tensor::create(Dtype::String, &[1], b"\x05\0\0\0a");
    assert_eq!(refused(cut), "element 0 of a string tensor is cut short");
    let latin1 = Tensor::create(Dtype::String, &[1], b"\x01\0\0\0\xff");
    assert_eq!(refused(latin1), "element 0 of a string tensor is not UTF-8");
    let longer = Tensor::create(Dtype::String, &[1], b"\x01\0\0\0a\0").unwrap_err();
    assert!(matches!(longer, TensorError::LengthMismatch(_)), "{longer:?}");
    assert!(refused(Tensor::create(Dtype::Uint8, &[u32::MAX; 3], &[])).contains("overflows"));
    assert!(refused(Tensor::create(Dtype::Uint8, &[1; 33], &[0])).contains("33 dimensions"));
}

#[test]
fn rows_are_scored() {
    let tensor = floats(&[2, 4], &[1.0, 3.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
    let pairs = |scored: Vec<Scored>| -> Vec<(u32, f32)> {
        scored.iter().map(|scored| (scored.index, scored.value)).collect()
    };
    assert_eq!(pairs(tensor.argmax()), [(1, 3.0), (0, 0.0)]);
    assert_eq!(pairs(tensor.top_k(0, 3)), [(1, 3.0), (3, 3.0), (2, 2.0)]);
    assert!(tensor.top_k(2, 3).is_empty());
    let softmax = tensor.softmax().unwrap();
    assert_eq!(softmax.view::<f32>().unwrap().as_slice()[4..], [0.25; 4]);
    assert!(bytes(&[1], &[1]).softmax().is_none());
}

#[test]
fn a_read_ends_where_the_bytes_end() {
    let tensor = bytes(&[4], &[1, 2, 3, 4]);
    assert_eq!(tensor.read(1, 2), [2, 3]);
    assert_eq!(tensor.read(3, u64::MAX), [4]);
    assert!(tensor.read(5, 1).is_empty());
}
