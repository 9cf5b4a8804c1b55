//! From digests to loaded plugins and running lanes, each loaded once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use gristmill_backend::Backends;
use gristmill_batch::Lane;
use gristmill_core::{ByteBudget, Digest, Name, PluginLimits};
use gristmill_sandbox::{Plugin, Sandbox};
use gristmill_snapshot::{PipelineStatistics, ServedModel, Share};
use gristmill_store::{Store, StoreError};

use tokio::sync::Semaphore;

use crate::desired::{Desired, Model};
use crate::model_config::ModelConfig;
use crate::progress::Progress;

/// Plugin calls of one tenant that run at the same time, for each core.
const SLOTS_PER_CORE: usize = 8;

/// Loads what releases name. What fails says why, in words for whoever deployed it.
pub(crate) struct Loader {
    pub(crate) store: Arc<Store>,
    pub(crate) sandbox: Arc<Sandbox>,
    pub(crate) backends: Arc<Backends>,
    plugins: Mutex<HashMap<Digest, Arc<Plugin>>>,
    lanes: Mutex<HashMap<LaneKey, ServedModel>>,
    shares: Mutex<HashMap<Name, Arc<Share>>>,
    /// Of each tenant's requests and answers under way.
    tenant_bytes_max: usize,
    pipeline_statistics: Mutex<HashMap<(Name, Name), Arc<PipelineStatistics>>>,
    /// What a plugin is instantiated with for the first time.
    probe_limits: PluginLimits,
    pub(crate) progress: Progress,
}

/// Two versions of a model, or two configurations, never share a lane.
type LaneKey = (Name, Digest, ModelConfig);

impl Loader {
    pub(crate) fn new(
        store: Arc<Store>,
        sandbox: Arc<Sandbox>,
        backends: Arc<Backends>,
        probe_limits: PluginLimits,
        tenant_bytes_max: usize,
    ) -> Self {
        Self {
            store,
            sandbox,
            backends,
            plugins: Mutex::default(),
            lanes: Mutex::default(),
            shares: Mutex::default(),
            tenant_bytes_max,
            pipeline_statistics: Mutex::default(),
            probe_limits,
            progress: Progress::default(),
        }
    }

    /// The tenant's share of the host. Guests are bound by the processor, so a few for each core
    /// keep it busy; more would only let one tenant's runaway plugins crowd out the others.
    pub(crate) fn share(&self, tenant: &Name) -> Arc<Share> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let new = || {
            Arc::new(Share {
                plugin_slots: Semaphore::new(cores * SLOTS_PER_CORE),
                bytes: ByteBudget::new(self.tenant_bytes_max),
            })
        };
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

    /// An uploaded file. Where it cannot be read, tenants need not know where it was looked for.
    async fn blob(&self, digest: Digest) -> Result<Bytes, String> {
        self.store.blob(digest).await.map_err(|error| {
            tracing::error!(%digest, %error, "an uploaded file cannot be read");
            match error {
                StoreError::Damaged { .. } => error.to_string(),
                StoreError::Objects(_) | StoreError::Io { .. } => {
                    format!("its file {digest} cannot be read")
                }
            }
        })
    }

    /// The plugin of this digest, compiled off the request threads where it is not loaded yet, and
    /// instantiated once.
    pub(crate) async fn plugin(&self, digest: Digest) -> Result<Arc<Plugin>, String> {
        if let Some(plugin) = lock(&self.plugins).get(&digest) {
            return Ok(plugin.clone());
        }
        let file = self.blob(digest).await?;
        let sandbox = self.sandbox.clone();
        let loading = tokio::task::spawn_blocking(move || sandbox.load(digest, &file));
        let plugin =
            loading.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let probed = plugin.probe(&self.probe_limits).await;
        probed.map_err(|error| format!("cannot be instantiated: {error}"))?;
        let plugin = Arc::new(plugin);
        lock(&self.plugins).insert(digest, plugin.clone());
        Ok(plugin)
    }

    /// This model with its lane, loaded off the request threads where there is none yet.
    pub(crate) async fn model(&self, name: &Name, model: &Model) -> Result<ServedModel, String> {
        if model.unloaded {
            return Err("it was unloaded".into());
        }
        let key = lane_key(name, model);
        if let Some(lane) = lock(&self.lanes).get(&key) {
            return Ok(lane.clone());
        }
        let onnx = self.blob(model.digest).await?;
        let (backends, options) = (self.backends.clone(), model.config.load_options());
        let loading = tokio::task::spawn_blocking(move || backends.load(&onnx, &options));
        let loaded =
            loading.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let config = model.config.lane();
        let lane = Lane::new(name.as_str(), loaded.info, loaded.instances, config, loaded.staging);
        let lane = Arc::new(lane.map_err(|error| error.to_string())?);
        let served = ServedModel { lane, providers: loaded.providers };
        lock(&self.lanes).insert(key, served.clone());
        Ok(served)
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
        let serves =
            |key: &LaneKey, model: &Model| !model.unloaded && lane_key(&key.0, model) == *key;
        lock(&self.lanes)
            .retain(|key, _| desired.models.get(&key.0).is_some_and(|model| serves(key, model)));
    }
}

fn lane_key(name: &Name, model: &Model) -> LaneKey {
    (name.clone(), model.digest, model.config.clone())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
