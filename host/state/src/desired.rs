//! The desired state: the result of all releases so far. Pure data, pure functions.
//!
//! It says what should serve, by names and digests. Refuses to know whether it can be loaded, and
//! which changes are allowed: `plan` decides that. Replaying the log applies each change that an
//! earlier version has made. `tenant` is what a tenant has, `versions` which versions of a plugin
//! or a model stay, `index` what follows from all tenants.
//!
//! Invariant: after a release, a version of a plugin, an asset or a model is there only if it is
//! the newest one, its version policy keeps it, or a pipeline names it.

mod index;
pub(crate) mod tenant;
mod versions;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use gristmill_core::{Digest, HashKeyId, KeyHash, Name};
use rpds::RedBlackTreeMapSync;
use serde::{Deserialize, Serialize};

use crate::desired::index::{Held, Index, pins_of};
pub use crate::desired::tenant::{Tenant, TenantFile};
use crate::error::StateError;
use crate::release::change::Change;
use crate::release::model_config::ModelConfig;
use crate::release::token::TokenSpec;

/// Everything that should serve.
#[derive(Clone, Debug, Default)]
pub struct Desired {
    /// The tenants by name. A state shares those that a change does not touch with the state before
    /// it, and copying a state takes the same time for any number of tenants.
    pub tenants: RedBlackTreeMapSync<Name, Arc<Tenant>>,
    /// The models by name.
    pub models: BTreeMap<Name, Model>,
    /// The admin tokens by name, without the one that the server was started with.
    pub tokens: Arc<BTreeMap<Name, Token>>,
    /// It follows from `tenants`, but for what it says of changes.
    index: Index,
}

impl PartialEq for Desired {
    fn eq(&self, other: &Self) -> bool {
        let mut tenants = self.tenants.iter();
        self.models == other.models
            && self.tokens == other.tokens
            && self.tenants.size() == other.tenants.size()
            && tenants.all(|(name, tenant)| tenant::is_same(Some(tenant), other.tenants.get(name)))
    }
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

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The digest of the newest version's file.
    pub digest: Digest,
    /// The newest version: the release that brought this content, or the number that was chosen.
    pub version: u64,
    /// The earlier versions, in order.
    pub earlier_versions: Vec<u64>,
    /// The files of the earlier versions that stay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<u64, Digest>,
    /// How it is loaded, and how requests are batched.
    pub config: ModelConfig,
    /// Whether it was taken out of service.
    pub unloaded: bool,
}

impl Model {
    /// A model that release `version` brings, with the default configuration.
    pub fn new(digest: Digest, version: u64) -> Self {
        let (config, kept) = (ModelConfig::default(), BTreeMap::new());
        Self { digest, version, earlier_versions: Vec::new(), kept, config, unloaded: false }
    }

    /// The versions that stay and their files, the newest last.
    pub fn versions(&self) -> impl Iterator<Item = (u64, Digest)> {
        versions::all(&self.kept, (self.version, self.digest))
    }

    /// The file of a version. None if the version does not stay.
    pub fn file(&self, version: u64) -> Option<Digest> {
        self.versions().find(|(number, _)| *number == version).map(|(_, file)| file)
    }

    /// Take new content, which release `number` brings, as the version `chosen`. The content of a
    /// version that is there is replaced.
    fn put(&mut self, number: u64, digest: Digest, chosen: Option<u64>) {
        let version = match chosen {
            Some(version) => version,
            None if self.digest == digest => return,
            // A version that was chosen may be higher than the release's number.
            None if self.version > number => self.version + 1,
            None => number,
        };
        if self.version != version {
            self.earlier_versions.push(self.version);
            self.kept.insert(self.version, self.digest);
        }
        (self.digest, self.version) = (digest, version);
    }

    /// Take an earlier version back.
    fn put_version(&mut self, version: u64, digest: Digest) {
        if version < self.version {
            self.kept.insert(version, digest);
            if let Err(place) = self.earlier_versions.binary_search(&version) {
                self.earlier_versions.insert(place, version);
            }
        }
    }
}

impl Desired {
    /// Apply all changes of release `number`, in order.
    ///
    /// # Errors
    /// As for [`Self::apply_some`].
    pub fn apply(&mut self, number: u64, changes: &[Change]) -> Result<(), StateError> {
        self.apply_some(number, changes)?;
        self.prune(changes);
        Ok(())
    }

    /// Apply some changes of release `number`, in order. After the last ones, [`Self::prune`].
    ///
    /// # Errors
    /// A change names something that is not there, or a configuration is out of its ranges. The
    /// state is then partly changed, so apply changes to a copy.
    pub fn apply_some(&mut self, number: u64, changes: &[Change]) -> Result<(), StateError> {
        changes.iter().try_for_each(|change| self.apply_one(number, change))
    }

