//! Running the golden samples of the pipelines that a release touches, before the release is made.
//!
//! `subject` finds these pipelines, `run` runs their samples, `verdict` checks an answer against
//! its expectation, and `failed` is the error if one does not fit. How a request runs is up to a
//! [`SampleRunner`], because this crate does not know the data plane.
//!
//! Invariant: a proof belongs to the pipeline's document, its loaded plugins and the lane of its
//! model. If one of them is another one when the release is made, the samples run again.

pub(crate) mod failed;
pub(crate) mod run;
pub(crate) mod subject;
pub(crate) mod variant;
pub(crate) mod verdict;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::{ErrorCode, Name};
use gristmill_snapshot::Route;

use crate::release::sample::SampleRequest;

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

/// The answer that a client would get.
#[derive(Clone, Debug)]
pub enum SampleAnswer {
    /// The plugin's response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The content type; it may be empty.
        content_type: String,
        /// The body.
        body: Bytes,
    },
    /// There is no response.
    Failed(SampleFailure),
}

/// The reason for which a request got no response.
#[derive(Clone, Debug)]
pub struct SampleFailure {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: ErrorCode,
    /// The text for the client.
    pub detail: String,
    /// The plugin's own words, which a client does not get.
    pub internal: Option<String>,
}

impl SampleAnswer {
    /// The status of the HTTP answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Response { status, .. } | Self::Failed(SampleFailure { status, .. }) => *status,
        }
    }
}
