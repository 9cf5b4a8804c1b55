//! Running the golden samples of the pipelines that a release touches, before the release is made.
//!
//! `subject` finds these pipelines, `run` runs their samples, and `failed` is the error if an
//! answer does not fit. `shown` has the answers, if a dry run asks for them. How a request runs is
//! up to a [`SampleRunner`], because this crate does not know the data plane.
//!
//! Invariant: a proof belongs to the pipeline's document, its loaded plugins and the lane of its
//! model. If one of them is another one when the release is made, the samples run again.

pub(crate) mod failed;
pub(crate) mod run;
pub(crate) mod shown;
pub(crate) mod subject;
pub(crate) mod variant;

use std::sync::Arc;

use async_trait::async_trait;
use gristmill_core::Name;
use gristmill_snapshot::Route;
use gristmill_state::{SampleAnswer, SampleRequest};

/// Runs requests of samples as the data plane runs those of clients.
#[async_trait]
pub trait SampleRunner: Send + Sync {
    /// Run a request within its pipeline's limits and its tenant's quota. Dropping the future ends
    /// the request.
    async fn run(&self, run: SampleRun<'_>) -> SampleAnswer;
}

/// A request to run.
#[derive(Clone, Copy)]
pub struct SampleRun<'a> {
    /// The pipeline, which may not serve yet.
    pub route: &'a Arc<Route>,
    /// The sample's name.
    pub name: &'a Name,
    /// The request.
    pub request: &'a SampleRequest,
}
