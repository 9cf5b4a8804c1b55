//! The worlds of contract 0.1: the request is one record with the settings, and there is no
//! context.
//!
//! An adapter: it makes the parameters of 0.1. The answers are those of the current contract.

use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::{ComponentType, Lower, Resource};

use super::postprocess::{self, Postprocess};
use super::preprocess::Preprocess;
use super::world::{World, push};
use crate::call::CallState;
use crate::capability::{tensors, types};
use crate::error::CallError;
use crate::request::{Context, Prepared, Request, Response, Results};

/// The record `request` of 0.1.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(crate) struct RequestRecord {
    #[component(name = "content-type")]
    content_type: Option<String>,
    headers: Vec<types::wit::Field>,
    query: Vec<types::wit::Field>,
    settings: String,
    body: Resource<Bytes>,
    parts: Vec<types::wit::Part>,
}

/// `preprocess` of 0.1.
pub(crate) struct Preprocess01;

impl World for Preprocess01 {
    const EXPORT: &'static str = Preprocess::EXPORT;

    type Request = Request;
    type Output = Prepared;
    type Params = (RequestRecord,);
    type Results = <Preprocess as World>::Results;

    fn lower<S>(
        context: Arc<Context>,
        request: Request,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError> {
        let Request { content_type, headers, query, body, parts } = request;
        let body = push(state, body)?;
        let parts = parts.into_iter().map(|part| types::part_of(state, part));
        let parts =
            parts.collect::<Result<_, _>>().map_err(|error| CallError::Host(error.into()))?;
        let (headers, query) = (types::fields(&headers), types::fields(&query));
        let settings = context.settings.to_string();
        Ok((RequestRecord { content_type, headers, query, settings, body, parts },))
    }

    fn lift<S>(results: Self::Results, state: &mut CallState<S>) -> Result<Prepared, CallError> {
        Preprocess::lift(results, state)
    }
}

/// `postprocess` of 0.1.
pub(crate) struct Postprocess01;

impl World for Postprocess01 {
    const EXPORT: &'static str = Postprocess::EXPORT;

    type Request = Results;
    type Output = Response;
    type Params = (Vec<tensors::wit::NamedTensor>, Bytes);
    type Results = <Postprocess as World>::Results;

    fn lower<S>(
        _: Arc<Context>,
        results: Results,
        state: &mut CallState<S>,
    ) -> Result<Self::Params, CallError> {
        Ok((postprocess::outputs(results.outputs, state)?, Bytes::from(results.state)))
    }

    fn lift<S>(results: Self::Results, state: &mut CallState<S>) -> Result<Response, CallError> {
        Postprocess::lift(results, state)
    }
}
