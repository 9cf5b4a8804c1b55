//! The key `oip` of a pipeline's document: named inputs and outputs over the Open Inference
//! Protocol, so that clients of another server can stay as they are.
//!
//! Refuses to know the tensors of a request: [`Signature`] is what the data plane gets.

use std::collections::BTreeSet;

use gristmill_core::{Dtype, TensorInfo};
use gristmill_sandbox::{POINTER_NAMES_MAX, Pointers};
use gristmill_snapshot::{BodyInput, Inputs, MemberInput, NamedOutput, Signature};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::release::document::{Document, whole_of};
use crate::release::expectation::is_pointer;

/// Maximum inputs, and maximum outputs.
const TENSORS_MAX: usize = 16;

/// Maximum bytes of a name, a media type and a pointer.
const TEXT_BYTES_MAX: usize = 256;

/// Maximum sizes of a row, and maximum elements.
const DIMS_MAX: usize = 8;
const ROW_ELEMENTS_MAX: u64 = 1 << 20;

/// Named inputs and outputs of a pipeline over the Open Inference Protocol. Each row of the inputs
/// is a request for the pipeline; a request has up to 64 rows. The pipeline answers in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Oip)]
#[serde(deny_unknown_fields)]
pub struct OipSpec {
    /// The inputs: one text that is the body of the request, or values of its JSON object.
    #[schema(min_items = 1, max_items = 16)]
    pub inputs: Vec<OipInput>,
    /// The outputs: values of the JSON answer.
    #[schema(min_items = 1, max_items = 16)]
    pub outputs: Vec<OipOutput>,
}

/// An input. Without `pointer` it is the body: BYTES, and the only input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OipInput {
    /// Its name.
    #[schema(min_length = 1, max_length = 256)]
    pub name: String,
    /// Its datatype.
    pub datatype: OipDatatype,
    /// The sizes of one row; `[1]` if they are not given. A row of `[1]` is one value, and other
    /// rows are lists.
    #[schema(min_items = 1, max_items = 8)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Vec<u32>>,
    /// The place of its value in the JSON object that becomes the body: `/` and one key.
    #[schema(max_length = 256)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// How clients send the body. It is decoded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<OipEncoding>,
    /// The media type of the body.
    #[schema(max_length = 256)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OipOutput {
    /// Its name.
    #[schema(min_length = 1, max_length = 256)]
    pub name: String,
    /// Its datatype. BYTES are texts of the answer.
    pub datatype: OipDatatype,
    /// The sizes of one row; `[1]` if they are not given. A row of `[1]` is one value, and other
    /// rows are lists.
    #[schema(min_items = 1, max_items = 8)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<Vec<u32>>,
    /// The place of its value in the JSON answer (RFC 6901).
    #[schema(max_length = 256)]
    pub pointer: String,
}

/// A datatype that JSON has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum OipDatatype {
    /// True or false.
    Bool,
    /// Unsigned 8 bits.
    Uint8,
    /// Signed 8 bits.
    Int8,
    /// Unsigned 16 bits.
    Uint16,
    /// Signed 16 bits.
    Int16,
    /// Unsigned 32 bits.
    Uint32,
    /// Signed 32 bits.
    Int32,
    /// Unsigned 64 bits.
    Uint64,
    /// Signed 64 bits.
    Int64,
    /// IEEE 754 binary32.
    Fp32,
    /// IEEE 754 binary64.
    Fp64,
    /// Any bytes as the body, otherwise text.
    Bytes,
}

/// An encoding of bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OipEncoding {
    /// Base64, or a data URL with it.
    Base64,
}

