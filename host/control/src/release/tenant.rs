//! A tenant in a release.

use std::collections::BTreeSet;

use gristmill_core::{Digest, Name};
use serde::{Deserialize, Serialize};

/// The callers of a tenant's pipelines, and the tenant's share of contended models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantSpec {
    /// Whether anyone may call them without a key.
    pub open: bool,
    /// Digests of the keys.
    pub keys: Vec<Digest>,
    /// The pipeline that `/v1/{tenant}/infer` runs. If it is not given: the tenant's only pipeline.
    pub default_pipeline: Option<Name>,
    /// The tenant's share of contended batches, relative to the weights of others; 1 to 1000.
    pub weight: u32,
    /// The models it may run directly, over the Open Inference Protocol.
    pub models: BTreeSet<Name>,
}

impl Default for TenantSpec {
    fn default() -> Self {
        Self {
            open: false,
            keys: Vec::new(),
            default_pipeline: None,
            weight: 1,
            models: BTreeSet::new(),
        }
    }
}
