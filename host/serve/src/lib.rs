//! The data plane: it decides who may call what, and runs a request through a pipeline or a model.
//!
//! In reading order: `access` finds the caller of a request, `quota` counts the request against the
//! quota of its tenant, `target` finds the model or pipeline to run, `pipeline` runs plugins around
//! a model, `handler` runs the models that a plugin asks for, `variant` chooses between a pipeline
//! and its candidate, `evaluated` runs a request of either and counts it, `rows` runs several that
//! came as one, `shadow` runs one once more with the candidate, `model` runs a model alone,
//! `submit` passes a request to a lane, `readiness` says whether the server can serve. `edge` makes
//! the request that a plugin gets, and the answer of its response.
//!
//! Refuses to know the store, the backends, the admin API, connections and every protocol; `edge`
//! knows the head of an HTTP request and of an answer. The crate sees the routes and models of a
//! snapshot. Its errors are typed; the protocols' edges turn them into answers.
//!
//! Invariants:
//! - a request ends at its deadline: all its work runs under one timeout, and dropping the work
//!   drops the guest and takes the request out of the batcher's queue;
//! - a caller sees the models granted to its tenant and that tenant's pipelines, and cannot detect
//!   others;
//! - work owns all that it needs, so that it can outlive the connection that brought it.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod access;
pub mod edge;
mod evaluated;
mod handler;
mod model;
mod pipeline;
mod quota;
mod readiness;
mod rows;
mod shadow;
mod submit;
mod target;
mod variant;

#[cfg(test)]
mod samples;

pub use access::{AccessError, Caller, Gate, Key, NamedTenant, OwnedCaller, admitted};
pub use evaluated::run_variant;
pub use model::ModelError;
pub use pipeline::{InferError, PipelineAnswer, Queueing, Work, request_span};
pub use quota::{QuotaError, RequestQuota};
pub use readiness::{NotReady, Unavailable, readiness};
pub use rows::{FailedRow, RowResponse, RowsAnswer, run_rows};
pub use target::{
    LoadedModel, ModelOrPipeline, NamedModel, NotFound, PIPELINE_VERSION, Target, find_pipeline,
};
pub use variant::{Chosen, TrialPart, Variant, choose};
