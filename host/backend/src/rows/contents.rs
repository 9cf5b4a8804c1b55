//! Constants of the file as facts.

use tract_onnx::pb::TensorProto;
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};

use super::dim::Dim;
use super::fact::{ELEMENTS_MAX, Element, Fact, RANK_MAX};

/// A constant. Its elements are read if they are few.
pub(super) fn tensor(proto: &TensorProto) -> Fact {
    let Some(shape) = shape(&proto.dims) else { return Fact::free(None) };
    let count = Dim::product(&shape).and_then(|count| count.as_known());
    let count = count.and_then(|count| usize::try_from(count).ok());
    let is_here = proto.data_location != Some(DataLocation::External as i32);
    let count = count.filter(|count| *count <= ELEMENTS_MAX && is_here);
    let elements = count.and_then(|count| elements(proto, count));
    Fact { elements, ..Fact::free(Some(shape)) }
}

fn shape(dims: &[i64]) -> Option<Vec<Dim>> {
    if dims.len() > RANK_MAX {
        return None;
    }
    dims.iter().map(|dim| u64::try_from(*dim).ok().map(Dim::known)).collect()
}

/// The elements, if there are `count` of them and their type is one that sizes have.
fn elements(proto: &TensorProto, count: usize) -> Option<Vec<Element>> {
    let raw = &proto.raw_data[..];
    let few = count + 1;
    let elements: Vec<Element> = match proto.data_type() {
        DataType::Int64 if raw.is_empty() => {
            proto.int64_data.iter().take(few).copied().map(Element::Int).collect()
        }
        DataType::Int64 => read(raw, few, |bytes| Element::Int(i64::from_le_bytes(bytes))),
        DataType::Int32 if raw.is_empty() => {
            let values = proto.int32_data.iter().take(few);
            values.map(|value| Element::Int((*value).into())).collect()
        }
        DataType::Int32 => read(raw, few, |bytes| Element::Int(i32::from_le_bytes(bytes).into())),
        DataType::Bool if raw.is_empty() => {
            let values = proto.int32_data.iter().take(few);
            values.map(|value| Element::Int((*value != 0).into())).collect()
        }
        DataType::Bool => read(raw, few, |[byte]| Element::Int((byte != 0).into())),
        DataType::Float if raw.is_empty() => {
            let values = proto.float_data.iter().take(few);
            values.map(|value| Element::Real((*value).into())).collect()
        }
        DataType::Float => read(raw, few, |bytes| Element::Real(f32::from_le_bytes(bytes).into())),
        DataType::Double if raw.is_empty() => {
            proto.double_data.iter().take(few).copied().map(Element::Real).collect()
        }
        DataType::Double => read(raw, few, |bytes| Element::Real(f64::from_le_bytes(bytes))),
        _ => return None,
    };
    (elements.len() == count).then_some(elements)
}

fn read<const N: usize>(raw: &[u8], few: usize, of: fn([u8; N]) -> Element) -> Vec<Element> {
    raw.as_chunks().0.iter().take(few).map(|bytes| of(*bytes)).collect()
}
