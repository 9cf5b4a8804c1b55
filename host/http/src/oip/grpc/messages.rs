//! gRPC's messages as the requests and answers that both protocols have.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{ByteBudget, ErrorCode, OverBudget};
use gristmill_oip::{
    Input, Output, OutputData, ParseError, RequestedOutput, Room, no_classification,
    no_shared_memory,
};

use super::contents::Typed;
use crate::body::try_held;
use crate::oip::inference::refused;
use crate::oip::proto::infer_parameter::ParameterChoice;
use crate::oip::proto::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};
use crate::oip::proto::model_infer_response::InferOutputTensor;
use crate::oip::proto::{InferParameter, ModelInferRequest};
use crate::problem::Problem;

/// Let a request's contents count against its tenant's budget until they are dropped.
pub(super) fn count(
    message: &mut ModelInferRequest,
    budget: Option<&Arc<ByteBudget>>,
) -> Result<(), OverBudget> {
    let Some(budget) = budget else { return Ok(()) };
    let typed = message.inputs.iter_mut().map(|input| &mut input.contents);
    for contents in message.raw_input_contents.iter_mut().chain(typed) {
        *contents = try_held(std::mem::take(contents), budget)?;
    }
    Ok(())
}

/// The bytes of typed contents, which have to be read one by one.
pub(super) fn typed_bytes(inputs: &[InferInputTensor]) -> usize {
    inputs.iter().map(|input| input.contents.len()).sum()
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
    room: &Room<'_>,
) -> Result<Vec<Input>, Problem> {
    let typed = raw.is_empty();
    if !typed && raw.len() != inputs.len() {
        let detail =
            format!("{} inputs are given and {} raw_input_contents", inputs.len(), raw.len());
        return Err(Problem::new(ErrorCode::InvalidRequest, detail));
    }
    let mut raw = raw.into_iter();
    let inputs = inputs.into_iter().map(|input| input_of(input, raw.next(), room));
    inputs.collect::<Result<_, _>>().map_err(refused)
}

fn input_of(
    input: InferInputTensor,
    raw: Option<Bytes>,
    room: &Room<'_>,
) -> Result<Input, ParseError> {
    let InferInputTensor { name, datatype, shape, parameters, contents } = input;
    no_shared_memory(&name, in_shared_memory(&parameters))?;
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
    Ok(Input { name, datatype, shape, data })
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
