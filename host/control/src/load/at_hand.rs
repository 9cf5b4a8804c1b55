//! The plugins, assets and models of a state that a change has at hand: loaded, or known to fail.
//!
//! A look-up is quick and does not wait, so it is done under the control plane's lock. Loading is
//! slow, so it is done outside the lock. Until the change is made, all that is at hand stays
//! loaded, and what failed is not tried again.
//!
//! Invariant: a change loads at most [`MODELS_AT_ONCE`] models, [`PLUGINS_AT_ONCE`] plugins and
//! [`ASSETS_AT_ONCE`] assets side by side.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use gristmill_core::{Digest, Name};
use gristmill_sandbox::{Asset, Plugin};
use gristmill_snapshot::ServedModel;
use gristmill_state::{Desired, Model, ModelConfig, Needs};

use crate::load::error::{LoadError, Loaded};
use crate::load::loader::Loader;

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
    plugins: HashMap<Digest, Loaded<Arc<Plugin>>>,
    assets: HashMap<Digest, Loaded<Arc<Asset>>>,
    /// Of models that are not in service.
    proofs: HashMap<ModelKey, Loaded<()>>,
    /// Whether files that the store did not give before are fetched again.
    retries: bool,
}

/// A version of a model of a desired state, as far as it decides what serves it.
type ModelKey = (Name, Digest, ModelConfig);

impl AtHand {
    /// Nothing yet. `retries`: files that the store did not give before are fetched again.
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
            if let Some(loaded) = loaded.filter(|loaded| !(self.retries && is_unread(loaded))) {
                self.models.insert(key, loaded);
            } else {
                is_whole &= self.models.contains_key(&key);
            }
        }
        for digest in plugins.into_keys() {
            let loaded = loader.plugins.known(digest);
            if let Some(loaded) = loaded.filter(|loaded| !(self.retries && is_unread(loaded))) {
                self.plugins.insert(digest, loaded);
            } else {
                is_whole &= self.plugins.contains_key(&digest);
            }
        }
        for digest in assets.into_keys() {
            match loader.assets.known(digest) {
                Some(asset) => drop(self.assets.insert(digest, Ok(asset))),
                None => is_whole &= self.assets.contains_key(&digest),
            }
        }
        is_whole
    }

    /// Load the models of `desired` and the files of these tenants that are not at hand.
    pub(crate) async fn load(
        &mut self,
        loader: &Loader,
        desired: &Desired,
        tenants: &BTreeSet<Name>,
    ) {
        let needs = Needs::of(desired, tenants);
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
        for (digest, names) in needs.plugins {
            match self.plugins.contains_key(&digest) {
                true => progress.loaded(names),
                false => plugins.push((digest, names)),
            }
        }
        let mut assets = Vec::new();
        for (digest, names) in needs.assets {
            match self.assets.contains_key(&digest) {
                true => progress.loaded(names),
                false => assets.push((digest, names)),
            }
        }
        let models = stream::iter(models).map(|key: ModelKey| async move {
            let (name, digest, config) = &key;
            let served = loader.models.get(name, *digest, config).await;
            progress.loaded(1);
            (key, served)
        });
        let plugins = stream::iter(plugins).map(|(digest, names)| async move {
            let plugin = loader.plugins.get(digest).await;
            progress.loaded(names);
            (digest, plugin)
        });
        let assets = stream::iter(assets).map(|(digest, names)| async move {
            let asset = loader.assets.get(digest).await;
            progress.loaded(names);
            (digest, asset)
        });
        let (models, plugins, assets) = tokio::join!(
            models.buffer_unordered(MODELS_AT_ONCE).collect::<Vec<_>>(),
            plugins.buffer_unordered(PLUGINS_AT_ONCE).collect::<Vec<_>>(),
            assets.buffer_unordered(ASSETS_AT_ONCE).collect::<Vec<_>>(),
        );
        self.models.extend(models);
        self.plugins.extend(plugins);
        self.assets.extend(assets);
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

    /// The plugin of this digest. None if it is not at hand.
    pub(crate) fn plugin(&self, digest: Digest) -> Option<Loaded<Arc<Plugin>>> {
        self.plugins.get(&digest).cloned()
    }

    /// The asset of this digest. None if it is not at hand.
    pub(crate) fn asset(&self, digest: Digest) -> Option<Loaded<Arc<Asset>>> {
        self.assets.get(&digest).cloned()
    }
}

fn is_unread<T>(loaded: &Loaded<T>) -> bool {
    loaded.as_ref().is_err_and(|fault| fault.is_unread())
}
