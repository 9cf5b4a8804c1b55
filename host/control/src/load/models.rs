//! From a model's file to its running lane, loaded once.
//!
//! A lane belongs to the snapshots that serve it and to changes under way. It ends when the last of
//! them drops it. All callers that ask for the same model at the same time wait for one attempt.
//! Nothing here needs the control plane's lock: a change loads its models before it takes the lock.
//!
//! Invariant: a configuration that differs only in how requests queue uses the instances that are
//! loaded, unless their lane refuses requests or its maximum is below a preferred size (`slot`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gristmill_backend::{Backends, Batching, LoadOptions, LoadedModel, ProviderKind, Sizing};
use gristmill_batch::{LOST_RUNS_MAX, Lane, LaneParts, Refusal, Upkeep};
use gristmill_core::{Digest, Name};
use gristmill_platform::child::JobStatus;
use gristmill_snapshot::{PaddingProof, ProviderHealth, ServedModel};
use gristmill_state::{Desired, Model, ModelConfig, ProviderName, Sizes};
use gristmill_store::Store;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use crate::load::blob::{StoredModel, read_model};
use crate::load::error::{LoadError, Loaded};
use crate::load::paths::without_folder;
use crate::load::prove::{ProofReport, Prover, ProverConfig};
use crate::load::slot::Slot;

/// The warning of a model for which there was no better provider.
const ON_TRACT: &str = "it runs on tract, which is several times slower than ONNX Runtime";

/// Loads models.
pub(crate) struct Models {
    store: Arc<Store>,
    backends: Arc<Backends>,
    prover: Prover,
    slots: Mutex<HashMap<LoadKey, Arc<Slot>>>,
    /// The number of runs that do not end, by the model's file.
    lost_runs: Mutex<HashMap<Digest, Arc<AtomicUsize>>>,
}

