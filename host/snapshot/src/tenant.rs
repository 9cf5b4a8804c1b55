//! A tenant: who may call it and what it owns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::Plugin;

use crate::access::Access;
use crate::quota::TenantQuota;
use crate::route::Pipeline;

/// One tenant.
pub struct Tenant {
    pub access: Access,
    /// The models it may run directly.
    pub models: BTreeSet<Name>,
    /// Its share of contended batches, against the weights of others.
    pub weight: u32,
    pub quota: Arc<TenantQuota>,
    pub default_pipeline: Option<Name>,
    pub pipelines: HashMap<Name, Pipeline>,
    pub plugins: BTreeMap<Name, PluginState>,
}

/// A plugin and whether it is loaded.
#[derive(Clone)]
pub struct PluginState {
    pub digest: Digest,
    /// The plugin, or why it is not loaded.
    pub plugin: Result<Arc<Plugin>, String>,
}
