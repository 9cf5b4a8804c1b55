use prost::Message;

use super::{Bounded, FIELDS_MAX, OTHER_BYTES_MAX, PARAMETERS_MAX};
use crate::grpc::proto::infer_parameter::ParameterChoice;
use crate::grpc::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use crate::grpc::proto::{
    InferParameter, ModelInferRequest, RepositoryIndexRequest, RepositoryModelLoadRequest,
};
use crate::{DIMENSIONS_MAX, TENSORS_MAX, TEXT_BYTES_MAX};

/// A field of this number, length-delimited.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encoding::encode_varint(content.len() as u64, &mut field);
    [field, content.to_vec()].concat()
}

#[track_caller]
fn refused(message: &[u8], expected: &str) {
    let error = ModelInferRequest::check(message).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_message_at_every_bound_passes() {
    let parameter = InferParameter {
        parameter_choice: Some(ParameterChoice::StringParam("v".repeat(TEXT_BYTES_MAX))),
    };
    let input = InferInputTensor {
        name: "n".repeat(TEXT_BYTES_MAX),
        shape: vec![i64::MAX; DIMENSIONS_MAX],
        contents: vec![7; 1 << 20].into(),
        ..Default::default()
    };
    let message = ModelInferRequest {
        model_name: "m".repeat(TEXT_BYTES_MAX),
        parameters: [("p".repeat(TEXT_BYTES_MAX), parameter)].into(),
        inputs: vec![input; TENSORS_MAX.min(16)],
        outputs: vec![InferRequestedOutputTensor::default(); TENSORS_MAX],
        raw_input_contents: vec![vec![7; 300].into(); TENSORS_MAX],
        ..Default::default()
    };
    ModelInferRequest::check(&message.encode_to_vec()).unwrap();
    RepositoryModelLoadRequest::check(&field(2, b"m")).unwrap();
}

#[test]
fn messages_that_would_take_too_much_memory_are_refused() {
    let dimension = [3 << 3, 1];
    for (input, expected) in [
        (field(3, &[1; DIMENSIONS_MAX + 1]), "a shape has more than 32 dimensions"),
        (dimension.repeat(DIMENSIONS_MAX + 1), "a shape has more than 32 dimensions"),
        ([field(3, &[1; DIMENSIONS_MAX]), dimension.to_vec()].concat(), "more than 32"),
        (field(4, &[]).repeat(PARAMETERS_MAX + 1), "more than 1024 parameters"),
        (field(4, &field(1, &[]).repeat(FIELDS_MAX)), "more than 16384 fields"),
        (field(1, &[b'a'; 2000]), "a name, id or parameter has 2000 bytes"),
        (field(9, &[]).repeat(FIELDS_MAX), "more than 16384 fields"),
    ] {
        refused(&field(5, &input), expected);
    }
    refused(&field(5, &[]).repeat(TENSORS_MAX + 1), "more than 1024 inputs");
    refused(&field(6, &[]).repeat(TENSORS_MAX + 1), "more than 1024 outputs");
    refused(&field(7, &[]).repeat(TENSORS_MAX + 1), "more than 1024 raw_input_contents");
    refused(&field(4, &[]).repeat(PARAMETERS_MAX + 1), "more than 1024 parameters");
    refused(&field(3, &[b'a'; 2000]), "a name, id or parameter has 2000 bytes");
    refused(&[12 << 3, 1].repeat(FIELDS_MAX + 1), "more than 16384 fields");
    let long = field(1, &vec![b'a'; OTHER_BYTES_MAX]);
    let error = RepositoryIndexRequest::check(&long).unwrap_err();
    assert!(error.contains("the limit is 1048576"), "{error}");
    // Files may be longer, but nothing else.
    let load = |message: &[u8]| RepositoryModelLoadRequest::check(message);
    let file = |name: &[u8]| field(3, &[field(1, name), field(2, &long)].concat());
    assert_eq!(load(&file(b"file:1/model.onnx")), Ok(()));
    for (message, expected) in [
        (long.clone(), "a name, id or parameter has 1048576 bytes"),
        (file(&[b'a'; 2000]), "a name, id or parameter has 2000 bytes"),
        (field(3, &[]).repeat(PARAMETERS_MAX + 1), "more than 1024 parameters"),
        (field(9, &[]).repeat(FIELDS_MAX + 1), "more than 16384 fields"),
    ] {
        let error = load(&message).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_message_with_an_unreadable_part_is_refused() {
    let (start, end) = (12 << 3 | 3, 12 << 3 | 4);
    let many = field(5, &[]).repeat(TENSORS_MAX + 1);
    // The decoder skips a group, with everything that follows it.
    let behind_a_group = [&[start, end][..], &many].concat();
    ModelInferRequest::decode(&behind_a_group[..]).unwrap();
    refused(&behind_a_group, "cannot be read");
    refused(&field(5, &behind_a_group), "cannot be read");
    refused(&[0x2a, 200], "cannot be read");
    refused(&[0xff; 20], "cannot be read");
}
