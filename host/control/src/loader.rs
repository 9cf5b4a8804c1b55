//! From digests to loaded plugins and, by way of `models`, to running lanes; each is loaded once.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use gristmill_core::{ByteBudget, Digest, ErrorCode, Name, PluginLimits};
use gristmill_sandbox::{Account, Grant, Plugin, Sandbox};
use gristmill_snapshot::{PipelineStatistics, Share};
use gristmill_store::{Received, Store, StoreError};

use tokio::sync::OnceCell;

use crate::desired::Desired;
use crate::models::Models;
use crate::progress::Progress;

/// Plugin calls of one tenant that run at the same time, for each core.
const SLOTS_PER_CORE: usize = 8;

/// Loads what releases name. What fails says why, in words for whoever deployed it.
pub(crate) struct Loader {
    pub(crate) store: Arc<Store>,
    pub(crate) sandbox: Arc<Sandbox>,
    plugins: Mutex<HashMap<Digest, PluginSlot>>,
    pub(crate) models: Models,
    shares: Mutex<HashMap<Name, Arc<Share>>>,
    /// Of each tenant's requests and answers under way.
    tenant_bytes_max: usize,
    pipeline_statistics: Mutex<HashMap<(Name, Name), Arc<PipelineStatistics>>>,
    /// What a plugin is instantiated with for the first time.
    probe_limits: PluginLimits,
    pub(crate) progress: Progress,
}

/// What is known of a plugin. Those that hold it are the snapshots that serve it, and changes that
/// are being made.
#[derive(Default)]
struct PluginSlot {
    loaded: Weak<Plugin>,
    /// All who ask for it at the same time wait for one attempt, whose end they share.
    loading: Weak<OnceCell<Result<Arc<Plugin>, PluginFault>>>,
    /// Why it could not be loaded when a release asked for it. Further releases do not try again,
    /// which may take a minute each time; an upload does.
    failed: Option<PluginFault>,
}

