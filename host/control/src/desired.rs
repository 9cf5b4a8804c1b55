//! The desired state: the result of all releases so far. Pure data, pure functions.
//!
//! It says what should serve, by names and digests. Refuses to know whether it can be loaded, and
//! which changes are allowed: `plan` decides that. Replaying the log applies each change that an
//! earlier version has made.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use gristmill_core::{Digest, Name};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::release::change::Change;
use crate::release::model_config::ModelConfig;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;

/// Everything that should serve.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The tenants by name. A state shares those that a change does not touch with the state before
    /// it.
    pub tenants: BTreeMap<Name, Arc<Tenant>>,
    /// The models by name.
    pub models: BTreeMap<Name, Model>,
    /// The tenants that have a key. It follows from `tenants`.
    key_owners: Arc<HashMap<Digest, BTreeSet<Name>>>,
}

impl PartialEq for Desired {
    fn eq(&self, other: &Self) -> bool {
        let mut names = self.tenants.keys().zip(other.tenants.keys());
        let mut tenants = self.tenants.values().zip(other.tenants.values());
        self.models == other.models
            && self.tenants.len() == other.tenants.len()
            && names.all(|(one, other)| one == other)
            // States share most tenants.
            && tenants.all(|(one, other)| Arc::ptr_eq(one, other) || one == other)
    }
}

/// A tenant with all it owns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Who may call it, and what it may use.
    pub spec: TenantSpec,
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

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The digest of its file.
    pub digest: Digest,
    /// The release that brought this content.
    pub version: u64,
    /// The releases that brought earlier content, in order.
    pub earlier_versions: Vec<u64>,
    /// How it is loaded, and how requests are batched.
    pub config: ModelConfig,
    /// Whether it was taken out of service.
    pub unloaded: bool,
}

impl Tenant {
    /// Take the spec of release `number`. Keys that stay keep their versions.
    fn put(&mut self, number: u64, spec: TenantSpec) {
        let version = |(name, digest): (&Name, &Digest)| {
            let stays = self.spec.keys.get(name) == Some(digest);
            let known = self.key_versions.get(name).copied().filter(|_| stays);
            (name.clone(), known.unwrap_or(number))
        };
        self.key_versions = spec.keys.iter().map(version).collect();
        self.spec = spec;
    }
}

impl Model {
    /// A model that release `version` brings, with the default configuration.
    pub(crate) fn new(digest: Digest, version: u64) -> Self {
        let config = ModelConfig::default();
        Self { digest, version, earlier_versions: Vec::new(), config, unloaded: false }
    }
}

impl Desired {
    /// Apply the changes of release `number`, in order.
    ///
    /// # Errors
    /// A change names something that is not there, or a configuration is out of its ranges. The
    /// state is then partly changed, so apply changes to a copy.
    pub fn apply(&mut self, number: u64, changes: &[Change]) -> Result<(), ControlError> {
        changes.iter().try_for_each(|change| self.apply_one(number, change))
    }

    /// The state with these tenants and models.
    pub(crate) fn of(tenants: BTreeMap<Name, Arc<Tenant>>, models: BTreeMap<Name, Model>) -> Self {
        let mut key_owners = HashMap::<_, BTreeSet<_>>::new();
        for (name, tenant) in &tenants {
            for key in tenant.spec.keys.values() {
                key_owners.entry(*key).or_default().insert(name.clone());
            }
        }
        Self { tenants, models, key_owners: Arc::new(key_owners) }
    }

    fn apply_one(&mut self, number: u64, change: &Change) -> Result<(), ControlError> {
        let (Change::PutTenant { tenant, .. }
        | Change::DeleteTenant { tenant }
        | Change::PutKey { tenant, .. }
        | Change::DeleteKey { tenant, .. }) = change
        else {
            return self.apply_unkeyed(number, change);
        };
        let before = self.keys_of(tenant);
        self.apply_unkeyed(number, change)?;
        let after = self.keys_of(tenant);
        if before != after {
            let owners = Arc::make_mut(&mut self.key_owners);
            for key in &before {
                if let Some(own) = owners.get_mut(key) {
                    own.remove(tenant);
                }
            }
            for key in after {
                owners.entry(key).or_default().insert(tenant.clone());
            }
            for key in before {
                if owners.get(&key).is_some_and(BTreeSet::is_empty) {
                    owners.remove(&key);
                }
            }
        }
        Ok(())
    }

