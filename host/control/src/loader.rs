//! From digests to loaded plugins and, by way of `models`, to running lanes; each is loaded once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Digest, Name, PluginLimits};
use gristmill_sandbox::{Account, Grant, Plugin, Sandbox};
use gristmill_snapshot::{PipelineStatistics, ServedModel, Share};
use gristmill_store::{Store, StoreError};

use crate::desired::{Desired, Model};
use crate::models::{ModelFault, Models};

/// Plugin calls of one tenant that run at the same time, for each core.
const SLOTS_PER_CORE: usize = 8;

/// Loads what releases name. What fails says why, in words for whoever deployed it.
pub(crate) struct Loader {
    pub(crate) store: Arc<Store>,
    pub(crate) sandbox: Arc<Sandbox>,
    plugins: Mutex<HashMap<Digest, Arc<Plugin>>>,
    pub(crate) models: Models,
    shares: Mutex<HashMap<Name, Arc<Share>>>,
    /// Of each tenant's requests and answers under way.
    tenant_bytes_max: usize,
    pipeline_statistics: Mutex<HashMap<(Name, Name), Arc<PipelineStatistics>>>,
    /// What a plugin is instantiated with for the first time.
    probe_limits: PluginLimits,
}

impl Loader {
    pub(crate) fn new(
        store: Arc<Store>,
        sandbox: Arc<Sandbox>,
        models: Models,
        probe_limits: PluginLimits,
        tenant_bytes_max: usize,
    ) -> Self {
        Self {
            store,
            sandbox,
            models,
            plugins: Mutex::default(),
            shares: Mutex::default(),
            tenant_bytes_max,
            pipeline_statistics: Mutex::default(),
            probe_limits,
        }
    }

    /// The tenant's share of the host. Guests are bound by the processor, so a few for each core
    /// keep it busy; more would only let one tenant's runaway plugins crowd out the others.
    pub(crate) fn share(&self, tenant: &Name) -> Arc<Share> {
        let new = || Arc::new(new_share(self.tenant_bytes_max));
        lock(&self.shares).entry(tenant.clone()).or_insert_with(new).clone()
    }

    /// What counts the requests of a tenant's pipeline, whatever it is made of.
    pub(crate) fn pipeline_statistics(
        &self,
        tenant: &Name,
        pipeline: &Name,
    ) -> Arc<PipelineStatistics> {
        let key = (tenant.clone(), pipeline.clone());
        lock(&self.pipeline_statistics).entry(key).or_default().clone()
    }

    /// The plugin of this digest, compiled off the request threads where it is not loaded yet, and
    /// instantiated once.
    pub(crate) async fn plugin(&self, digest: Digest) -> Result<Arc<Plugin>, String> {
        if let Some(plugin) = lock(&self.plugins).get(&digest) {
            return Ok(plugin.clone());
        }
        let file = read_blob(&self.store, digest).await?;
        let sandbox = self.sandbox.clone();
        let loading = tokio::task::spawn_blocking(move || sandbox.load(digest, &file));
        let plugin =
            loading.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let plugin = Arc::new(plugin);
        // On an account of its own: a tenant that is busy can deploy all the same.
        let share = new_share(self.tenant_bytes_max);
        let grant = Grant { limits: &self.probe_limits, account: &share.calls };
        let probed = plugin.probe(grant).await;
        probed.map_err(|error| format!("cannot be instantiated: {error}"))?;
        lock(&self.plugins).insert(digest, plugin.clone());
        Ok(plugin)
    }

    /// This model with its lane, loaded off the request threads where there is none yet.
    pub(crate) async fn model(&self, name: &Name, model: &Model) -> Result<ServedModel, String> {
        if model.unloaded {
            return Err("it was unloaded".into());
        }
        self.models.get(name, model, false).await.map_err(ModelFault::into_text)
    }

    /// Let go of what `desired` no longer names; requests under way keep what they hold.
    pub(crate) fn forget_all_but(&self, desired: &Desired) {
        let named = |digest: &Digest| {
            let mut tenants = desired.tenants.values();
            tenants.any(|tenant| tenant.plugins.values().any(|known| known == digest))
        };
        lock(&self.plugins).retain(|digest, _| named(digest));
        lock(&self.shares).retain(|tenant, _| desired.tenants.contains_key(tenant));
        let has = |tenant: &Name, pipeline: &Name| {
            desired
                .tenants
                .get(tenant)
                .is_some_and(|tenant| tenant.pipelines.contains_key(pipeline))
        };
        lock(&self.pipeline_statistics).retain(|(tenant, pipeline), _| has(tenant, pipeline));
        self.models.forget_all_but(desired);
    }
}

/// An uploaded file. Where it cannot be read, tenants need not know where it was looked for.
pub(crate) async fn read_blob(store: &Store, digest: Digest) -> Result<Bytes, String> {
    store.blob(digest).await.map_err(|error| {
        tracing::error!(%digest, ?error, "an uploaded file cannot be read");
        match error {
            StoreError::Damaged { .. } => error.to_string(),
            _ => format!("its file {digest} cannot be read"),
        }
    })
}

fn new_share(bytes_max: usize) -> Share {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bytes = ByteBudget::new(bytes_max);
    let calls = Account::new(cores * SLOTS_PER_CORE, cores, bytes.clone());
    Share { calls, bytes }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
