//! What holds the memory of the server.

use std::collections::HashMap;
use std::sync::Arc;

use gristmill_metrics::{Collected, family};
use gristmill_snapshot::{ServedModel, Snapshot, Tenant};

use super::observed::Observed;

/// The memory of the server by what holds it, in bytes. Models, buffers and most of what tenants
/// hold lie in the memory of the allocator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryFigures {
    /// The requests, answers, tensors, images and plugin instances of all tenants, without
    /// those of shadows.
    pub(crate) tenants: u64,
    /// Compiled plugins: mapped files, whose pages the kernel can evict.
    pub(crate) plugin_files: u64,
    /// The files that plugins open.
    pub(crate) assets: u64,
    /// Memory of plugin instances that ended, kept for later ones.
    pub(crate) plugin_memories: u64,
    /// Tensor buffers that are free, kept for later requests.
    pub(crate) buffers: u64,
    /// The sessions of models, on the host: what loading them took, and the memory that their runs
    /// keep.
    pub(crate) models: u64,
    /// Values of stores, kept for a while.
    pub(crate) store_caches: u64,
}

impl MemoryFigures {
    pub(crate) fn read(observed: &Observed, snapshot: &Snapshot) -> Self {
        let tenants = snapshot.tenants.values().map(|tenant| tenant.quota.bytes.held() as u64);
        let files = snapshot.tenants.values().flat_map(|tenant| plugin_files(tenant));
        let files: HashMap<_, _> = files.collect();
        let assets = snapshot.tenants.values().flat_map(|tenant| tenant.asset_files());
        let assets = assets.map(|asset| asset.bytes());
        let assets = assets.map(|bytes| (bytes.as_ptr().addr(), bytes.len() as u64));
        // Tenants with the same file share its bytes.
        let assets: HashMap<_, _> = assets.collect();
        let models = snapshot.models.values().flat_map(|model| model.versions());
        let models = models.filter_map(|(_, served)| served.as_ref().ok());
        // Versions with the same file share their sessions.
        let sessions =
            |model: &ServedModel| (Arc::as_ptr(&model.providers).addr(), model_bytes(model));
        let models: HashMap<_, _> = models.map(sessions).collect();
        Self {
            tenants: tenants.sum(),
            plugin_files: files.values().sum(),
            assets: assets.values().sum(),
            plugin_memories: observed.control.plugin_memory_bytes() as u64,
            buffers: observed.pool.retained_bytes() as u64,
            models: models.values().sum(),
            store_caches: observed.control.stores().cached_bytes() as u64,
        }
    }

    pub(crate) fn collect(&self, collected: &mut Collected) {
        let Self { tenants, plugin_files, assets, plugin_memories, buffers, models, store_caches } =
            *self;
        for (part, bytes) in [
            ("tenants", tenants),
            ("plugin_files", plugin_files),
            ("assets", assets),
            ("plugin_memories", plugin_memories),
            ("buffers", buffers),
            ("models", models),
            ("store_caches", store_caches),
        ] {
            collected.add(family::MEMORY, &[part], bytes);
        }
    }
}

/// The size of the compiled files of a tenant's plugins. Other tenants may have the same ones.
pub(crate) fn plugin_file_bytes(tenant: &Tenant) -> u64 {
    plugin_files(tenant).collect::<HashMap<_, _>>().values().sum()
}

/// The memory of a model on all of its providers.
pub(crate) fn model_bytes(model: &ServedModel) -> u64 {
    model.providers.iter().map(|provider| provider.memory_bytes()).sum()
}

/// The size of each compiled file by its address. Plugins of several names or tenants share one.
fn plugin_files(tenant: &Tenant) -> impl Iterator<Item = (usize, u64)> {
    let versions = tenant.plugins.values().flat_map(|plugin| plugin.versions());
    let loaded = versions.filter_map(|(_, plugin)| plugin.as_ref().ok());
    loaded.map(|plugin| (Arc::as_ptr(plugin).addr(), plugin.mapped_bytes() as u64))
}