impl OipDatatype {
    /// Its names in documents.
    const NAMES: [(&'static str, Self); 12] = [
        ("BOOL", Self::Bool),
        ("UINT8", Self::Uint8),
        ("INT8", Self::Int8),
        ("UINT16", Self::Uint16),
        ("INT16", Self::Int16),
        ("UINT32", Self::Uint32),
        ("INT32", Self::Int32),
        ("UINT64", Self::Uint64),
        ("INT64", Self::Int64),
        ("FP32", Self::Fp32),
        ("FP64", Self::Fp64),
        ("BYTES", Self::Bytes),
    ];

    fn dtype(self) -> Dtype {
        match self {
            Self::Bool => Dtype::Bool,
            Self::Uint8 => Dtype::Uint8,
            Self::Int8 => Dtype::Int8,
            Self::Uint16 => Dtype::Uint16,
            Self::Int16 => Dtype::Int16,
            Self::Uint32 => Dtype::Uint32,
            Self::Int32 => Dtype::Int32,
            Self::Uint64 => Dtype::Uint64,
            Self::Int64 => Dtype::Int64,
            Self::Fp32 => Dtype::Float32,
            Self::Fp64 => Dtype::Float64,
            Self::Bytes => Dtype::String,
        }
    }
}

impl OipEncoding {
    const NAMES: [(&'static str, Self); 1] = [("base64", Self::Base64)];
}

impl OipSpec {
    /// The value of the key `oip`.
    pub fn read(document: &mut Document) -> Option<Self> {
        let keys = document.object("oip")?;
        document.inside("oip.".into(), keys, |document| {
            let inputs = document.objects("inputs", OipInput::read);
            let inputs = document.require("inputs", inputs);
            let outputs = document.objects("outputs", OipOutput::read);
            let outputs = document.require("outputs", outputs);
            if let Some(inputs) = &inputs {
                check_names(document, "inputs", inputs.iter().map(|input| &*input.name));
                check_inputs(document, inputs);
            }
            if let Some(outputs) = &outputs {
                check_names(document, "outputs", outputs.iter().map(|output| &*output.name));
            }
            Some(Self { inputs: inputs?, outputs: outputs? })
        })
    }

    /// What the data plane needs of it.
    pub fn signature(&self) -> Signature {
        let info = |name: &str, datatype: OipDatatype, dims: &Option<Vec<u32>>| {
            let dims = dims.as_deref().unwrap_or(&[1]).iter().map(|size| Some(*size as usize));
            let dims = std::iter::once(None).chain(dims).collect();
            TensorInfo { name: name.into(), dtype: datatype.dtype(), dims }
        };
        let input_info = |input: &OipInput| info(&input.name, input.datatype, &input.dims);
        let inputs = match &self.inputs[..] {
            [input] if input.pointer.is_none() => Inputs::Body(BodyInput {
                info: input_info(input),
                is_base64: input.encoding == Some(OipEncoding::Base64),
                content_type: input.content_type.clone(),
            }),
            inputs => {
                let member = |input: &OipInput| {
                    let pointer = input.pointer.as_deref().unwrap_or_default();
                    let key = pointer.trim_start_matches('/').replace("~1", "/").replace("~0", "~");
                    MemberInput { info: input_info(input), key }
                };
                Inputs::Members(inputs.iter().map(member).collect())
            }
        };
        let output = |output: &OipOutput| NamedOutput {
            info: info(&output.name, output.datatype, &output.dims),
            pointer: output.pointer.clone(),
        };
        let pointers: Vec<_> = self.outputs.iter().map(|output| &*output.pointer).collect();
        Signature {
            inputs,
            outputs: self.outputs.iter().map(output).collect(),
            pointers: Pointers::of(&pointers),
        }
    }
}

impl OipInput {
    /// None if a part that it needs has a fault.
    fn read(document: &mut Document) -> Option<Self> {
        let name = read_name(document);
        let datatype = read_datatype(document);
        let dims = read_dims(document);
        let pointer = short_text(document, "pointer");
        let encoding = document.one_of("encoding", &OipEncoding::NAMES);
        let content_type = short_text(document, "content_type");
        let is_key = |pointer: &&String| {
            is_pointer(pointer) && pointer.bytes().filter(|byte| *byte == b'/').count() == 1
        };
        if let Some(wrong) = pointer.as_ref().filter(|pointer| !is_key(pointer)) {
            let text = format!(" is {wrong:?}: must be a JSON pointer to one key, as /image");
            document.fault("pointer", text);
        }
        Some(Self { name: name?, datatype: datatype?, dims, pointer, encoding, content_type })
    }
}

impl OipOutput {
    fn read(document: &mut Document) -> Option<Self> {
        let name = read_name(document);
        let datatype = read_datatype(document);
        let dims = read_dims(document);
        let pointer = short_text(document, "pointer");
        let pointer = document.require_with("pointer", pointer, ": name the value, as /prediction");
        if let Some(wrong) = pointer.as_ref().filter(|pointer| !is_pointer(pointer)) {
            let text = format!(" is {wrong:?}: must be a JSON pointer, as /prediction");
            document.fault("pointer", text);
        }
        let names = pointer.as_ref().map_or(0, |pointer| pointer.matches('/').count());
        if names > POINTER_NAMES_MAX {
            let text = format!(" has {names} names: the limit is {POINTER_NAMES_MAX}");
            document.fault("pointer", text);
        }
        Some(Self { name: name?, datatype: datatype?, dims, pointer: pointer? })
    }
}

fn read_name(document: &mut Document) -> Option<String> {
    let name = short_text(document, "name");
    let name = document.require("name", name);
    if name.as_ref().is_some_and(String::is_empty) {
        document.fault("name", " is empty");
    }
    name
}

fn read_datatype(document: &mut Document) -> Option<OipDatatype> {
    let datatype = document.one_of("datatype", &OipDatatype::NAMES);
    document.require("datatype", datatype)
}

fn short_text(document: &mut Document, key: &'static str) -> Option<String> {
    let text = document.text(key)?;
    let bytes = text.len();
    if bytes > TEXT_BYTES_MAX {
        document.fault(key, format_args!(" has {bytes} bytes: the limit is {TEXT_BYTES_MAX}"));
        return None;
    }
    Some(text)
}

fn read_dims(document: &mut Document) -> Option<Vec<u32>> {
    let dims = document.list("dims", |size| {
        let size = whole_of(size).and_then(|size| u32::try_from(size).ok());
        let wrong = || " must be a whole number from 1 on: the rows are not among them".to_owned();
        size.filter(|size| *size > 0).ok_or_else(wrong)
    })?;
    let count = dims.len();
    if !(1..=DIMS_MAX).contains(&count) {
        document.fault("dims", format_args!(" has {count} sizes: must be 1 to {DIMS_MAX}"));
    }
    let elements = dims.iter().fold(1_u64, |all, size| all.saturating_mul((*size).into()));
    if elements > ROW_ELEMENTS_MAX {
        let text = format!(" make {elements} elements: the limit is {ROW_ELEMENTS_MAX}");
        document.fault("dims", text);
    }
    Some(dims)
}

/// Add a fault for a number of tensors that is not allowed, and for each name that is there twice.
fn check_names<'a>(
    document: &mut Document,
    key: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
) {
    let count = names.len();
    if !(1..=TENSORS_MAX).contains(&count) {
        document.fault(key, format_args!(" has {count}: must be 1 to {TENSORS_MAX}"));
    }
    let mut before = BTreeSet::new();
    for (index, name) in names.enumerate() {
        if !before.insert(name) {
            let text = format!(" is {name:?}, which is the name of an earlier one");
            document.fault(&format!("{key}[{index}].name"), text);
        }
    }
}

/// Add a fault for each input that does not fit the others, or whose keys do not fit together.
fn check_inputs(document: &mut Document, inputs: &[OipInput]) {
    let mut pointers = BTreeSet::new();
    for (index, input) in inputs.iter().enumerate() {
        let at = |key: &str| format!("inputs[{index}].{key}");
        let Some(pointer) = &input.pointer else {
            if inputs.len() > 1 {
                let text = " is missing: each of several inputs is a value of a JSON object, as \
                            /image";
                document.fault(&at("pointer"), text);
            } else if input.datatype != OipDatatype::Bytes {
                let text = " must be BYTES for an input that is the body: give pointer, as /value, \
                            for a value of a JSON object";
                document.fault(&at("datatype"), text);
            } else if input.dims.as_ref().is_some_and(|dims| dims != &[1]) {
                document.fault(&at("dims"), " must be [1] for an input that is the body");
            }
            continue;
        };
        if !pointers.insert(pointer) {
            let text = format!(" is {pointer:?}, which is the pointer of an earlier one");
            document.fault(&at("pointer"), text);
        }
        let body_only = [
            ("encoding", input.encoding.is_some()),
            ("content_type", input.content_type.is_some()),
        ];
        for (key, _) in body_only.into_iter().filter(|(_, is_given)| *is_given) {
            let text = " is for an input without pointer: a JSON object has texts as they come";
            document.fault(&at(key), text);
        }
    }
}

#[cfg(test)]
mod tests;
