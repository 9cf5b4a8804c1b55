//! A pipeline with everything resolved that a request needs.

use std::sync::Arc;

use gristmill_batch::Lane;
use gristmill_core::{Name, PipelineLimits};
use gristmill_sandbox::Plugin;

use crate::quota::TenantQuota;
use crate::statistics::PipelineStatistics;

/// A pipeline, or why it cannot serve.
pub enum Pipeline {
    Ready(Arc<Route>),
    Unavailable(String),
}

/// A pipeline with everything resolved that a request needs.
pub struct Route {
    pub tenant: Name,
    pub pipeline: Name,
    pub pre: Arc<Plugin>,
    pub pre_name: Name,
    pub model: Arc<Lane>,
    pub post: Arc<Plugin>,
    pub post_name: Name,
    /// A JSON document.
    pub settings: Arc<str>,
    /// The tenant's share of contended batches.
    pub weight: u32,
    /// The model's priority level for these requests. None means the model's default level.
    pub priority: Option<u32>,
    pub limits: PipelineLimits,
    /// The tenant's quota, shared by all of its pipelines.
    pub quota: Arc<TenantQuota>,
    /// The pipeline's counters, which are the same in every snapshot.
    pub statistics: Arc<PipelineStatistics>,
}
