//! The data plane: who may call what, and the way of one request through a pipeline or a model.
//!
//! In reading order: `access` says on whose behalf a request is made, `target` what it may call,
//! `pipeline` runs plugins around a model, `model` runs a model alone, `readiness` says whether the
//! server can serve.
//!
//! Refuses to know the store, the backends, the admin API and every protocol: it sees what the
//! snapshot resolved, and its errors are typed; the protocols' edges turn them into answers.
//!
//! Invariants:
//! - at its deadline a request is over: its whole way runs under one timeout, and dropping it drops
//!   the guest and takes the request out of the batcher's queue;
//! - a caller sees the models granted to its tenant and that tenant's pipelines, and nothing that
//!   tells it of others;
//! - work owns all that it needs, so that it can outlive the connection that brought it.

#![forbid(unsafe_code)]

mod access;
mod model;
mod pipeline;
mod readiness;
mod submit;
mod target;

pub use access::{AccessError, Caller, Gate, Key, admitted};
pub use model::{ModelAnswer, ModelError, ModelWork};
pub use pipeline::{InferError, PipelineAnswer, Queueing, Work, request_span};
pub use readiness::{NotReady, Unavailable, readiness};
pub use target::{ModelOrPipeline, NotFound, PIPELINE_VERSION, Target, find_pipeline};
