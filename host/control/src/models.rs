//! From a model's file to its running lane, loaded once.
//!
//! A lane belongs to the snapshots that serve it and to changes under way; when the last of them lets
//! go it ends. All who ask for the same model at the same time wait for one attempt. Nothing here needs
//! the control plane's lock: a change loads its models before it takes that.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use bytes::Bytes;
use gristmill_backend::{Backends, LoadOptions, LoadedModel, ProviderKind};
use gristmill_batch::{LOST_RUNS_MAX, Lane, LaneParts, Upkeep, refusal};
use gristmill_child::JobStatus;
use gristmill_core::{Digest, Dtype, Name, TensorInfo};
use gristmill_snapshot::{ProviderHealth, ServedModel};
use gristmill_store::Store;
use tokio::sync::OwnedMutexGuard;

use crate::desired::{Desired, Model};
use crate::loader::read_blob;
use crate::model_config::{ModelConfig, ProviderName};
use crate::prove::{Answer, Prover, ProverConfig, Unproven};

/// Why a model is not loaded.
#[derive(Clone, Debug)]
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
}

/// Two versions of a model, or two configurations, never share a lane.
pub(crate) type LaneKey = (Name, Digest, ModelConfig);

/// What is known of one of them.
#[derive(Default)]
struct Slot {
    known: Mutex<Known>,
    /// Held by whoever loads it.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Known {
    served: Option<Served>,
    /// Kept so that it is not tried again with every other change.
    failed: Option<Failed>,
}

struct Served {
    lane: Weak<Lane>,
    providers: Arc<[ProviderHealth]>,
    warnings: Arc<[String]>,
}

struct Failed {
    at: Instant,
    fault: ModelFault,
}

impl Slot {
    fn served(&self) -> Option<ServedModel> {
        let known = lock(&self.known);
        let Served { lane, providers, warnings } = known.served.as_ref()?;
        let (providers, warnings) = (providers.clone(), warnings.clone());
        Some(ServedModel { lane: lane.upgrade()?, providers, warnings })
    }

    /// Why it could not be loaded, where that was tried at `since` or later.
    fn failed(&self, since: Option<Instant>) -> Option<ModelFault> {
        let known = lock(&self.known);
        let failed = known.failed.as_ref();
        failed
            .filter(|failed| since.is_none_or(|since| failed.at >= since))
            .map(|failed| failed.fault.clone())
    }

