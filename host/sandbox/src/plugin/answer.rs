//! What a guest answered, held against its limits, or why it gave no answer.

use gristmill_core::PluginLimits;
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use super::Response;
use crate::bindings::{prepare, types};
use crate::call::{CallState, Limited};
use crate::meter::CpuExhausted;
use crate::{CallError, Failure};

/// The longest text of a failure that is passed on, in bytes.
const FAILURE_TEXT_MAX: usize = 4 << 10;

/// Inputs that a preprocessor may give a model, and the bytes of each one's name.
const INPUTS_MAX: usize = 1024;
const INPUT_NAME_MAX: usize = 1024;

pub(super) fn check_prepared(
    prepared: &prepare::Prepared,
    limits: &PluginLimits,
) -> Result<(), CallError> {
    let invalid = |message| Err(CallError::InvalidOutput(message));
    let (state, state_max) = (prepared.state.len(), limits.response_bytes);
    if state > state_max {
        return invalid(format!("state of {state} bytes is over the limit of {state_max}"));
    }
    let inputs = prepared.inputs.len();
    if inputs > INPUTS_MAX {
        return invalid(format!("{inputs} inputs are over the limit of {INPUTS_MAX}"));
    }
    let long = prepared.inputs.iter().map(|input| input.name.len());
    if let Some(len) = long.filter(|len| *len > INPUT_NAME_MAX).max() {
        return invalid(format!(
            "an input's name of {len} bytes is over the limit of {INPUT_NAME_MAX}"
        ));
    }
    Ok(())
}

pub(super) fn check_response(
    response: types::Response,
    limits: &PluginLimits,
) -> Result<Response, CallError> {
    if !(200..=599).contains(&response.status) {
        let message = format!("status {} is not one of 200 to 599", response.status);
        return Err(CallError::InvalidOutput(message));
    }
    if response.body.len() > limits.response_bytes {
        let (len, limit) = (response.body.len(), limits.response_bytes);
        let message = format!("response of {len} bytes is over the limit of {limit}");
        return Err(CallError::InvalidOutput(message));
    }
    let headers = response.headers.into_iter().map(|field| (field.name, field.value)).collect();
    let types::Response { status, content_type, body, .. } = response;
    Ok(Response { status, content_type, headers, body })
}

pub(super) fn failure(failure: types::Failure) -> CallError {
    CallError::Failure(match failure {
        types::Failure::InvalidInput(text) => Failure::InvalidInput(cut(text)),
        types::Failure::UnsupportedMediaType(text) => Failure::UnsupportedMediaType(cut(text)),
        types::Failure::Unprocessable(text) => Failure::Unprocessable(cut(text)),
        types::Failure::Internal(text) => Failure::Internal(cut(text)),
    })
}

/// The text, at most [`FAILURE_TEXT_MAX`] bytes of it.
fn cut(mut text: String) -> String {
    if text.len() > FAILURE_TEXT_MAX {
        text.truncate(text.floor_char_boundary(FAILURE_TEXT_MAX));
        text.push_str(" [cut]");
    }
    text
}

/// Which limit a guest ran into, or that it trapped by itself.
pub(super) fn diagnose(error: &wasmtime::Error, state: &CallState) -> CallError {
    if error.is::<CpuExhausted>() {
        return CallError::OutOfTime(state.limits.cpu.as_millis());
    }
    if let Some(limited) = error.downcast_ref::<Limited>() {
        return over(limited);
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref() {
        return CallError::OutOfMemory(format!("{} handles", state.limits.handles));
    }
    if let Some(refused) = &state.limiter.refused {
        return over(refused);
    }
    let text = match error.downcast_ref::<Trap>() {
        Some(trap) => trap.to_string(),
        None => error.root_cause().to_string(),
    };
    CallError::Trapped(cut(text))
}

fn over(limited: &Limited) -> CallError {
    match limited {
        Limited::Call(limit) => CallError::OutOfMemory(limit.clone()),
        Limited::Owner(over) => CallError::Busy(*over),
    }
}
