//! From a model's file to its running lane, loaded once.
//!
//! A lane belongs to the snapshots that serve it and to changes under way; when the last of them lets
//! go it ends. All who ask for the same model at the same time wait for one attempt. Nothing here needs
//! the control plane's lock: a change loads its models before it takes that.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use gristmill_backend::{Backends, LoadOptions, LoadedModel};
use gristmill_batch::{LOST_RUNS_MAX, Lane, LaneParts, Lanes, Upkeep, refusal};
use gristmill_child::JobStatus;
use gristmill_core::{Digest, Name};
use gristmill_snapshot::{ProviderHealth, ServedModel};
use gristmill_store::Store;

use crate::desired::{Desired, Model};
use crate::loader::read_blob;
use crate::model_config::{ModelConfig, ProviderName};
use crate::prove::{Answer, Prover, ProverConfig, Unproven};

/// Why a model is not loaded.
pub(crate) enum ModelFault {
    /// The model's own fault, or its configuration's.
    Model(String),
    /// The host's.
    Host(String),
}

impl ModelFault {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Model(why) | Self::Host(why) => why,
        }
    }
}

/// Loads models.
pub(crate) struct Models {
    store: Arc<Store>,
    pub(crate) backends: Arc<Backends>,
    prover: Prover,
    slots: Mutex<HashMap<LaneKey, Arc<Slot>>>,
    /// Runs that do not end, by the file whose they are.
    lost_runs: Mutex<HashMap<Digest, Arc<AtomicUsize>>>,
    lanes: Arc<Lanes>,
}

/// Two versions of a model, or two configurations, never share a lane.
type LaneKey = (Name, Digest, ModelConfig);

/// What is known of one of them. Whoever loads it holds the lock meanwhile.
#[derive(Default)]
struct Slot {
    served: Mutex<Option<Served>>,
    turn: tokio::sync::Mutex<Option<Refused>>,
}

struct Served {
    lane: Weak<Lane>,
    providers: Arc<[ProviderHealth]>,
    warnings: Arc<[String]>,
}

/// That the model was refused, so that it is not tried again with every other change.
struct Refused {
    at: Instant,
    why: String,
}

impl Slot {
    fn served(&self) -> Option<ServedModel> {
        let served = lock(&self.served);
        let Served { lane, providers, warnings } = served.as_ref()?;
        let (providers, warnings) = (providers.clone(), warnings.clone());
        Some(ServedModel { lane: lane.upgrade()?, providers, warnings })
    }
}

impl Models {
    pub(crate) fn new(store: Arc<Store>, backends: Arc<Backends>, config: ProverConfig) -> Self {
        Self {
            prover: Prover::new(config, backends.clone()),
            store,
            backends,
            slots: Mutex::default(),
            lost_runs: Mutex::default(),
            lanes: Arc::default(),
        }
    }

    /// The model with its lane, which serves for as long as whoever asked holds it. What was refused
    /// before is tried again only where that is `asked_for`.
    pub(crate) async fn get(
        &self,
        name: &Name,
        model: &Model,
        asked_for: bool,
    ) -> Result<ServedModel, ModelFault> {
        let asked_at = Instant::now();
        let slot = lock(&self.slots).entry(key_of(name, model)).or_default().clone();
        if let Some(served) = slot.served() {
            return Ok(served);
        }
        let mut refused = slot.turn.lock().await;
        if let Some(served) = slot.served() {
            return Ok(served);
        }
        if let Some(Refused { at, why }) = &*refused
            && (!asked_for || *at >= asked_at)
        {
            return Err(ModelFault::Model(why.clone()));
        }
        let outcome = self.load(name, model).await;
        *refused = match &outcome {
            Ok(served) => {
                let ServedModel { lane, providers, warnings } = served.clone();
                let lane = Arc::downgrade(&lane);
                *lock(&slot.served) = Some(Served { lane, providers, warnings });
                None
            }
            Err(ModelFault::Model(why)) => Some(Refused { at: Instant::now(), why: why.clone() }),
            Err(ModelFault::Host(_)) => None,
        };
        outcome
    }

