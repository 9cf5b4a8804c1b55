//! The desired state: the result of all releases so far. Pure data, pure functions.
//!
//! It says what should serve, by names and digests. Refuses to know whether it can be loaded, and
//! which changes are allowed: `plan` decides that. Replaying the log applies each change that an
//! earlier version has made.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use gristmill_core::{Digest, HashKeyId, KeyHash, Name};
use serde::{Deserialize, Serialize};

use crate::error::ControlError;
use crate::release::change::Change;
use crate::release::model_config::ModelConfig;
use crate::release::pipeline::PipelineSpec;
use crate::release::tenant::TenantSpec;
use crate::release::token::TokenSpec;

/// Everything that should serve.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The tenants by name. A state shares those that a change does not touch with the state before
    /// it.
    pub tenants: BTreeMap<Name, Arc<Tenant>>,
    /// The models by name.
    pub models: BTreeMap<Name, Model>,
    /// The admin tokens by name, without the one that the server was started with.
    pub tokens: Arc<BTreeMap<Name, Token>>,
    /// The tenants that have a key. It follows from `tenants`.
    key_owners: Arc<HashMap<KeyHash, BTreeSet<Name>>>,
}

impl PartialEq for Desired {
    fn eq(&self, other: &Self) -> bool {
        let mut names = self.tenants.keys().zip(other.tenants.keys());
        let mut tenants = self.tenants.values().zip(other.tenants.values());
        self.models == other.models
            && self.tokens == other.tokens
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

/// An admin token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Its rights, and the hash of its secret.
    pub spec: TokenSpec,
    /// The release that brought its secret.
    pub version: u64,
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
        let version = |(name, hash): (&Name, &KeyHash)| {
            let stays = self.spec.keys.get(name) == Some(hash);
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

    /// The state with these tenants, models and tokens.
    pub(crate) fn of(
        tenants: BTreeMap<Name, Arc<Tenant>>,
        models: BTreeMap<Name, Model>,
        tokens: BTreeMap<Name, Token>,
    ) -> Self {
        let mut key_owners = HashMap::<_, BTreeSet<_>>::new();
        for (name, tenant) in &tenants {
            for key in tenant.spec.keys.values() {
                key_owners.entry(*key).or_default().insert(name.clone());
            }
        }
        Self { tenants, models, tokens: tokens.into(), key_owners: Arc::new(key_owners) }
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

    fn keys_of(&self, tenant: &Name) -> Vec<KeyHash> {
        let own = self.tenants.get(tenant);
        own.map_or_else(Vec::new, |own| own.spec.keys.values().copied().collect())
    }

    /// Apply the change to the tenants and models.
    fn apply_unkeyed(&mut self, number: u64, change: &Change) -> Result<(), ControlError> {
        match change {
            Change::PutTenant { tenant, spec } => {
                let new = || Arc::new(Tenant { since: number, ..Tenant::default() });
                let owner = self.tenants.entry(tenant.clone()).or_insert_with(new);
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
            Change::PutToken { token, spec } => {
                let known = self.tokens.get(token).filter(|known| known.spec.hash == spec.hash);
                let version = known.map_or(number, |known| known.version);
                let new = Token { spec: spec.clone(), version };
                Arc::make_mut(&mut self.tokens).insert(token.clone(), new);
            }
            Change::DeleteToken { token } => {
                let removed = Arc::make_mut(&mut self.tokens).remove(token);
                removed.ok_or_else(|| ControlError::not_found("token", token))?;
            }
        }
        Ok(())
    }

    /// The uploaded files of all plugins and models.
    pub(crate) fn files(&self) -> HashSet<Digest> {
        let models = self.models.values().map(|model| model.digest);
        let plugins = self.tenants.values().flat_map(|tenant| tenant.plugins.values());
        plugins.map(|plugin| plugin.digest).chain(models).collect()
    }

    /// A tenant other than `tenant` that has the key with this hash.
    pub(crate) fn other_owner(&self, tenant: &Name, key: KeyHash) -> Option<&Name> {
        self.key_owners.get(&key)?.iter().find(|owner| *owner != tenant)
    }

    /// The names of the secrets with which hashes of keys and tokens were made.
    pub(crate) fn hash_keys(&self) -> BTreeSet<HashKeyId> {
        let keys = self.tenants.values().flat_map(|own| own.spec.keys.values());
        let tokens = self.tokens.values().map(|token| &token.spec.hash);
        keys.chain(tokens).filter_map(KeyHash::hash_key).collect()
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
