//! A tenant of the desired state. Pure data.

use std::collections::BTreeMap;
use std::sync::Arc;

use gristmill_core::{Digest, KeyHash, Name};
use serde::{Deserialize, Serialize};

use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;

/// A tenant with all it owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Who may call it, and what it may use.
    pub spec: TenantSpec,
    /// The release that made it; 0 if a checkpoint of format 1 does not say it.
    #[serde(default)]
    pub since: u64,
    /// The releases that brought its keys, by the keys' names.
    pub key_versions: BTreeMap<Name, u64>,
    /// Its plugins by name.
    pub plugins: BTreeMap<Name, Plugin>,
    /// Its pipelines by name.
    pub pipelines: BTreeMap<Name, PipelineSpec>,
}

/// A plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plugin {
    /// The digest of its file.
    pub digest: Digest,
    /// The release that brought this content.
    pub version: u64,
}

/// Whether both states have the same tenant, or both have none. States share most tenants, and a
/// comparison takes time for each byte of a tenant.
pub(crate) fn is_same(one: Option<&Arc<Tenant>>, other: Option<&Arc<Tenant>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other) || one == other,
        (one, other) => one.is_none() && other.is_none(),
    }
}

impl Tenant {
    /// Take the spec of release `number`. Keys that stay keep their versions.
    pub(super) fn put(&mut self, number: u64, spec: TenantSpec) {
        let version = |(name, hash): (&Name, &KeyHash)| {
            let stays = self.spec.keys.get(name) == Some(hash);
            let known = self.key_versions.get(name).copied().filter(|_| stays);
            (name.clone(), known.unwrap_or(number))
        };
        self.key_versions = spec.keys.iter().map(version).collect();
        self.spec = spec;
    }
}
