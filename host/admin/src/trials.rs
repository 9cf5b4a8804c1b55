//! Requests that people try: they run through a pipeline as those of clients do, and everything
//! that is known of them is answered. How a request runs is up to [`Trials`], because this crate
//! does not know the data plane.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use gristmill_core::{Charge, Stages};
use gristmill_sandbox::Line;
use gristmill_snapshot::Route;
use gristmill_state::SampleAnswer;

/// Runs requests that people try.
#[async_trait]
pub trait Trials: Send + Sync {
    /// Run a request within its pipeline's limits and its tenant's quota. Dropping the future ends
    /// the request.
    async fn try_out(&self, trial: Trial) -> Tried;
}

/// A request to try.
pub struct Trial {
    /// The pipeline.
    pub route: Arc<Route>,
    /// Its content type.
    pub content_type: Option<String>,
    /// Its query, as it stands in a URL.
    pub query: String,
    /// Its body, which counts against the tenant's budget.
    pub body: Bytes,
}

/// A request that was tried.
pub struct Tried {
    /// The answer as a client gets it, with the plugin's own words if it failed.
    pub answer: SampleAnswer,
    /// The time from its arrival to its answer.
    pub took: Duration,
    /// The time of each stage.
    pub stages: Stages,
    /// What its tenant is charged for it.
    pub charge: Charge,
    /// Rows of its largest batch, those of other requests included.
    pub batch_rows: usize,
    /// Peak number of tenants with requests in one of its batches.
    pub batch_tenants: usize,
    /// What its plugins logged.
    pub lines: Vec<Line>,
}