/// Everything that loading a model depends on, and its name. Two models, or two files of one,
/// never share a lane. The largest size of batches is part of the sizes, because queued requests
/// are cut to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct LoadKey {
    name: Name,
    digest: Digest,
    options: LoadOptions,
    sizes: Sizes,
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

    /// The model with its lane, or the reason why it is not loaded. None if neither is known. Never
    /// waits.
    pub(crate) fn known(
        &self,
        name: &Name,
        digest: Digest,
        config: &ModelConfig,
    ) -> Option<Loaded<ServedModel>> {
        let slot = self.slots.lock().get(&key_of(name, digest, config))?.clone();
        slot.served(&config.lane()).map(Ok).or_else(|| slot.failed(None).map(Err))
    }

    /// The model with its lane, which serves while the caller holds it. All callers that ask at the
    /// same time share one attempt to load it.
    pub(crate) async fn get(
        &self,
        name: &Name,
        digest: Digest,
        config: &ModelConfig,
    ) -> Loaded<ServedModel> {
        let asked_at = Instant::now();
        let settings = config.lane();
        let key = key_of(name, digest, config);
        let slot = self.slots.lock().entry(key).or_default().clone();
        if let Some(served) = slot.served(&settings) {
            return Ok(served);
        }
        let turn = Arc::new(slot.turn.clone().lock_owned().await);
        if let Some(served) = slot.served(&settings) {
            return Ok(served);
        }
        if let Some(fault) = slot.failed(Some(asked_at)) {
            return Err(fault);
        }
        let outcome = self.load(name, digest, config, turn.clone()).await.map_err(Arc::new);
        slot.note(settings, &outcome);
        drop(turn);
        outcome
    }

    /// `turn` is held until loading has ended, even if the caller leaves.
    async fn load(
        &self,
        name: &Name,
        digest: Digest,
        config: &ModelConfig,
        turn: Arc<OwnedMutexGuard<()>>,
    ) -> Result<ServedModel, LoadError> {
        let lost_runs = self.lost_runs.lock().entry(digest).or_default().clone();
        let lost = lost_runs.load(Ordering::Relaxed);
        if lost > LOST_RUNS_MAX {
            return Err(LoadError::LostRuns(Refusal::LostRuns(lost)));
        }
        let (model, proof) = self.proven(digest, config).await?;
        let sizes = Arc::new(config.sizes().resolved(proof.sizing.as_ref()));
        let options = self.options(config, &proof, &sizes);
        let file_bytes = model.bytes();
        let (backends, asked, rows) = (self.backends.clone(), options.clone(), proof.rows.clone());
        let file = model.clone();
        let loading = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            backends.load(file.file(), &asked, &rows)
        });
        let failed = |source| LoadError::backend(source, &self.backends, model.package());
        let loaded = loading.await?.map_err(failed)?;
        let mut warnings = warnings(config, proof, &loaded);
        let without_paths = |text: &str| model.without_paths(&self.without_paths(text));
        warnings.iter_mut().for_each(|warning| *warning = without_paths(warning));
        for warning in &warnings {
            tracing::warn!(model = name.as_str(), "{warning}");
        }
        if is_slowed(config, &loaded) {
            // A server without ONNX Runtime said so at its start, once for all models.
            if self.backends.library().is_some() {
                tracing::warn!(model = name.as_str(), "{ON_TRACT}");
            }
            warnings.push(ON_TRACT.into());
        }
        let replace = self.replace(digest, options, loaded.providers.clone());
        let upkeep = Upkeep { replace: Some(replace), lost_runs };
        let mut lane = config.lane();
        lane.leads = loaded.may_lead();
        let preferred = lane.preferred_batch_sizes.last().copied().unwrap_or(1);
        lane.max_batch_size = sizes.max_batch_size.max(preferred).min(config.max_queue_rows);
        let LoadedModel {
            info,
            instances,
            providers,
            staging,
            certificates,
            padding,
            padding_proofs,
            ..
        } = loaded;
        lane.padding = padding;
        let name = name.as_str();
        let parts = LaneParts { name, info, instances, config: lane, pool: staging };
        let lane = Lane::with_upkeep(parts, upkeep)?;
        let (lane, warnings) = (Arc::new(lane), warnings.into());
        let (certificates, padding_proofs) = (certificates.into(), padding_proofs.into());
        Ok(ServedModel {
            lane,
            providers,
            file_bytes,
            certificates,
            padding_proofs,
            sizes,
            warnings,
        })
    }

    /// Have a child load the model and run it once. Returns the file and the child's answer.
    async fn proven(
        &self,
        digest: Digest,
        config: &ModelConfig,
    ) -> Result<(StoredModel, ProofReport), LoadError> {
        let model = read_model(&self.store, digest).await?;
        let proof = self.prover.prove(digest, &model, config).await?;
        Ok((model, proof))
    }

    /// Have a child load the model and run it once.
    ///
    /// # Errors
    /// The child could not, what the configuration says of padding is not true, or the child could
    /// not be asked.
    pub(crate) async fn prove(&self, digest: Digest, config: &ModelConfig) -> Loaded<()> {
        let (_, proof) = self.proven(digest, config).await.map_err(Arc::new)?;
        match proof.rows.padding.iter().find_map(PaddingProof::refutation) {
            Some(why) => Err(LoadError::Unproven(why.to_owned()).into()),
            None => Ok(()),
        }
    }

    /// A library's text without the library's folder.
    fn without_paths(&self, text: &str) -> String {
        without_folder(text, self.backends.library())
    }

    /// The load options with only the proven providers and GPUs, in the configured order.
    fn options(&self, config: &ModelConfig, proof: &ProofReport, sizes: &Sizing) -> LoadOptions {
        let mut options = config.load_options();
        (options.instances, options.threads) = (sizes.instances, sizes.threads);
        let mut providers = self.backends.wanted(&options.providers);
        providers.retain(|kind| {
            let name = ProviderName::of(*kind);
            name == ProviderName::Cuda || proof.providers.contains(&name)
        });
        options.providers = providers;
        options
    }

    /// A function that makes one more instance. It does not keep the file in memory.
    fn replace(
        &self,
        digest: Digest,
        options: LoadOptions,
        providers: Arc<[ProviderHealth]>,
    ) -> gristmill_batch::Replace {
        let runtime = tokio::runtime::Handle::current();
        let (store, backends) = (self.store.clone(), self.backends.clone());
        let make = move || {
            let model = runtime.block_on(read_model(&store, digest))?;
            let made = backends.replacement(model.file(), &options, &providers);
            made.map_err(|source| LoadError::backend(source, &backends, model.package()))
        };
        Box::new(move || Ok(make()?))
    }

    /// Forget versions of models that `desired` does not name.
    pub(crate) fn retain(&self, desired: &Desired) {
        let named = |key: &LoadKey| {
            desired.models.get(&key.name).is_some_and(|model| {
                let is_one = |(_, digest)| digest == key.digest;
                model.versions().any(is_one) && key_of(&key.name, key.digest, &model.config) == *key
            })
        };
        let in_use = |slot: &Arc<Slot>| Arc::strong_count(slot) > 1 || slot.is_served();
        self.slots.lock().retain(|key, slot| named(key) || in_use(slot));
        self.lost_runs.lock().retain(|_, lost| Arc::strong_count(lost) > 1);
    }

    /// Forget the proofs of models that `desired` does not name.
    pub(crate) fn forget_proofs(&self, desired: &Desired) {
        let versions = || desired.models.values().flat_map(Model::versions);
        self.prover.forget(|digest| versions().any(|(_, file)| file == *digest));
    }

    /// The backends that can serve, best first.
    pub(crate) fn backends(&self) -> Vec<&'static str> {
        self.backends.available()
    }

    /// The proofs that are made or wait.
    pub(crate) fn jobs(&self) -> Vec<JobStatus> {
        self.prover.jobs()
    }
}

