//! `preprocess`: from a request to a model's inputs.

use std::sync::Arc;

use gristmill_core::{NamedTensor, PluginLimits};
use wasmtime::component::Resource;

use super::world::{World, lent};
use crate::call::CallState;
use crate::capability::{prepare, types};
use crate::diagnose;
use crate::error::{AnswerFault, CallError};
use crate::model_runs::{INPUT_NAME_MAX, INPUTS_MAX};
use crate::request::{Context, Prepared, Request};

/// The export of the worlds `preprocessor` and `processor`.
pub(crate) struct Preprocess;

impl World for Preprocess {
    const EXPORT: &'static str = "preprocess";

    type Request = Request;
    type Output = Prepared;
    type Params = (Resource<Arc<Context>>, Resource<Request>);
    type Results = (Result<prepare::wit::Prepared, types::wit::Failure>,);

    fn lower<S>(
        context: Arc<Context>,
        request: Request,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError> {
        state.context = Some(context);
        state.request = Some(request);
        state.has_read_parts = false;
        Ok((lent(), lent()))
    }

    fn lift<S>((answer,): Self::Results, state: &mut CallState<S>) -> Result<Prepared, CallError> {
        let prepared = answer.map_err(|failure| diagnose::failure(failure, state))?;
        check(&prepared, &state.limits)?;
        let inputs = prepared.inputs.into_iter().map(|input| {
            let tensor = state.table.delete(input.tensor);
            let tensor = tensor.map_err(|error| CallError::InvalidOutput(error.into()))?;
            Ok(NamedTensor { name: input.name.into(), tensor })
        });
        Ok(Prepared { inputs: inputs.collect::<Result<_, CallError>>()?, state: prepared.state })
    }
}

fn check(prepared: &prepare::wit::Prepared, limits: &PluginLimits) -> Result<(), CallError> {
    let invalid = |fault| Err(CallError::InvalidOutput(fault));
    let (bytes, limit) = (prepared.state.len(), limits.response_bytes);
    if bytes > limit {
        return invalid(AnswerFault::State { bytes, limit });
    }
    let inputs = prepared.inputs.len();
    if inputs > INPUTS_MAX {
        return invalid(AnswerFault::Inputs { inputs, limit: INPUTS_MAX });
    }
    let long = prepared.inputs.iter().map(|input| input.name.len());
    if let Some(bytes) = long.filter(|len| *len > INPUT_NAME_MAX).max() {
        return invalid(AnswerFault::InputName { bytes, limit: INPUT_NAME_MAX });
    }
    Ok(())
}
