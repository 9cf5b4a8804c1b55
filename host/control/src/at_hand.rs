//! What a change has at hand of what a state names: loaded, or known to fail.
//!
//! A look-up is quick and waits for nothing, so it is done under the control plane's lock. Loading is
//! slow, so it is not. What is at hand stays loaded, and what failed is not tried again, until the change is
//! made.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::Plugin;
use gristmill_snapshot::ServedModel;

use crate::desired::{Desired, Model};
use crate::loader::Loader;
use crate::models::{LaneKey, ModelFault, key_of};

/// Models and plugins, each with why there is none.
#[derive(Default)]
pub(crate) struct AtHand {
    models: HashMap<LaneKey, Result<ServedModel, String>>,
    plugins: HashMap<Digest, Result<Arc<Plugin>, String>>,
}

impl AtHand {
    /// Take what is known of all that `desired` names; whether nothing of it is missing then.
    pub(crate) fn look_up(&mut self, loader: &Loader, desired: &Desired) -> bool {
        let mut is_whole = true;
        for key in models_of(desired) {
            if let Some(known) = loader.models.known(&key) {
                self.models.insert(key, known.map_err(ModelFault::into_text));
            } else {
                is_whole &= self.models.contains_key(&key);
            }
        }
        for digest in plugins_of(desired) {
            if let Some(known) = loader.known_plugin(digest) {
                self.plugins.insert(digest, known.map_err(|fault| fault.why));
            } else {
                is_whole &= self.plugins.contains_key(&digest);
            }
        }
        is_whole
    }

    /// Load what `desired` names and is not at hand.
    pub(crate) async fn load(&mut self, loader: &Loader, desired: &Desired) {
        loader.progress.begin_build(desired);
        for (name, model) in &desired.models {
            let key = key_of(name, model);
            if !model.unloaded && !self.models.contains_key(&key) {
                let served = loader.models.get(name, model).await;
                self.models.insert(key, served.map_err(ModelFault::into_text));
            }
            loader.progress.loaded();
        }
        for digest in plugins_of(desired) {
            if let Entry::Vacant(place) = self.plugins.entry(digest) {
                let plugin = loader.plugin(digest).await;
                place.insert(plugin.map_err(|fault| fault.why));
            }
            loader.progress.loaded();
        }
    }

    /// This model with its lane.
    pub(crate) fn model(&self, name: &Name, model: &Model) -> Result<ServedModel, String> {
        if model.unloaded {
            return Err("it was unloaded".into());
        }
        let known = self.models.get(&key_of(name, model));
        known.cloned().unwrap_or_else(|| Err("it is not loaded".into()))
    }

    /// The plugin of this digest.
    pub(crate) fn plugin(&self, digest: Digest) -> Result<Arc<Plugin>, String> {
        let known = self.plugins.get(&digest);
        known.cloned().unwrap_or_else(|| Err("it is not loaded".into()))
    }
}

fn models_of(desired: &Desired) -> impl Iterator<Item = LaneKey> {
    let loaded = desired.models.iter().filter(|(_, model)| !model.unloaded);
    loaded.map(|(name, model)| key_of(name, model))
}

fn plugins_of(desired: &Desired) -> impl Iterator<Item = Digest> {
    desired.tenants.values().flat_map(|tenant| tenant.plugins.values().copied())
}