/// Why a plugin is not loaded.
#[derive(Clone, Debug)]
pub(crate) struct PluginFault {
    pub(crate) why: String,
    pub(crate) code: ErrorCode,
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
            progress: Progress::default(),
        }
    }

    fn new_share(&self) -> Share {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // However many cores there are, the pool has places for others.
        let pool = self.sandbox.config().concurrent_calls as usize;
        let calls = (cores * SLOTS_PER_CORE).min(pool / 2).max(1);
        let bytes = ByteBudget::new(self.tenant_bytes_max);
        Share { calls: Account::new(calls, cores.min(calls), bytes.clone()), bytes }
    }

    /// The tenant's share of the host. Guests are bound by the processor, so a few for each core
    /// keep it busy; more would only let one tenant's runaway plugins crowd out the others.
    pub(crate) fn share(&self, tenant: &Name) -> Arc<Share> {
        let new = || Arc::new(self.new_share());
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

    /// The plugin of this digest, or why there is none, as far as that is known. Never waits.
    pub(crate) fn known_plugin(&self, digest: Digest) -> Option<Result<Arc<Plugin>, PluginFault>> {
        let plugins = lock(&self.plugins);
        let slot = plugins.get(&digest)?;
        slot.loaded.upgrade().map(Ok).or_else(|| slot.failed.clone().map(Err))
    }

    /// The plugin of this digest, which a release names.
    pub(crate) async fn plugin(&self, digest: Digest) -> Result<Arc<Plugin>, PluginFault> {
        let loaded = self.load_once(digest, None).await;
        if let Err(fault) = &loaded {
            lock(&self.plugins).entry(digest).or_default().failed = Some(fault.clone());
        }
        loaded
    }

    /// The plugin in this file; to be held until a release names it.
    pub(crate) async fn new_plugin(&self, file: &Received) -> Result<Arc<Plugin>, PluginFault> {
        self.load_once(file.digest(), Some(file)).await
    }

    /// Load the plugin, once for all who ask at the same time. Where the one who tries leaves, the
    /// next one tries.
    async fn load_once(
        &self,
        digest: Digest,
        file: Option<&Received>,
    ) -> Result<Arc<Plugin>, PluginFault> {
        let loading = {
            let mut plugins = lock(&self.plugins);
            let slot = plugins.entry(digest).or_default();
            if let Some(plugin) = slot.loaded.upgrade() {
                return Ok(plugin);
            }
            slot.loading.upgrade().unwrap_or_else(|| {
                let loading = Arc::default();
                slot.loading = Arc::downgrade(&loading);
                loading
            })
        };
        let loaded = loading.get_or_init(|| self.load_plugin(digest, file)).await.clone();
        let mut plugins = lock(&self.plugins);
        match &loaded {
            Ok(plugin) => {
                let slot = plugins.entry(digest).or_default();
                (slot.loaded, slot.failed) = (Arc::downgrade(plugin), None);
            }
            // A failure is not kept: who asks later tries anew.
            Err(_) => {
                drop(loading);
                plugins.retain(|_, slot| slot.is_of_use());
            }
        }
        loaded
    }

    /// Compile the plugin where its code is not cached, and instantiate it once.
    async fn load_plugin(
        &self,
        digest: Digest,
        file: Option<&Received>,
    ) -> Result<Arc<Plugin>, PluginFault> {
        let file = match file {
            Some(file) => read(file).await.map_err(PluginFault::host)?,
            None => read_blob(&self.store, digest).await.map_err(PluginFault::host)?,
        };
        let loaded = self.sandbox.load(digest, file).await;
        let plugin =
            loaded.map_err(|error| PluginFault { why: error.to_string(), code: error.code() })?;
        let plugin = Arc::new(plugin);
        // On an account of its own: a tenant that is busy can deploy all the same.
        let share = self.new_share();
        let grant = Grant { limits: &self.probe_limits, account: &share.calls, plugin: None };
        plugin.probe(grant).await.map_err(|error| PluginFault {
            why: format!("cannot be instantiated: {error}"),
            code: ErrorCode::InvalidPlugin,
        })?;
        Ok(plugin)
    }

    /// Remove the compiled code of plugins that neither `desired` names nor anybody holds.
    pub(crate) async fn collect_compiled(&self, desired: &Desired) {
        let tenants = desired.tenants.values();
        let mut keep: HashSet<_> =
            tenants.flat_map(|tenant| tenant.plugins.values().copied()).collect();
        let held = |slot: &PluginSlot| slot.loaded.strong_count() + slot.loading.strong_count() > 0;
        keep.extend(
            lock(&self.plugins).iter().filter(|(_, slot)| held(slot)).map(|(digest, _)| *digest),
        );
        if let Err(error) = self.sandbox.retain_compiled(keep).await {
            tracing::warn!(error = error.in_full(), "compiled code is not collected");
        }
    }

    /// Let go of what `desired` no longer names; requests under way keep what they hold.
    pub(crate) fn forget_all_but(&self, desired: &Desired) {
        let named = |digest: &Digest| {
            let mut tenants = desired.tenants.values();
            tenants.any(|tenant| tenant.plugins.values().any(|known| known == digest))
        };
        lock(&self.plugins).retain(|digest, slot| {
            if !named(digest) {
                slot.failed = None;
            }
            slot.is_of_use()
        });
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

async fn read(file: &Received) -> Result<Bytes, String> {
    file.read().await.map_err(|error| {
        tracing::error!(digest = %file.digest(), ?error, "an uploaded file cannot be read");
        error.to_string()
    })
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

impl PluginSlot {
    fn is_of_use(&self) -> bool {
        let holders = self.loaded.strong_count() + self.loading.strong_count();
        holders > 0 || self.failed.is_some()
    }
}

impl PluginFault {
    fn host(why: String) -> Self {
        Self { why, code: ErrorCode::Internal }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
