//! The plugins, assets and models of a state that a change has at hand: loaded, or known to fail.
//!
//! A look-up is quick and does not wait, so it is done under the control plane's lock. Loading is
//! slow, so it is done outside the lock. Until the change is made, all that is at hand stays
//! loaded, and what failed is not tried again.
//!
//! Invariant: a change loads at most [`MODELS_AT_ONCE`] models, [`PLUGINS_AT_ONCE`] plugins and
//! [`ASSETS_AT_ONCE`] assets side by side.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use gristmill_core::{Digest, Name};
use gristmill_sandbox::Asset;
use gristmill_snapshot::ServedModel;
use gristmill_state::{Desired, Model, ModelConfig, NeededFile, Needs};

use crate::load::assets::{FileKey, Payer};
use crate::load::error::{LoadError, Loaded};
use crate::load::loader::{Loader, TenantPlugin};

/// Maximum models that are loaded side by side. While a model is loaded, it is in memory several
/// times.
const MODELS_AT_ONCE: usize = 2;

/// Maximum plugins that are loaded side by side. Plugins that have to be compiled take turns
/// (`sandbox`); for the others only verifying the checksum takes time.
const PLUGINS_AT_ONCE: usize = 4;

/// Maximum assets that are loaded side by side.
const ASSETS_AT_ONCE: usize = 4;

/// Models, plugins and assets, each loaded or with the reason why it is not.
#[derive(Default)]
pub(crate) struct AtHand {
    models: HashMap<ModelKey, Loaded<ServedModel>>,
    plugins: HashMap<FileKey, Loaded<TenantPlugin>>,
    assets: HashMap<FileKey, Loaded<Arc<Asset>>>,
    /// Of models that are not in service.
    proofs: HashMap<ModelKey, Loaded<()>>,
    /// Whether what failed before is tried again, if another attempt may succeed.
    retries: bool,
}

/// A version of a model of a desired state, as far as it decides what serves it.
type ModelKey = (Name, Digest, ModelConfig);

impl AtHand {
    /// Nothing yet. `retries`: what failed before is tried again, if another attempt may succeed.
    pub(crate) fn retrying(retries: bool) -> Self {
        Self { retries, ..Self::default() }
    }

    /// Take all that is known about the models of `desired` and the files of these tenants.
    /// Returns whether all of them are at hand then.
    pub(crate) fn look_up(
        &mut self,
        loader: &Loader,
        desired: &Desired,
        tenants: &BTreeSet<Name>,
    ) -> bool {
        let Needs { models, plugins, assets } = Needs::of(desired, tenants);
        let mut is_whole = true;
        for ((name, digest), config) in models {
            let key = (name.clone(), digest, config.clone());
            let loaded = loader.models.known(name, digest, config);
            is_whole &= take(&mut self.models, key, loaded, self.retries);
        }
        for file in plugins.into_keys() {
            let key = key_of(file);
            let loaded = loader.known_plugin(&key);
            is_whole &= take(&mut self.plugins, key, loaded, self.retries);
        }
        for file in assets.into_keys() {
            let key = key_of(file);
            let loaded = loader.assets.known(&key);
            is_whole &= take(&mut self.assets, key, loaded, self.retries);
        }
        is_whole
    }

