//! gRPC's messages as the requests and answers that both protocols have.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, Dtype, ErrorCode, HeldBytes, OverBudget};
use gristmill_oip::{
    Input, Output, OutputData, ParseError, RequestedOutput, from_texts, no_classification,
    no_shared_memory,
};

use crate::body::try_held;
use crate::oip::inference::refused;
use crate::oip::proto::infer_parameter::ParameterChoice;
use crate::oip::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use crate::oip::proto::model_infer_response::InferOutputTensor;
use crate::oip::proto::{InferParameter, InferTensorContents, ModelInferRequest};
use crate::problem::Problem;

/// A request whose contents count against its tenant's budget: the raw ones until they are dropped, the
/// typed ones for as long as this is held.
pub(super) struct Counted {
    pub(super) message: ModelInferRequest,
    pub(super) _typed: Option<HeldBytes>,
}

impl Counted {
    pub(super) fn new(
        mut message: ModelInferRequest,
        budget: Option<&Arc<ByteBudget>>,
    ) -> Result<Self, OverBudget> {
        let Some(budget) = budget else { return Ok(Self { message, _typed: None }) };
        for raw in &mut message.raw_input_contents {
            *raw = try_held(std::mem::take(raw), budget)?;
        }
        let typed = message.inputs.iter().filter_map(|input| input.contents.as_ref());
        let held = match typed.map(len_in_memory).sum() {
            0 => None,
            bytes => {
                let held = budget.hold(0);
                held.try_add(bytes)?;
                Some(held)
            }
        };
        Ok(Self { message, _typed: held })
    }
}

/// The bytes that typed contents take in memory.
fn len_in_memory(contents: &InferTensorContents) -> usize {
    let texts = &contents.bytes_contents;
    contents.bool_contents.len()
        + size_of_val(&contents.int_contents[..])
        + size_of_val(&contents.int64_contents[..])
        + size_of_val(&contents.uint_contents[..])
        + size_of_val(&contents.uint64_contents[..])
        + size_of_val(&contents.fp32_contents[..])
        + size_of_val(&contents.fp64_contents[..])
        + size_of_val(&texts[..])
        + texts.iter().map(Bytes::len).sum::<usize>()
}

/// A parameter that counts something.
pub(super) fn number(
    parameters: &HashMap<String, InferParameter>,
    name: &str,
) -> Result<Option<u64>, Problem> {
    let Some(choice) = parameters.get(name).and_then(|value| value.parameter_choice.as_ref())
    else {
        return Ok(None);
    };
    let number = match choice {
        ParameterChoice::Int64Param(value) => u64::try_from(*value).ok(),
        ParameterChoice::Uint64Param(value) => Some(*value),
        ParameterChoice::StringParam(value) => value.parse().ok(),
        ParameterChoice::BoolParam(_) | ParameterChoice::DoubleParam(_) => None,
    };
    let wrong = || {
        let detail = format!("parameter {name:?} is {choice:?}: must be a number, 0 or more");
        Problem::new(ErrorCode::InvalidRequest, detail)
    };
    number.map(Some).ok_or_else(wrong)
}

fn in_shared_memory(parameters: &HashMap<String, InferParameter>) -> bool {
    parameters.contains_key("shared_memory_region")
}

pub(super) fn requested_output(
    output: InferRequestedOutputTensor,
) -> Result<RequestedOutput, Problem> {
    let InferRequestedOutputTensor { name, parameters } = output;
    no_shared_memory(&name, in_shared_memory(&parameters)).map_err(refused)?;
    let classes = number(&parameters, "classification")?.unwrap_or_default();
    no_classification(&name, classes > 0).map_err(refused)?;
    Ok(RequestedOutput { name, binary: None })
}

/// The inputs, with their contents either raw or typed, all of one kind.
pub(super) fn tensors(
    inputs: Vec<InferInputTensor>,
    raw: Vec<Bytes>,
) -> Result<Vec<Input>, Problem> {
    let typed = raw.is_empty();
    if !typed && raw.len() != inputs.len() {
        let detail =
            format!("{} inputs are given and {} raw_input_contents", inputs.len(), raw.len());
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    let mut raw = raw.into_iter();
    let inputs = inputs.into_iter().map(|input| input_of(input, raw.next()));
    inputs.collect::<Result<_, _>>().map_err(refused)
}

fn input_of(input: InferInputTensor, raw: Option<Bytes>) -> Result<Input, ParseError> {
    let InferInputTensor { name, datatype, shape, parameters, contents } = input;
    no_shared_memory(&name, in_shared_memory(&parameters))?;
    let (datatype, shape) = Input::described(&name, &datatype, shape)?;
    let data = match (raw, contents) {
        (Some(_), Some(_)) => return Err(ParseError::TwoData { name }),
        (Some(raw), None) => raw,
        (None, Some(contents)) => typed_contents(&name, datatype, &contents)?.into(),
        (None, None) if shape.contains(&0) => Bytes::new(),
        (None, None) => return Err(ParseError::NoData { name }),
    };
    Ok(Input { name, datatype, shape, data })
}

/// Typed contents as a raw tensor has them.
fn typed_contents(
    name: &str,
    datatype: Dtype,
    contents: &InferTensorContents,
) -> Result<Vec<u8>, ParseError> {
    macro_rules! narrowed {
        ($values:expr, $type:ty) => {{
            let values = $values.iter().map(|value| match <$type>::try_from(*value) {
                Ok(value) => Ok(value.to_le_bytes()),
                Err(_) => Err(ParseError::Data {
                    name: name.into(),
                    why: format!("{value} is no {datatype}"),
                }),
            });
            values.collect::<Result<Vec<_>, _>>()?.into_flattened()
        }};
    }
    Ok(match datatype {
        Dtype::Bool => contents.bool_contents.iter().map(|value| u8::from(*value)).collect(),
        Dtype::Int8 => narrowed!(contents.int_contents, i8),
        Dtype::Int16 => narrowed!(contents.int_contents, i16),
        Dtype::Int32 => narrowed!(contents.int_contents, i32),
        Dtype::Int64 => narrowed!(contents.int64_contents, i64),
        Dtype::Uint8 => narrowed!(contents.uint_contents, u8),
        Dtype::Uint16 => narrowed!(contents.uint_contents, u16),
        Dtype::Uint32 => narrowed!(contents.uint_contents, u32),
        Dtype::Uint64 => narrowed!(contents.uint64_contents, u64),
        Dtype::Float32 => {
            let values = contents.fp32_contents.iter();
            values.flat_map(|value| value.to_le_bytes()).collect()
        }
        Dtype::Float64 => {
            let values = contents.fp64_contents.iter();
            values.flat_map(|value| value.to_le_bytes()).collect()
        }
        Dtype::String => from_texts(&contents.bytes_contents),
        Dtype::Float16 | Dtype::Bfloat16 => {
            return Err(ParseError::BinaryOnly { name: name.into(), datatype });
        }
    })
}

pub(super) fn output_of(output: Output) -> (InferOutputTensor, Bytes) {
    let tensor = InferOutputTensor {
        name: output.name.to_string(),
        datatype: output.datatype.as_str().into(),
        shape: output.shape.iter().map(|size| *size as i64).collect(),
        parameters: HashMap::new(),
    };
    (tensor, OutputData::into_bytes(output.data))
}