    fn note(&self, outcome: &Result<ServedModel, ModelFault>) {
        let mut known = lock(&self.known);
        match outcome {
            Ok(served) => {
                let ServedModel { lane, providers, warnings } = served.clone();
                let lane = Arc::downgrade(&lane);
                known.served = Some(Served { lane, providers, warnings });
                known.failed = None;
            }
            Err(fault) => {
                known.failed = Some(Failed { at: Instant::now(), fault: fault.clone() });
            }
        }
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
        }
    }

    /// The model with its lane, or why there is none, as far as that is known. Never waits.
    pub(crate) fn known(&self, key: &LaneKey) -> Option<Result<ServedModel, ModelFault>> {
        let slot = lock(&self.slots).get(key)?.clone();
        slot.served().map(Ok).or_else(|| slot.failed(None).map(Err))
    }

    /// The model with its lane, which serves for as long as whoever asked holds it. All who ask at the
    /// same time share one attempt to load it.
    pub(crate) async fn get(&self, name: &Name, model: &Model) -> Result<ServedModel, ModelFault> {
        let asked_at = Instant::now();
        let slot = lock(&self.slots).entry(key_of(name, model)).or_default().clone();
        if let Some(served) = slot.served() {
            return Ok(served);
        }
        let turn = Arc::new(slot.turn.clone().lock_owned().await);
        if let Some(served) = slot.served() {
            return Ok(served);
        }
        if let Some(fault) = slot.failed(Some(asked_at)) {
            return Err(fault);
        }
        let outcome = self.load(name, model, turn.clone()).await;
        slot.note(&outcome);
        drop(turn);
        outcome
    }

    /// `turn` is held for as long as the model is being loaded, whether or not the caller leaves.
    async fn load(
        &self,
        name: &Name,
        model: &Model,
        turn: Arc<OwnedMutexGuard<()>>,
    ) -> Result<ServedModel, ModelFault> {
        let Model { digest, config, .. } = model;
        let lost_runs = lock(&self.lost_runs).entry(*digest).or_default().clone();
        let lost = lost_runs.load(Ordering::Relaxed);
        if lost > LOST_RUNS_MAX {
            return Err(ModelFault::Host(refusal(lost)));
        }
        let (onnx, proof) = self.prove(model).await?;
        let options = self.options(config, &proof);
        let (backends, asked) = (self.backends.clone(), options.clone());
        let loading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            backends.load(&onnx, &asked)
        });
        let loaded = loading.await.map_err(|error| ModelFault::Host(error.to_string()))?;
        let loaded =
            loaded.map_err(|error| ModelFault::Model(self.without_paths(&error.to_string())))?;
        let mut warnings = warnings(config, proof, &loaded);
        warnings.iter_mut().for_each(|warning| *warning = self.without_paths(warning));
        for warning in &warnings {
            tracing::warn!(model = name.as_str(), "{warning}");
        }
        let replace = self.replace(*digest, options, loaded.providers.clone());
        let upkeep = Upkeep { replace: Some(replace), lost_runs };
        let mut lane = config.lane();
        lane.leads = may_lead(&loaded);
        let LoadedModel { info, instances, providers, staging, .. } = loaded;
        let name = name.as_str();
        let parts = LaneParts { name, info, instances, config: lane, pool: staging, upkeep };
        let lane = Lane::open(parts).map_err(|error| ModelFault::Host(error.to_string()))?;
        Ok(ServedModel { lane: Arc::new(lane), providers, warnings: warnings.into() })
    }

    /// Have a child load the model and run it once: its file, and what came of it.
    pub(crate) async fn prove(&self, model: &Model) -> Result<(Bytes, Answer), ModelFault> {
        let onnx = read_blob(&self.store, model.digest).await.map_err(ModelFault::Host)?;
        let proof = self.prover.prove(model.digest, onnx.clone(), &model.config).await;
        let proof = proof.map_err(|unproven| match unproven {
            Unproven::Model(why) => ModelFault::Model(self.without_paths(&why)),
            Unproven::Host(why) => ModelFault::Host(why),
        })?;
        Ok((onnx, proof))
    }

    /// A library's text without the place where the library lies.
    fn without_paths(&self, text: &str) -> String {
        without_folder(text, self.backends.library())
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
}

pub(crate) fn key_of(name: &Name, model: &Model) -> LaneKey {
    (name.clone(), model.digest, model.config.clone())
}

/// `text` with the names of files beside `library` as mere names: providers are libraries of their own,
/// which ONNX Runtime names by their paths where it cannot load them.
fn without_folder(text: &str, library: Option<&Path>) -> String {
    let folder = library.and_then(Path::parent).and_then(Path::to_str);
    match folder.filter(|folder| folder.len() > 1) {
        Some(folder) => text.replace(&format!("{folder}/"), ""),
        None => text.to_owned(),
    }
}

/// A submitting task may run a batch itself only where rows say how long that takes: no dimension but the first is
/// open, and no input has texts, which are of any length.
fn may_lead(model: &LoadedModel) -> bool {
    let is_fixed = |input: &TensorInfo| {
        input.dtype != Dtype::String && input.dims.iter().skip(1).all(Option::is_some)
    };
    model.is_steady && model.info.inputs.iter().all(is_fixed)
}

/// What whoever put the model should know.
fn warnings(config: &ModelConfig, proof: Answer, model: &LoadedModel) -> Vec<String> {
    let mut warnings = proof.failed;
    warnings.extend(model.warnings.iter().cloned());
    let serves = model.providers.first().map(|provider| provider.kind);
    if serves == Some(ProviderKind::Tract) && config.providers.first() != Some(&ProviderName::Tract)
    {
        warnings.push("it runs on tract, which is several times slower than ONNX Runtime".into());
    }
    warnings
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_no_folder_of_the_library() {
        let library = Path::new("/opt/runtime/lib/libonnxruntime.so");
        let text =
            "Failed to load library /opt/runtime/lib/libonnxruntime_providers_cuda.so with error";
        let expected = "Failed to load library libonnxruntime_providers_cuda.so with error";
        assert_eq!(without_folder(text, Some(library)), expected);
        assert_eq!(without_folder(text, None), text);
        assert_eq!(without_folder("a/b", Some(Path::new("/lib.so"))), "a/b");
    }
}
