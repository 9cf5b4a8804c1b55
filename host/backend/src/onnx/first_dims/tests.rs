use prost::Message;
use tract_onnx::pb::tensor_shape_proto::Dimension;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Size;
use tract_onnx::pb::type_proto::{Tensor, Value};
use tract_onnx::pb::{GraphProto, ModelProto, TensorShapeProto, TypeProto, ValueInfoProto};

use super::*;

/// An input or output with these dimensions; `None` has no shape.
fn value(name: &str, dims: Option<&[&str]>) -> ValueInfoProto {
    let size = |text: &&str| match text.parse() {
        Ok(size) => Some(Size::DimValue(size)),
        Err(_) if text.is_empty() => None,
        Err(_) => Some(Size::DimParam((*text).into())),
    };
    let dim = |text| Dimension { value: size(text), ..Dimension::default() };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let kind = Value::TensorType(Tensor { elem_type: 1, shape });
    let kind = TypeProto { value: Some(kind), ..TypeProto::default() };
    ValueInfoProto { name: name.into(), r#type: Some(kind), ..ValueInfoProto::default() }
}

fn model(input: Option<&[&str]>, outputs: &[Option<&[&str]>]) -> ModelProto {
    let output = outputs.iter().map(|dims| value("y", *dims)).collect();
    let graph = GraphProto { input: vec![value("x", input)], output, ..GraphProto::default() };
    let doc_string = "after the graph".into();
    ModelProto { graph: Some(graph), doc_string, ..ModelProto::default() }
}

#[test]
fn a_fixed_output_beside_an_open_input_is_found() {
    let is_found = |input, outputs: &[Option<&[&str]>]| {
        are_fixed(&model(input, outputs).encode_to_vec()).unwrap()
    };
    assert!(is_found(Some(&["", "4"]), &[Some(&["N", "3"]), Some(&["1"])]));
    assert!(is_found(Some(&["N", "4"]), &[Some(&["8", "3"])]));
    for (input, output) in [
        (Some(&["1", "4"][..]), Some(&["1"][..])),
        (Some(&["N", "4"]), Some(&["N", "1"])),
        (Some(&["N"]), Some(&[])),
        (Some(&["N"]), None),
        (None, Some(&["1"])),
    ] {
        assert!(!is_found(input, &[output]), "{input:?} {output:?}");
    }
    assert!(are_fixed(b"no model").is_err());
}

#[test]
fn only_the_first_dimensions_of_outputs_are_opened() {
    let rows = Some(&["N", "4"][..]);
    let fixed = model(rows, &[Some(&["1"]), Some(&["2", "3"]), Some(&["N", "1"]), None, Some(&[])]);
    let open = model(rows, &[Some(&[""]), Some(&["", "3"]), Some(&["N", "1"]), None, Some(&[])]);
    let changed = opened(&fixed.encode_to_vec()).unwrap();
    assert_eq!(ModelProto::decode(&changed[..]).unwrap(), open);
    assert_eq!(opened(&open.encode_to_vec()).unwrap(), open.encode_to_vec());
    assert!(opened(b"no model").is_err());
}
