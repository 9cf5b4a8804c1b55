//! `handle`: from a request to a response, with runs of models on the way.

use std::sync::Arc;

use wasmtime::component::Resource;

use super::postprocess;
use super::preprocess::Preprocess;
use super::world::World;
use crate::call::CallState;
use crate::capability::{models, types};
use crate::diagnose;
use crate::error::CallError;
use crate::request::{Context, Request, Response};

/// The export of the world `handler`.
pub(crate) struct HandleRequest;

impl World for HandleRequest {
    const EXPORT: &'static str = "handle";

    type Request = Request;
    type Output = Response;
    type Params = (Resource<Arc<Context>>, Resource<Request>);
    type Results = (Result<types::wit::Response, models::wit::HandleError>,);

    fn lower<S>(
        context: Arc<Context>,
        request: Request,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError> {
        Preprocess::lower(context, request, state)
    }

    fn lift<S>((answer,): Self::Results, state: &mut CallState<S>) -> Result<Response, CallError> {
        match answer {
            Ok(response) => postprocess::check(response, &state.limits),
            Err(models::wit::HandleError::Failure(failure)) => {
                Err(diagnose::failure(failure, state))
            }
            Err(models::wit::HandleError::Infer(error)) => {
                Err(CallError::Model(diagnose::run_fault(error)))
            }
        }
    }
}