    /// Drop the versions that nothing keeps after a release of these changes.
    pub fn prune(&mut self, changes: &[Change]) {
        let Self { tenants, models, index, .. } = self;
        for (name, model) in models {
            let policy = &model.config.version_policy;
            versions::prune(&mut model.kept, policy, |version| index.is_pinned(name, version));
        }
        // The versions of a tenant's files depend on nothing but the tenant.
        let changed: BTreeSet<_> = changes.iter().filter_map(Change::tenant).collect();
        for name in changed {
            let Some(tenant) = tenants.get(name) else { continue };
            let Some(pruned) = tenant.pruned() else { continue };
            let before = Held::of(Some(&**tenant));
            index.follow(name, before, Held::of(Some(&pruned)));
            tenants.insert_mut(name.clone(), pruned.into());
        }
    }

    /// The state with these tenants, models and tokens. All tenants count as touched.
    pub fn of(
        tenants: BTreeMap<Name, Arc<Tenant>>,
        models: BTreeMap<Name, Model>,
        tokens: BTreeMap<Name, Token>,
    ) -> Self {
        let mut index = Index::default();
        for (name, tenant) in &tenants {
            index.follow(name, Held::default(), Held::of(Some(tenant)));
        }
        Self { tenants: tenants.into_iter().collect(), models, tokens: tokens.into(), index }
    }

    fn apply_one(&mut self, number: u64, change: &Change) -> Result<(), StateError> {
        let Some(tenant) = change.tenant() else { return self.make(number, change) };
        if let Change::PutPipeline { pipeline, .. } | Change::DeletePipeline { pipeline, .. } =
            change
        {
            let pins = |state: &Self| {
                let spec =
                    state.tenants.get(tenant).and_then(|tenant| tenant.pipelines.get(pipeline));
                spec.map(|spec| pins_of(spec)).unwrap_or_default()
            };
            let before = pins(self);
            self.make(number, change)?;
            let after = pins(self);
            self.index.follow_pins(before, after);
            self.index.touch(tenant);
            return Ok(());
        }
        // Not the tenant itself: a tenant with two holders is copied when it changes.
        let held = |state: &Self| Held::of(state.tenants.get(tenant).map(|tenant| &**tenant));
        let before = held(self);
        self.make(number, change)?;
        let after = held(self);
        self.index.follow(tenant, before, after);
        Ok(())
    }

    /// Change the tenants, the models or the tokens.
    fn make(&mut self, number: u64, change: &Change) -> Result<(), StateError> {
        match change {
            Change::PutTenant { tenant, spec } => {
                if !self.tenants.contains_key(tenant) {
                    let new = Tenant { since: number, ..Tenant::default() };
                    self.tenants.insert_mut(tenant.clone(), new.into());
                }
                self.tenant(tenant)?.put(number, spec.clone());
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
                removed.ok_or_else(|| StateError::not_found("key", key))?;
                owner.key_versions.remove(key);
            }
            Change::DeleteTenant { tenant } => {
                let is_removed = self.tenants.remove_mut(tenant);
                is_removed.then_some(()).ok_or_else(|| StateError::not_found("tenant", tenant))?;
            }
            Change::PutPlugin { tenant, plugin, digest } => {
                TenantFile::put_among(&mut self.tenant(tenant)?.plugins, plugin, number, *digest);
            }
            Change::PutPluginVersion { tenant, plugin, version, digest } => {
                let entry = self.tenant(tenant)?.plugins.get_mut(plugin);
                let entry = entry.ok_or_else(|| StateError::not_found("plugin", plugin))?;
                entry.put_version(*version, *digest);
            }
            Change::DeletePlugin { tenant, plugin } => {
                let removed = self.tenant(tenant)?.plugins.remove(plugin);
                removed.ok_or_else(|| StateError::not_found("plugin", plugin))?;
            }
            Change::PutAsset { tenant, asset, digest } => {
                TenantFile::put_among(&mut self.tenant(tenant)?.assets, asset, number, *digest);
            }
            Change::PutAssetVersion { tenant, asset, version, digest } => {
                let entry = self.tenant(tenant)?.assets.get_mut(asset);
                let entry = entry.ok_or_else(|| StateError::not_found("asset", asset))?;
                entry.put_version(*version, *digest);
            }
            Change::DeleteAsset { tenant, asset } => {
                let removed = self.tenant(tenant)?.assets.remove(asset);
                removed.ok_or_else(|| StateError::not_found("asset", asset))?;
            }
            Change::PutPipeline { tenant, pipeline, spec } => {
                self.tenant(tenant)?.pipelines.insert(pipeline.clone(), spec.clone());
            }
            Change::DeletePipeline { tenant, pipeline } => {
                let removed = self.tenant(tenant)?.pipelines.remove(pipeline);
                removed.ok_or_else(|| StateError::not_found("pipeline", pipeline))?;
            }
            Change::PutModel { model, digest, version } => match self.models.get_mut(model) {
                Some(model) => model.put(number, *digest, *version),
                None => {
                    let new = Model::new(*digest, version.unwrap_or(number));
                    self.models.insert(model.clone(), new);
                }
            },
            Change::PutModelVersion { model, version, digest } => {
                self.model(model)?.put_version(*version, *digest);
            }
            Change::PutModelConfig { model, config } => {
                let faults = config.faults();
                if !faults.is_empty() {
                    return Err(StateError::Invalid(faults));
                }
                self.model(model)?.config = ModelConfig::clone(config);
            }
            Change::DeleteModel { model } => {
                self.models.remove(model).ok_or_else(|| StateError::not_found("model", model))?;
            }
            Change::LoadModel { model } => self.model(model)?.unloaded = false,
            Change::UnloadModel { model } => self.model(model)?.unloaded = true,
            Change::PutToken { token, spec } => {
                let before = self.tokens.get(token).filter(|token| token.spec.hash == spec.hash);
                let version = before.map_or(number, |token| token.version);
                let new = Token { spec: spec.clone(), version };
                Arc::make_mut(&mut self.tokens).insert(token.clone(), new);
            }
            Change::DeleteToken { token } => {
                let removed = Arc::make_mut(&mut self.tokens).remove(token);
                removed.ok_or_else(|| StateError::not_found("token", token))?;
            }
        }
        Ok(())
    }

