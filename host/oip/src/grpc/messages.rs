//! Converting gRPC's messages from and to the requests and answers of both encodings.

use std::collections::HashMap;

use bytes::Bytes;

use super::contents::Typed;
use super::proto::InferParameter;
use super::proto::infer_parameter::ParameterChoice;
use super::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use super::proto::model_infer_response::InferOutputTensor;
use crate::{
    Input, Output, OutputData, ParseError, PipelineParameters, RequestedOutput, Room,
    no_shared_memory,
};

/// The bytes of typed contents. Their elements have to be read one by one.
pub fn typed_bytes(inputs: &[InferInputTensor]) -> usize {
    inputs.iter().map(|input| input.contents.len()).sum()
}

/// A parameter that is a number, if it is given.
///
/// # Errors
/// It is not a number, or it is below 0.
pub fn number(
    parameters: &HashMap<String, InferParameter>,
    name: &str,
) -> Result<Option<u64>, ParseError> {
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
    let wrong = || ParseError::Parameter { name: name.into(), value: sent(choice) };
    number.map(Some).ok_or_else(wrong)
}

/// A parameter that is a text, if it is given.
fn text(
    parameters: &HashMap<String, InferParameter>,
    name: &str,
) -> Result<Option<String>, ParseError> {
    match parameters.get(name).and_then(|value| value.parameter_choice.as_ref()) {
        None => Ok(None),
        Some(ParameterChoice::StringParam(text)) => Ok(Some(text.clone())),
        Some(other) => Err(ParseError::TextParameter { name: name.into(), value: sent(other) }),
    }
}

/// The value of a parameter for a message.
fn sent(choice: &ParameterChoice) -> String {
    match choice {
        ParameterChoice::BoolParam(value) => value.to_string(),
        ParameterChoice::Int64Param(value) => value.to_string(),
        ParameterChoice::Uint64Param(value) => value.to_string(),
        ParameterChoice::DoubleParam(value) => value.to_string(),
        ParameterChoice::StringParam(value) => format!("{value:?}"),
    }
}

fn in_shared_memory(parameters: &HashMap<String, InferParameter>) -> bool {
    parameters.contains_key("shared_memory_region")
}

/// An output that a request asks for.
///
/// # Errors
/// It asks for shared memory, or its number of classes is not a number.
pub fn requested_output(output: InferRequestedOutputTensor) -> Result<RequestedOutput, ParseError> {
    let InferRequestedOutputTensor { name, parameters } = output;
    no_shared_memory(&name, in_shared_memory(&parameters))?;
    let classes = number(&parameters, "classification")?.unwrap_or_default();
    Ok(RequestedOutput { name, binary: None, classes: classes.try_into().unwrap_or(usize::MAX) })
}

/// The inputs, with their contents either all raw or all typed.
///
/// # Errors
/// The contents do not fit the inputs, or there is no room for them.
pub fn tensors(
    inputs: Vec<InferInputTensor>,
    raw: Vec<Bytes>,
    room: &Room<'_>,
) -> Result<Vec<Input>, ParseError> {
    let typed = raw.is_empty();
    if !typed && raw.len() != inputs.len() {
        return Err(ParseError::RawContents { inputs: inputs.len(), contents: raw.len() });
    }
    let mut raw = raw.into_iter();
    let inputs = inputs.into_iter().map(|input| input_of(input, raw.next(), room));
    inputs.collect()
}

fn input_of(
    input: InferInputTensor,
    raw: Option<Bytes>,
    room: &Room<'_>,
) -> Result<Input, ParseError> {
    let InferInputTensor { name, datatype, shape, parameters, contents } = input;
    no_shared_memory(&name, in_shared_memory(&parameters))?;
    let shape = shape.into_iter().map(i128::from).collect();
    let (datatype, shape) = Input::described(&name, &datatype, shape)?;
    let data = match raw {
        Some(_) if !contents.is_empty() => return Err(ParseError::TwoData { name }),
        Some(raw) => raw,
        None if !contents.is_empty() => {
            let (name, shape, contents) = (&name, &shape, &contents);
            Typed { name, datatype, shape, contents }.read(room)?
        }
        None if shape.contains(&0) => Bytes::new(),
        None => return Err(ParseError::NoData { name }),
    };
    let parameters = PipelineParameters {
        content_type: text(&parameters, "content_type")?,
        query: text(&parameters, "query")?,
    };
    Ok(Input { name, datatype, shape, data, parameters })
}

/// An output's description and its raw contents.
pub fn output_of(output: Output) -> (InferOutputTensor, Bytes) {
    let tensor = InferOutputTensor {
        name: output.name.to_string(),
        datatype: output.datatype.as_str().into(),
        shape: output.shape.iter().map(|size| *size as i64).collect(),
        parameters: HashMap::new(),
    };
    (tensor, OutputData::into_bytes(output.data))
}
