//! A pipeline with everything resolved that a request needs.

use std::sync::Arc;

use gristmill_batch::Lane;
use gristmill_core::{Name, PipelineLimits};
use gristmill_sandbox::{LineSource, PluginPair};

use crate::quota::TenantQuota;
use crate::statistics::PipelineStatistics;

/// A pipeline, or why it cannot serve.
pub enum Pipeline {
    /// It serves.
    Ready(Arc<Route>),
    /// It does not serve, for this reason.
    Unavailable(String),
}

/// A pipeline with everything resolved that a request needs.
pub struct Route {
    /// The name of its tenant.
    pub tenant: Name,
    /// Its own name.
    pub pipeline: Name,
    /// The preprocessor and the postprocessor.
    pub plugins: PluginPair,
    /// The preprocessor's name, and its lines.
    pub pre: Arc<LineSource>,
    /// The lane of its model.
    pub model: Arc<Lane>,
    /// The name of its model.
    pub model_name: Name,
    /// The postprocessor's name, and its lines.
    pub post: Arc<LineSource>,
    /// A JSON document.
    pub settings: Arc<str>,
    /// Whether its clients see why a plugin call failed, with the lines of that call.
    pub debug: bool,
    /// The tenant's share of contended batches.
    pub weight: u32,
    /// The model's priority level for these requests. None means the model's default level.
    pub priority: Option<u32>,
    /// The limits of its requests and of its plugin calls.
    pub limits: PipelineLimits,
    /// The tenant's quota, shared by all of its pipelines.
    pub quota: Arc<TenantQuota>,
    /// The pipeline's counters, which are the same in every snapshot.
    pub statistics: Arc<PipelineStatistics>,
}