    /// The uploaded files of all versions of plugins, assets and models.
    pub fn files(&self) -> HashSet<Digest> {
        let models = self.models.values().flat_map(Model::versions);
        let tenants = self.tenants.values().flat_map(|tenant| tenant.files());
        let files = tenants.flat_map(TenantFile::versions).chain(models);
        files.map(|(_, digest)| digest).collect()
    }

    /// The tenants that have the key with this hash, in the order of their names.
    pub fn owners(&self, key: KeyHash) -> impl Iterator<Item = &Name> {
        self.index.owners(key)
    }

    /// A tenant other than `tenant` that has the key with this hash.
    pub fn other_owner(&self, tenant: &Name, key: KeyHash) -> Option<&Name> {
        self.owners(key).find(|owner| *owner != tenant)
    }

    /// Whether some keys have hashes that are [`KeyHash::Plain`].
    pub fn has_plain_keys(&self) -> bool {
        self.index.has_plain_keys()
    }

    /// Whether a version of a plugin has this file.
    pub fn has_plugin(&self, file: Digest) -> bool {
        self.index.has_plugin(file)
    }

    /// The tenants that have changed since the state was settled, and those that share a key with
    /// one. All others are those of the state that was settled.
    pub fn touched(&self) -> &BTreeSet<Name> {
        self.index.touched()
    }

    /// This state, which was not made from `before` by changes: all tenants of both count as
    /// touched.
    pub fn in_place_of(mut self, before: &Self) -> Self {
        let names = before.touched().iter().chain(before.tenants.keys());
        for name in names.chain(self.tenants.keys()) {
            self.index.touch(name);
        }
        self
    }

    /// This state is served now: count changes from here.
    pub fn settle(&mut self) {
        self.index.settle();
    }

    /// Whether it serves the same as `settled`, the state that it was made from by changes.
    pub fn is_still(&self, settled: &Self) -> bool {
        let is_same =
            |name: &Name| tenant::is_same(self.tenants.get(name), settled.tenants.get(name));
        self.models == settled.models
            && self.tokens == settled.tokens
            && self.touched().iter().all(is_same)
    }

    /// The names of the secrets with which hashes of keys and tokens were made.
    pub fn hash_keys(&self) -> BTreeSet<HashKeyId> {
        let keys = self.tenants.values().flat_map(|tenant| tenant.spec.keys.values());
        let tokens = self.tokens.values().map(|token| &token.spec.hash);
        keys.chain(tokens).filter_map(KeyHash::hash_key).collect()
    }

    fn tenant(&mut self, name: &Name) -> Result<&mut Tenant, StateError> {
        let owner = self.tenants.get_mut(name).map(Arc::make_mut);
        owner.ok_or_else(|| StateError::not_found("tenant", name))
    }

    fn model(&mut self, name: &Name) -> Result<&mut Model, StateError> {
        self.models.get_mut(name).ok_or_else(|| StateError::not_found("model", name))
    }
}

#[cfg(test)]
mod tests;
