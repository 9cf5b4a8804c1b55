//! The body of an inference request with binary tensors, in the form of the Open Inference
//! Protocol's binary extension: a JSON header, and the tensors' bytes after it.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The HTTP header with the length of the JSON at the beginning of a body, in bytes.
pub const HEADER_LENGTH: &str = "inference-header-content-length";

/// One input tensor.
#[derive(Clone, Copy, Debug)]
pub struct BinaryTensor<'a> {
    /// The input's name.
    pub name: &'a str,
    /// The protocol's name of its datatype, `FP32` for example.
    pub datatype: &'a str,
    /// Its shape.
    pub shape: &'a [usize],
    /// The bytes of its elements. A text comes after its length, in four bytes.
    pub data: &'a [u8],
}

/// A body with binary tensors.
#[derive(Clone, Debug)]
pub struct InferBody {
    /// The value of [`HEADER_LENGTH`].
    pub header_length: String,
    /// The JSON and the tensors' bytes.
    pub bytes: Bytes,
}

/// The body with these inputs. `options` is an object with the other members of the JSON, such as
/// `parameters`. A value of another kind is ignored.
pub fn infer_body(inputs: &[BinaryTensor<'_>], options: Value) -> InferBody {
    let described = |input: &BinaryTensor<'_>| {
        json!({
            "name": input.name,
            "datatype": input.datatype,
            "shape": input.shape,
            "parameters": { "binary_data_size": input.data.len() },
        })
    };
    let mut header = match options {
        Value::Object(options) => options,
        _ => Map::new(),
    };
    header.insert("inputs".into(), inputs.iter().map(described).collect());
    let header = Value::Object(header).to_string();
    let data = inputs.iter().map(|input| input.data);
    let bytes: Vec<&[u8]> = std::iter::once(header.as_bytes()).chain(data).collect();
    InferBody { header_length: header.len().to_string(), bytes: bytes.concat().into() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{BinaryTensor, infer_body};

    #[test]
    fn the_header_is_as_long_as_it_says_and_the_data_follow_in_order() {
        let tensor = |name, data| BinaryTensor { name, datatype: "UINT8", shape: &[1, 2], data };
        let body = infer_body(&[tensor("a", b"12"), tensor("b", b"34")], json!({ "id": "i" }));
        let (header, data) = body.bytes.split_at(body.header_length.parse().unwrap());
        assert_eq!(data, b"1234");
        let header: Value = serde_json::from_slice(header).unwrap();
        assert_eq!(header["id"], "i");
        assert_eq!(header["inputs"][1]["name"], "b");
        assert_eq!(header["inputs"][1]["parameters"]["binary_data_size"], 2);
    }
}