    async fn load(&self, name: &Name, model: &Model) -> Result<ServedModel, ModelFault> {
        let Model { digest, config, .. } = model;
        let lost_runs = lock(&self.lost_runs).entry(*digest).or_default().clone();
        let lost = lost_runs.load(Ordering::Relaxed);
        if lost > LOST_RUNS_MAX {
            return Err(ModelFault::Host(refusal(lost)));
        }
        let onnx = read_blob(&self.store, *digest).await.map_err(ModelFault::Host)?;
        let proof = self.prover.prove(*digest, onnx.clone(), config).await;
        let proof = proof.map_err(|unproven| match unproven {
            Unproven::Model(why) => ModelFault::Model(why),
            Unproven::Host(why) => ModelFault::Host(why),
        })?;
        let options = self.options(config, &proof);
        let (backends, asked) = (self.backends.clone(), options.clone());
        let loading = tokio::task::spawn_blocking(move || backends.load(&onnx, &asked));
        let loaded = loading.await.map_err(|error| ModelFault::Host(error.to_string()))?;
        let loaded = loaded.map_err(|error| ModelFault::Model(error.to_string()))?;
        let warnings = warnings(config, proof, &loaded);
        for warning in &warnings {
            tracing::warn!(model = name.as_str(), "{warning}");
        }
        let replace = self.replace(*digest, options, loaded.providers.clone());
        let upkeep = Upkeep { replace: Some(replace), lost_runs, lanes: self.lanes.clone() };
        let mut lane = config.lane();
        lane.leads = may_lead(&loaded);
        let LoadedModel { info, instances, providers, staging, .. } = loaded;
        let name = name.as_str();
        let parts = LaneParts { name, info, instances, config: lane, pool: staging, upkeep };
        let lane = Lane::open(parts).map_err(|error| ModelFault::Host(error.to_string()))?;
        Ok(ServedModel { lane: Arc::new(lane), providers, warnings: warnings.into() })
    }

    /// The providers that were proven, and GPUs, in the order that is configured.
    fn options(&self, config: &ModelConfig, proof: &Answer) -> LoadOptions {
        let mut options = config.load_options();
        let mut providers = self.backends.wanted(&options.providers);
        providers.retain(|kind| {
            let name = ProviderName::of(*kind);
            name == ProviderName::Cuda || proof.providers.contains(&name)
        });
        options.providers = providers;
        options
    }

    /// What makes one more instance. Keeps no file in memory for it.
    fn replace(
        &self,
        digest: Digest,
        options: LoadOptions,
        providers: Arc<[ProviderHealth]>,
    ) -> gristmill_batch::Replace {
        let runtime = tokio::runtime::Handle::current();
        let (store, backends) = (self.store.clone(), self.backends.clone());
        Box::new(move || {
            let onnx = runtime.block_on(read_blob(&store, digest))?;
            let made = backends.replacement(&onnx, &options, &providers);
            made.map_err(|error| error.to_string())
        })
    }

    /// Let go of what is known of models that `desired` does not name.
    pub(crate) fn forget_all_but(&self, desired: &Desired) {
        let named = |key: &LaneKey| {
            let model = desired.models.get(&key.0);
            model.is_some_and(|model| key_of(&key.0, model) == *key)
        };
        let in_use = |slot: &Arc<Slot>| Arc::strong_count(slot) > 1 || slot.served().is_some();
        lock(&self.slots).retain(|key, slot| named(key) || in_use(slot));
        lock(&self.lost_runs).retain(|_, lost| Arc::strong_count(lost) > 1);
    }

    /// Forget the proofs of models that `desired` does not name.
    pub(crate) fn forget_proofs(&self, desired: &Desired) {
        self.prover.forget(|digest| desired.models.values().any(|model| model.digest == *digest));
    }

    /// The proofs that are made or wait.
    pub(crate) fn jobs(&self) -> Vec<JobStatus> {
        self.prover.jobs()
    }

    /// As of [`Lanes::end_within`].
    pub(crate) fn end_within(&self, time: Duration) -> bool {
        self.lanes.end_within(time)
    }
}

fn key_of(name: &Name, model: &Model) -> LaneKey {
    (name.clone(), model.digest, model.config.clone())
}

/// A submitting task may run a batch itself only where rows say how long that takes.
fn may_lead(model: &LoadedModel) -> bool {
    let inputs = model.info.inputs.iter();
    model.is_steady && inputs.flat_map(|input| input.dims.iter().skip(1)).all(Option::is_some)
}

/// What whoever put the model should know.
fn warnings(config: &ModelConfig, proof: Answer, model: &LoadedModel) -> Vec<String> {
    let mut warnings = proof.failed;
    warnings.extend(model.warnings.iter().cloned());
    let serves = model.providers.first().map(|provider| provider.name);
    if serves == Some("tract") && config.providers.first() != Some(&ProviderName::Tract) {
        warnings.push("it runs on tract, which is several times slower than ONNX Runtime".into());
    }
    warnings
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
