//! Models written as text, for tests.
//!
//! Statements end with a line or `;`. `in x [N,3,?]` is an input, `w f [3,4]` a constant of numbers
//! without contents, `k i {1,-1}` a list and `k i 1` a scalar of whole numbers, `out y` an output,
//! `opset 11` the version (18 if there is none), and `y, z = Op(x, , w) axis=0 perm=[1,0] mode="m"`
//! a node.

use tract_onnx::pb::attribute_proto::AttributeType;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension};
use tract_onnx::pb::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto, type_proto,
};

use super::super::obstacle::Obstacle;

pub(super) fn verdict(text: &str) -> Result<(), Obstacle> {
    super::analyse(&model(text))
}

pub(super) fn model(text: &str) -> ModelProto {
    let mut graph = GraphProto::default();
    let mut version = 18;
    let statements = text.split(['\n', ';']).map(str::trim).filter(|text| !text.is_empty());
    for statement in statements {
        match statement.split_once(' ').unwrap() {
            ("opset", number) => version = number.trim().parse().unwrap(),
            ("in", input) => graph.input.push(value(input)),
            ("out", name) => {
                graph.output.push(ValueInfoProto { name: name.trim().into(), ..Default::default() })
            }
            (name, rest) if !statement.contains('=') => {
                graph.initializer.push(constant(name, rest))
            }
            _ => graph.node.push(node(statement)),
        }
    }
    let opset_import = ["", "ai.onnx.ml", "com.microsoft"].map(|domain| {
        let version = if domain.is_empty() { version } else { 1 };
        OperatorSetIdProto { domain: domain.into(), version }
    });
    ModelProto { graph: Some(graph), opset_import: opset_import.into(), ..Default::default() }
}

fn items(list: &str) -> Vec<&str> {
    let list = list.trim().trim_matches(['[', ']', '{', '}']);
    if list.is_empty() { Vec::new() } else { list.split(',').map(str::trim).collect() }
}

fn value(input: &str) -> ValueInfoProto {
    let (name, dims) = input.trim().split_once(' ').unwrap();
    let dim = |size: &str| Dimension {
        value: match size.parse() {
            Ok(size) => Some(dimension::Value::DimValue(size)),
            Err(_) if size == "?" => None,
            Err(_) => Some(dimension::Value::DimParam(size.into())),
        },
        ..Default::default()
    };
    let shape = TensorShapeProto { dim: items(dims).into_iter().map(dim).collect() };
    let tensor = type_proto::Tensor { elem_type: 1, shape: Some(shape) };
    let value = Some(type_proto::Value::TensorType(tensor));
    let r#type = Some(TypeProto { value, ..Default::default() });
    ValueInfoProto { name: name.into(), r#type, ..Default::default() }
}

fn constant(name: &str, rest: &str) -> TensorProto {
    let (kind, contents) = rest.split_once(' ').unwrap();
    let numbers: Vec<i64> = items(contents).iter().map(|item| item.parse().unwrap()).collect();
    let mut tensor = TensorProto { name: name.into(), ..Default::default() };
    if kind == "f" {
        tensor.dims = numbers;
        tensor.data_type = DataType::Float as i32;
    } else {
        tensor.dims.extend(contents.starts_with('{').then_some(numbers.len() as i64));
        tensor.int64_data = numbers;
        tensor.data_type = DataType::Int64 as i32;
    }
    tensor
}

fn node(statement: &str) -> NodeProto {
    let (outputs, call) = statement.split_once('=').unwrap();
    let (operator, rest) = call.split_once('(').unwrap();
    let (inputs, attributes) = rest.split_once(')').unwrap();
    let names = |list| items(list).into_iter().map(str::to_owned).collect();
    let (domain, operator) = operator.trim().rsplit_once('.').unwrap_or(("", operator.trim()));
    NodeProto {
        output: names(outputs),
        input: names(inputs),
        op_type: operator.into(),
        domain: domain.into(),
        attribute: attributes.split_whitespace().map(attribute).collect(),
        ..Default::default()
    }
}

fn attribute(text: &str) -> AttributeProto {
    let (name, value) = text.split_once('=').unwrap();
    let mut attribute = AttributeProto { name: name.into(), ..Default::default() };
    if let Some(text) = value.strip_prefix('"') {
        attribute.s = text.trim_end_matches('"').into();
        attribute.set_type(AttributeType::String);
    } else if value.starts_with('[') {
        attribute.ints = items(value).iter().map(|item| item.parse().unwrap()).collect();
        attribute.set_type(AttributeType::Ints);
    } else {
        attribute.i = value.parse().unwrap();
        attribute.set_type(AttributeType::Int);
    }
    attribute
}
