//! The named inputs and outputs of a pipeline over the Open Inference Protocol: how rows of tensors
//! become requests for its plugins, and how their JSON answers become tensors.

use gristmill_core::TensorInfo;
use gristmill_sandbox::Pointers;

/// The named inputs and outputs of a pipeline. The first dimension of each is rows; the others have
/// fixed sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The inputs.
    pub inputs: Inputs,
    /// The outputs.
    pub outputs: Vec<NamedOutput>,
    /// The places of their values in an answer, in their order.
    pub pointers: Pointers,
}

/// The inputs of a pipeline. A row of them is a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// One text, which is the body.
    Body(BodyInput),
    /// Values of a JSON object, which is the body.
    Members(Vec<MemberInput>),
}

/// An input that is the body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyInput {
    /// Its name, datatype and shape: BYTES of `[-1, 1]`.
    pub info: TensorInfo,
    /// Whether clients send it in base64.
    pub is_base64: bool,
    /// The media type of the body, unless the client names one.
    pub content_type: Option<String>,
}

/// An input that is a value of a JSON object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInput {
    /// Its name, datatype and shape.
    pub info: TensorInfo,
    /// The key of the value.
    pub key: String,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOutput {
    /// Its name, datatype and shape.
    pub info: TensorInfo,
    /// The place of its value in the JSON answer (RFC 6901), for messages.
    pub pointer: String,
}

impl Signature {
    /// Maximum rows of a request.
    pub const ROWS_MAX: usize = 64;

    /// The inputs' names, datatypes and shapes.
    pub fn inputs(&self) -> Vec<&TensorInfo> {
        match &self.inputs {
            Inputs::Body(input) => vec![&input.info],
            Inputs::Members(inputs) => inputs.iter().map(|input| &input.info).collect(),
        }
    }
}

/// The sizes of one row of a tensor. A row of `[1]` has none: it is one value, not a list.
pub fn row_dims(info: &TensorInfo) -> Vec<usize> {
    let dims: Vec<_> = info.dims.iter().skip(1).filter_map(|size| *size).collect();
    if dims == [1] { Vec::new() } else { dims }
}
