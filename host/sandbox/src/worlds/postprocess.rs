//! `postprocess`: from a model's outputs to a response.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{NamedTensor, PluginLimits};
use wasmtime::component::Resource;

use super::world::{World, lent};
use crate::call::CallState;
use crate::capability::{tensors, types};
use crate::diagnose;
use crate::error::{AnswerFault, CallError};
use crate::request::{Context, Response, Results};

/// The export of the worlds `postprocessor` and `processor`.
pub(crate) struct Postprocess;

impl World for Postprocess {
    const EXPORT: &'static str = "postprocess";

    type Request = Results;
    type Output = Response;
    type Params = (Resource<Arc<Context>>, Vec<tensors::wit::NamedTensor>, Bytes);
    type Results = (Result<types::wit::Response, types::wit::Failure>,);

    fn lower<S>(
        context: Arc<Context>,
        results: Results,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError> {
        state.context = Some(context);
        Ok((lent(), outputs(results.outputs, state)?, Bytes::from(results.state)))
    }

    fn lift<S>((answer,): Self::Results, state: &mut CallState<S>) -> Result<Response, CallError> {
        check(answer.map_err(|failure| diagnose::failure(failure, state))?, &state.limits)
    }
}

/// The model's outputs, as the contract has them.
pub(crate) fn outputs<S>(
    outputs: Vec<NamedTensor>,
    state: &mut CallState<S>,
) -> Result<Vec<tensors::wit::NamedTensor>, CallError> {
    state.named_tensors(outputs).map_err(|error| CallError::Host(error.into()))
}

/// Check a response against the limits.
pub(super) fn check(
    response: types::wit::Response,
    limits: &PluginLimits,
) -> Result<Response, CallError> {
    if !(200..=599).contains(&response.status) {
        return Err(CallError::InvalidOutput(AnswerFault::Status(response.status)));
    }
    if response.body.len() > limits.response_bytes {
        let (bytes, limit) = (response.body.len(), limits.response_bytes);
        return Err(CallError::InvalidOutput(AnswerFault::Response { bytes, limit }));
    }
    let headers = response.headers.into_iter().map(|field| (field.name, field.value)).collect();
    let types::wit::Response { status, content_type, body, .. } = response;
    Ok(Response { status, content_type, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, body: usize) -> types::wit::Response {
        let (content_type, headers) = (String::new(), Vec::new());
        types::wit::Response { status, content_type, headers, body: vec![0; body] }
    }

    #[test]
    fn a_response_has_a_status_of_an_answer_and_a_body_within_the_limit() {
        let limits = PluginLimits { response_bytes: 10, ..PluginLimits::default() };
        for (status, body) in [(200, 10), (599, 0)] {
            assert_eq!(check(response(status, body), &limits).unwrap().status, status);
        }
        for (status, body) in [(199, 0), (600, 0), (0, 0), (200, 11)] {
            let error = check(response(status, body), &limits).unwrap_err();
            assert!(matches!(error, CallError::InvalidOutput(_)), "{status} {body}: {error}");
        }
    }
}
