//! The loaders of plugins, assets and models, and their progress.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gristmill_core::{Digest, Name};
use gristmill_sandbox::Plugin;
use gristmill_state::{Desired, Serving};
use gristmill_store::Received;

use crate::load::assets::{Assets, Brought, FileKey, Payer};
use crate::load::error::Loaded;
use crate::load::models::Models;
use crate::load::plugins::Plugins;
use crate::load::progress::Progress;

/// Loads what releases name.
pub(crate) struct Loader {
    pub(crate) plugins: Plugins,
    pub(crate) assets: Assets,
    pub(crate) models: Models,
    pub(crate) progress: Progress,
}

/// A plugin of a tenant, which may be one of other tenants, too.
#[derive(Clone)]
pub(crate) struct TenantPlugin {
    pub(crate) plugin: Arc<Plugin>,
    /// The files that it brings. The tenant holds them.
    pub(crate) brought: Arc<Brought>,
}

impl Loader {
    /// These tenants of `desired`, as those that load files. `serving` is as for
    /// [`Assets::payer`].
    pub(crate) fn payers(
        &self,
        desired: &Desired,
        tenants: &BTreeSet<Name>,
        serving: Option<&Serving>,
    ) -> BTreeMap<Name, Payer> {
        let payer = |name: &Name| {
            let id = (name.clone(), desired.tenants.get(name)?.since);
            Some((name.clone(), self.assets.payer(id, serving)))
        };
        tenants.iter().filter_map(payer).collect()
    }

    /// The plugin, or the reason why it is not loaded. None if neither is known. Never waits.
    pub(crate) fn known_plugin(&self, key: &FileKey) -> Option<Loaded<TenantPlugin>> {
        match (self.plugins.known(key.1), self.assets.known_brought(key)) {
            (Some(Ok(plugin)), Some(Ok(brought))) => Some(Ok(TenantPlugin { plugin, brought })),
            (Some(Err(fault)), _) | (_, Some(Err(fault))) => Some(Err(fault)),
            _ => None,
        }
    }

    /// The plugin of this digest, which a release names.
    pub(crate) async fn plugin(&self, payer: &Payer, digest: Digest) -> Loaded<TenantPlugin> {
        let plugin = self.plugins.get(digest).await?;
        let brought = self.assets.bring(payer, digest, &plugin)?;
        Ok(TenantPlugin { plugin, brought })
    }

    /// The plugin in this file. Hold it until a release names it.
    pub(crate) async fn new_plugin(&self, payer: &Payer, file: &Received) -> Loaded<TenantPlugin> {
        let plugin = self.plugins.new_file(file).await?;
        let brought = self.assets.bring(payer, file.digest(), &plugin)?;
        Ok(TenantPlugin { plugin, brought })
    }
}