    fn keys_of(&self, tenant: &Name) -> Vec<Digest> {
        let own = self.tenants.get(tenant);
        own.map_or_else(Vec::new, |own| own.spec.keys.values().copied().collect())
    }

    /// Apply the change to the tenants and models.
    fn apply_unkeyed(&mut self, number: u64, change: &Change) -> Result<(), ControlError> {
        match change {
            Change::PutTenant { tenant, spec } => {
                let owner = self.tenants.entry(tenant.clone()).or_default();
                Arc::make_mut(owner).put(number, spec.clone());
            }
            Change::PutKey { tenant, key, digest } => {
                let owner = self.tenant(tenant)?;
                let mut spec = owner.spec.clone();
                spec.keys.insert(key.clone(), *digest);
                owner.put(number, spec);
            }
            Change::DeleteKey { tenant, key } => {
                let owner = self.tenant(tenant)?;
                let removed = owner.spec.keys.remove(key);
                removed.ok_or_else(|| ControlError::not_found("key", key))?;
                owner.key_versions.remove(key);
            }
            Change::DeleteTenant { tenant } => {
                self.tenants
                    .remove(tenant)
                    .ok_or_else(|| ControlError::not_found("tenant", tenant))?;
            }
            Change::PutPlugin { tenant, plugin, digest } => {
                let plugins = &mut self.tenant(tenant)?.plugins;
                if plugins.get(plugin).is_none_or(|known| known.digest != *digest) {
                    let new = Plugin { digest: *digest, version: number };
                    plugins.insert(plugin.clone(), new);
                }
            }
            Change::DeletePlugin { tenant, plugin } => {
                let removed = self.tenant(tenant)?.plugins.remove(plugin);
                removed.ok_or_else(|| ControlError::not_found("plugin", plugin))?;
            }
            Change::PutPipeline { tenant, pipeline, spec } => {
                self.tenant(tenant)?.pipelines.insert(pipeline.clone(), spec.clone());
            }
            Change::DeletePipeline { tenant, pipeline } => {
                let removed = self.tenant(tenant)?.pipelines.remove(pipeline);
                removed.ok_or_else(|| ControlError::not_found("pipeline", pipeline))?;
            }
            Change::PutModel { model, digest } => match self.models.get_mut(model) {
                Some(known) if known.digest == *digest => {}
                Some(known) => {
                    if known.version != number {
                        known.earlier_versions.push(known.version);
                    }
                    (known.digest, known.version) = (*digest, number);
                }
                None => {
                    self.models.insert(model.clone(), Model::new(*digest, number));
                }
            },
            Change::PutModelConfig { model, config } => {
                let faults = config.faults();
                if !faults.is_empty() {
                    return Err(ControlError::Invalid(faults));
                }
                self.model(model)?.config = config.clone();
            }
            Change::DeleteModel { model } => {
                self.models.remove(model).ok_or_else(|| ControlError::not_found("model", model))?;
            }
            Change::LoadModel { model } => self.model(model)?.unloaded = false,
            Change::UnloadModel { model } => self.model(model)?.unloaded = true,
        }
        Ok(())
    }

    /// The uploaded files of all plugins and models.
    pub(crate) fn files(&self) -> HashSet<Digest> {
        let models = self.models.values().map(|model| model.digest);
        let plugins = self.tenants.values().flat_map(|tenant| tenant.plugins.values());
        plugins.map(|plugin| plugin.digest).chain(models).collect()
    }

    /// A tenant other than `tenant` that has this key.
    pub(crate) fn other_owner(&self, tenant: &Name, key: Digest) -> Option<&Name> {
        self.key_owners.get(&key)?.iter().find(|owner| *owner != tenant)
    }

    fn tenant(&mut self, name: &Name) -> Result<&mut Tenant, ControlError> {
        let owner = self.tenants.get_mut(name).map(Arc::make_mut);
        owner.ok_or_else(|| ControlError::not_found("tenant", name))
    }

    fn model(&mut self, name: &Name) -> Result<&mut Model, ControlError> {
        self.models.get_mut(name).ok_or_else(|| ControlError::not_found("model", name))
    }
}

#[cfg(test)]
mod tests;