    /// Load the models of `desired` and the files of these tenants that are not at hand. Returns
    /// the number of those that are loaded.
    pub(crate) async fn load(
        &mut self,
        loader: &Loader,
        desired: &Desired,
        payers: BTreeMap<Name, Payer>,
    ) -> usize {
        let tenants: BTreeSet<_> = payers.keys().cloned().collect();
        let needs = Needs::of(desired, &tenants);
        let progress = &loader.progress;
        progress.begin(needs.names());
        let mut models = Vec::new();
        for ((name, digest), config) in needs.models {
            let key = (name.clone(), digest, config.clone());
            match self.models.contains_key(&key) {
                true => progress.loaded(1),
                false => models.push(key),
            }
        }
        let mut plugins = Vec::new();
        for (file, names) in needs.plugins {
            match payers.get(file.tenant).filter(|_| !self.plugins.contains_key(&key_of(file))) {
                Some(payer) => plugins.push((payer.clone(), file.digest, names)),
                None => progress.loaded(names),
            }
        }
        let mut assets = Vec::new();
        for (file, names) in needs.assets {
            match payers.get(file.tenant).filter(|_| !self.assets.contains_key(&key_of(file))) {
                Some(payer) => assets.push((payer.clone(), file.digest, names)),
                None => progress.loaded(names),
            }
        }
        let models = stream::iter(models).map(|key: ModelKey| async move {
            let (name, digest, config) = &key;
            let served = loader.models.get(name, *digest, config).await;
            progress.loaded(1);
            (key, served)
        });
        let plugins = stream::iter(plugins).map(
            |(payer, digest, names): (Payer, Digest, usize)| async move {
                let plugin = loader.plugin(&payer, digest).await;
                progress.loaded(names);
                ((payer.id, digest), plugin)
            },
        );
        let assets =
            stream::iter(assets).map(|(payer, digest, names): (Payer, Digest, usize)| async move {
                let asset = loader.assets.get(&payer, digest).await;
                progress.loaded(names);
                ((payer.id, digest), asset)
            });
        let (models, plugins, assets) = tokio::join!(
            models.buffer_unordered(MODELS_AT_ONCE).collect::<Vec<_>>(),
            plugins.buffer_unordered(PLUGINS_AT_ONCE).collect::<Vec<_>>(),
            assets.buffer_unordered(ASSETS_AT_ONCE).collect::<Vec<_>>(),
        );
        let loaded = models.iter().filter(|(_, model)| model.is_ok()).count()
            + plugins.iter().filter(|(_, plugin)| plugin.is_ok()).count()
            + assets.iter().filter(|(_, asset)| asset.is_ok()).count();
        self.models.extend(models);
        self.plugins.extend(plugins);
        self.assets.extend(assets);
        loaded
    }

    /// Whether the store did not give a file.
    pub(crate) fn lacks_files(&self) -> bool {
        self.models.values().any(is_unread)
            || self.plugins.values().any(is_unread)
            || self.assets.values().any(is_unread)
    }

    /// Prove these models, which are not in service.
    pub(crate) async fn prove(&mut self, loader: &Loader, models: Vec<(Name, Model)>) {
        for (name, model) in models {
            let Model { digest, config, .. } = model;
            let proof = loader.models.prove(digest, &config).await;
            self.proofs.insert((name, digest, config), proof);
        }
    }

    /// Whether the model was proven. None if nothing has tried it.
    pub(crate) fn proof(&self, name: &Name, model: &Model) -> Option<Loaded<()>> {
        let key = (name.clone(), model.digest, model.config.clone());
        self.proofs.get(&key).cloned()
    }

    /// The version of this model that has this file, with its lane.
    pub(crate) fn model(&self, name: &Name, model: &Model, file: Digest) -> Loaded<ServedModel> {
        if model.unloaded {
            return Err(LoadError::Unloaded.into());
        }
        let model = self.models.get(&(name.clone(), file, model.config.clone()));
        model.cloned().unwrap_or_else(|| Err(LoadError::NotLoaded.into()))
    }

    /// The plugin of a tenant. None if it is not at hand.
    pub(crate) fn plugin(&self, key: &FileKey) -> Option<Loaded<TenantPlugin>> {
        self.plugins.get(key).cloned()
    }

    /// The asset of a tenant. None if it is not at hand.
    pub(crate) fn asset(&self, key: &FileKey) -> Option<Loaded<Arc<Asset>>> {
        self.assets.get(key).cloned()
    }

    /// Why the file is not loaded, if its tenant holds too many bytes of assets.
    pub(crate) fn assets_held(&self, key: &FileKey) -> Option<Arc<LoadError>> {
        let plugin = self.plugins.get(key).and_then(|plugin| plugin.as_ref().err());
        let asset = self.assets.get(key).and_then(|asset| asset.as_ref().err());
        let held = |fault: &&Arc<LoadError>| matches!(***fault, LoadError::AssetsHeld { .. });
        plugin.into_iter().chain(asset).find(held).cloned()
    }
}

fn key_of(file: NeededFile<'_>) -> FileKey {
    ((file.tenant.clone(), file.since), file.digest)
}

/// Take what is known of a thing. With `retries`, a failure that may pass is not known. Returns
/// whether the thing is at hand then.
fn take<K: Eq + Hash, T>(
    at_hand: &mut HashMap<K, Loaded<T>>,
    key: K,
    outcome: Option<Loaded<T>>,
    retries: bool,
) -> bool {
    let may_pass = |loaded: &Loaded<T>| loaded.as_ref().is_err_and(|fault| fault.is_passing());
    match outcome.filter(|loaded| !(retries && may_pass(loaded))) {
        Some(loaded) => {
            at_hand.insert(key, loaded);
            true
        }
        None => at_hand.contains_key(&key),
    }
}

fn is_unread<T>(loaded: &Loaded<T>) -> bool {
    loaded.as_ref().is_err_and(|fault| fault.is_unread())
}
