//! A tenant: who may call it and what it owns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::Plugin;

use crate::access::Access;
use crate::quota::{QuotaLimits, TenantQuota};
use crate::route::Pipeline;

/// One tenant.
pub struct Tenant {
    /// Who may call it.
    pub access: Access,
    /// The models it may run directly.
    pub models: BTreeSet<Name>,
    /// Its share of contended batches, against the weights of others.
    pub weight: u32,
    /// The places and the memory that all of its requests share, and what they have used.
    pub quota: Arc<TenantQuota>,
    /// The limits that its document sets on its use over time.
    pub limits: QuotaLimits,
    /// The pipeline that serves if a request names none.
    pub default_pipeline: Option<Name>,
    /// Its pipelines by name.
    pub pipelines: HashMap<Name, Pipeline>,
    /// Its plugins by name.
    pub plugins: BTreeMap<Name, PluginState>,
}

/// A plugin and whether it is loaded.
#[derive(Clone)]
pub struct PluginState {
    /// The digest of its file.
    pub digest: Digest,
    /// The plugin, or why it is not loaded.
    pub plugin: Result<Arc<Plugin>, String>,
}