fn key_of(name: &Name, digest: Digest, config: &ModelConfig) -> LoadKey {
    LoadKey { name: name.clone(), digest, options: config.load_options(), sizes: config.sizes() }
}

/// Warnings for the operator who uploaded the model, but for [`ON_TRACT`].
fn warnings(config: &ModelConfig, proof: ProofReport, model: &LoadedModel) -> Vec<String> {
    let mut warnings = proof.failed;
    warnings.extend(model.warnings.iter().cloned());
    let serves = model.providers.first().map(|provider| provider.kind);
    let mut certificates = model.certificates.iter();
    if let Some(one) = certificates.find(|one| !one.certificate.is_independent()) {
        let (provider, certificate) = (one.provider.as_str(), &one.certificate);
        warnings.push(format!(
            "each request runs alone, because on {provider} {certificate}. If you know that rows are \
             independent, set \"batching\": \"declared\"; to keep requests alone without this \
             warning, set \"batching\": \"off\""
        ));
    }
    if !config.pad.is_empty() && model.padding.is_none() {
        let mut proofs = model.padding_proofs.iter();
        let why = proofs.find_map(|proof| {
            Some(format!("on {} {}", proof.provider.as_str(), proof.reason.as_ref()?))
        });
        let why = why.unwrap_or_else(|| "each request runs alone".into());
        warnings.push(format!("pad is not used, so rows of different lengths do not meet: {why}"));
    }
    if let Some(fixed) = model.info.fixed_among_open_rows()
        && config.load_options().batching != Batching::Off
    {
        warnings.push(format!(
            "each request runs alone, because the first dimension of {:?} is fixed: {}. If it is the \
             number of rows, export it open; to keep requests alone without this warning, set \
             \"batching\": \"off\"",
            fixed.name,
            fixed.shape_text()
        ));
    }
    let has_sizes = config.max_batch_size.fixed() != Some(1)
        && model.info.forms_batches
        && !model.info.has_texts();
    let any_size = has_sizes && config.allowed_batch_sizes.is_empty();
    if serves == Some(ProviderKind::Cuda) && model.has_convolutions && any_size {
        warnings.push(
            "on cuda its convolutions are prepared anew for each batch of another size than the one \
             before, which takes 0.1 s or more: name the sizes in allowed_batch_sizes"
                .into(),
        );
    }
    warnings
}

/// Whether it runs on tract, although its configuration does not prefer tract.
fn is_slowed(config: &ModelConfig, model: &LoadedModel) -> bool {
    let serves = model.providers.first().map(|provider| provider.kind);
    serves == Some(ProviderKind::Tract) && config.providers.first() != Some(&ProviderName::Tract)
}
