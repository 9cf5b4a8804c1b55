//! The backends of a process, and loading a model on those that can run it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gristmill_core::{BufferPool, Model, ModelInfo, Padding, PaddingFault, TensorInfo};

use crate::certificate::{Certificate, Certified, PaddingProof, RowProof};
use crate::error::{LibraryError, LoadError, ProviderError, ProviderFailure};
use crate::fallback::Fallback;
use crate::health::ProviderHealth;
use crate::inspect::{Inspected, inspect};
use crate::library::LibrarySearch;
use crate::loaded::{Loaded, LoadedModel};
use crate::onnxruntime::Runtime;
use crate::options::{Batching, LoadOptions, ONNXRUNTIME, ProviderKind, TRACT};
use crate::source::{ModelFile, ModelSource};
use crate::trial::Trial;
use crate::warm_up::WarmUp;
use crate::{open_rows, tract};

/// Raised when `sizing` measures otherwise, so that all sizes are measured again.
const MEASUREMENT_VERSION: u32 = 2;

/// By how much more a GPU rounds numbers of 32 bits: it multiplies them with 10 bits of fraction
/// (TF32), and in another order for each size of batches.
const GPU_SLACK: f64 = 50.0;

/// The reason of a proof of padding that was not made.
const NO_PADDING_END: &str =
    "the trial of padding needed more time or memory than a child process may take";

/// The backends of this process.
pub struct Backends {
    library: Option<PathBuf>,
    pub(crate) onnxruntime: Option<Runtime>,
    pub(crate) pool: BufferPool,
}

/// A provider, a model's instances on it, and the batch sizes that have sessions of their own.
type OnProvider = (ProviderKind, Vec<Box<dyn Model>>, Vec<usize>);

/// A model on the providers that can load it.
struct Candidates {
    loaded: Vec<(ProviderKind, Loaded)>,
    failures: Vec<ProviderFailure>,
}

impl Backends {
    /// Look for ONNX Runtime in the configured place, then in `ORT_DYLIB_PATH`, then in the data
    /// directory, then in the Python package that is installed with this program. If it is not
    /// found, tract serves, and a warning says so. The runs of one instance may take
    /// `run_memory_bytes` of host memory besides the model's weights.
    ///
    /// # Errors
    /// [`LibraryError`] if the configured library cannot be used.
    pub fn open(
        search: &LibrarySearch,
        pool: BufferPool,
        run_memory_bytes: usize,
    ) -> Result<Arc<Self>, LibraryError> {
        let open = |path: &Path| Runtime::open(path, pool.clone(), run_memory_bytes);
        let onnxruntime = match search.find() {
            Some(path) => match open(&path) {
                Ok(runtime) => {
                    tracing::info!(library = %path.display(), "models run on ONNX Runtime");
                    // A child process works in another folder.
                    Some((path.canonicalize().unwrap_or(path), runtime))
                }
                Err(reason) if search.configured.is_some() => {
                    return Err(LibraryError { path, reason });
                }
                Err(reason) => {
                    tracing::warn!(
                        library = %path.display(),
                        why = %reason,
                        "ONNX Runtime cannot be used, models run on tract, which is several times \
                         slower"
                    );
                    None
                }
            },
            None => {
                tracing::warn!(
                    "no ONNX Runtime library found (onnxruntime_library, ORT_DYLIB_PATH, \
                     onnxruntime/ in the data directory, or the Python environment that this program \
                     is installed in): models run on tract, which is several times slower. The cure: \
                     pip install onnxruntime in that environment, or name the library"
                );
                None
            }
        };
        let (library, onnxruntime) = onnxruntime.unzip();
        Ok(Arc::new(Self { library, onnxruntime, pool }))
    }

    /// The ONNX Runtime library that is used, if one was found.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_deref()
    }

    /// The versions of the libraries and of the measurement of sizes. Loading a model depends on
    /// them.
    pub fn version(&self) -> String {
        let onnxruntime = self.onnxruntime.as_ref().map_or("none", Runtime::version);
        let gristmill = env!("CARGO_PKG_VERSION");
        format!("gristmill {gristmill}, onnxruntime {onnxruntime}, sizes {MEASUREMENT_VERSION}")
    }

    /// What ONNX Runtime says of its build, if its library was found.
    pub fn onnxruntime_build(&self) -> Option<&'static str> {
        self.onnxruntime.as_ref().map(Runtime::version)
    }

    /// The providers of this machine, best first.
    pub fn providers(&self) -> Vec<ProviderKind> {
        let onnxruntime = self.onnxruntime.as_ref();
        let cuda = onnxruntime.is_some_and(Runtime::has_cuda).then_some(ProviderKind::Cuda);
        let cpu = onnxruntime.map(|_| ProviderKind::Cpu);
        cuda.into_iter().chain(cpu).chain([ProviderKind::Tract]).collect()
    }

    /// The backends that can serve, best first.
    pub fn available(&self) -> Vec<&'static str> {
        let onnxruntime = self.onnxruntime.is_some().then_some(ONNXRUNTIME);
        onnxruntime.into_iter().chain([TRACT]).collect()
    }

    /// Load an ONNX file, and run each instance once for each batch size of
    /// [`LoadOptions::warm_up`]. Rows form batches as the options and `proof` say; a GPU, which a
    /// child cannot try, is tried here. Takes long: call this off the request threads.
    ///
    /// # Errors
    /// [`LoadError::NoModel`], [`LoadError::ExternalData`], [`LoadError::Package`] or
    /// [`LoadError::TooLarge`] if the file is not a usable model; [`LoadError::Unusable`] if no
    /// provider can run it; [`LoadError::OutOfMemory`] if one of these runs goes over the memory
    /// limit. If its inputs cannot be padded as the options say, it is loaded without padding.
    pub fn load<'a>(
        &self,
        file: impl Into<ModelFile<'a>>,
        options: &LoadOptions,
        proof: &RowProof,
    ) -> Result<LoadedModel, LoadError> {
        let source = open_rows::open(file.into())?;
        let inspected = inspect(&source)?;
        let Candidates { loaded, failures } = self.candidates(&source, options, &inspected);
        let mut loaded = loaded.into_iter();
        let Some((kind, best)) = loaded.next() else {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: failures });
        };
        let Loaded { mut info, instances, session_sizes, staging, memory } = best;
        let mut warnings = source.warnings;
        warnings.extend(failures.iter().map(ToString::to_string));
        let mut chain = vec![(kind, instances, session_sizes)];
        let mut taken = vec![memory];
        for (kind, standby) in loaded {
            if same_interface(&info, &standby.info) {
                chain.push((kind, standby.instances, standby.session_sizes));
                taken.push(standby.memory);
            } else {
                warnings.push(format!("{kind} sees other inputs or outputs: not on stand-by"));
            }
        }
        let mut certificates = Vec::new();
        if info.has_open_rows() {
            if options.batching == Batching::Proven {
                let certify = |on: &mut OnProvider| Certified {
                    provider: on.0,
                    certificate: self.certificate(on, &info, options, proof),
                };
                certificates = chain.iter_mut().map(certify).collect();
            }
            info.forms_batches = match options.batching {
                Batching::Proven => certificates.iter().all(|one| one.certificate.is_independent()),
                Batching::Off => false,
                Batching::Declared => true,
            };
        }
        let (padding, padding_proofs) = self.padding(&mut chain, &info, options, proof);
        let warm_up = |kind: ProviderKind, instances: &mut [Box<dyn Model>], sessions: &[usize]| {
            let sizes = options.warm_up_sizes(sessions);
            let warm_up = WarmUp { info: &info, pool: &self.pool, sizes: &sizes };
            // A request would need at least as much memory.
            let warnings = warm_up.run(instances).map_err(LoadError::OutOfMemory)?;
            let warnings = warnings.into_iter().map(|warning| format!("{kind}: {warning}"));
            Ok::<_, LoadError>(warnings.collect::<Vec<_>>())
        };
        let mut kinds = Vec::new();
        let mut chains: Vec<Vec<_>> = (0..options.instances).map(|_| Vec::new()).collect();
        for (kind, mut instances, session_sizes) in chain {
            warnings.extend(warm_up(kind, &mut instances, &session_sizes)?);
            kinds.push(kind);
            chains.iter_mut().zip(instances).for_each(|(chain, model)| chain.push(model));
        }
        let providers: Arc<[_]> = kinds.into_iter().map(ProviderHealth::new).collect();
        providers.iter().zip(taken).for_each(|(provider, taken)| provider.sessions.add(taken));
        let instances = chains
            .into_iter()
            .map(|chain| Box::new(Fallback::new(chain, providers.clone(), &info)) as Box<dyn Model>)
            .collect();
        let staging = staging.unwrap_or_else(|| self.pool.clone());
        Ok(LoadedModel {
            info,
            instances,
            warnings,
            is_steady: inspected.is_steady(),
            has_convolutions: inspected.has_convolutions(),
            providers,
            staging,
            certificates,
            padding,
            padding_proofs,
        })
    }

    /// The certificate of a loaded model: the one of the child, or one that is made now.
    fn certificate(
        &self,
        (kind, instances, _): &mut OnProvider,
        info: &ModelInfo,
        options: &LoadOptions,
        proof: &RowProof,
    ) -> Certificate {
        let kind = *kind;
        if let Some(made) = proof.of(kind) {
            return proof.judged(made.clone());
        }
        if let Some(why) = &proof.obstacle {
            return Certificate::Undecided { why: why.clone() };
        }
        match instances.first_mut().filter(|_| kind.is_gpu()) {
            Some(model) => self.trial(kind, model.as_mut(), info, options.trial_time).run(),
            None => Certificate::Undecided { why: "it was not tried".into() },
        }
    }

    /// How a loaded model's rows are padded, with a proof for each provider: that of the child, or
    /// one that is made now. A trial on a GPU refutes nothing, because the next one may end
    /// otherwise.
    fn padding(
        &self,
        chain: &mut [OnProvider],
        info: &ModelInfo,
        options: &LoadOptions,
        proof: &RowProof,
    ) -> (Padding, Vec<PaddingProof>) {
        if options.padding.is_none() {
            return (Padding::default(), Vec::new());
        }
        let padding = match options.padding.resolve(info) {
            Ok(padding) if info.forms_batches => padding,
            Ok(_) => return (Padding::default(), Vec::new()),
            Err(fault) => {
                let refuted = |(kind, ..): &OnProvider| PaddingProof::refuted(*kind, &fault);
                return (Padding::default(), chain.iter().map(refuted).collect());
            }
        };
        let proof_on = |(kind, instances, _): &mut OnProvider| {
            let kind = *kind;
            if let Some(made) = proof.padding.iter().find(|made| made.provider == kind) {
                return made.clone();
            }
            match instances.first_mut().filter(|_| kind.is_gpu()) {
                Some(model) => {
                    let trial = self.trial(kind, model.as_mut(), info, options.trial_time);
                    let undecided =
                        |fault: PaddingFault| PaddingProof::undecided(kind, fault.to_string());
                    trial.run_padded(kind, &padding).unwrap_or_else(undecided)
                }
                // A child ended in its trial, and another one left it out.
                None => PaddingProof::undecided(kind, NO_PADDING_END),
            }
        };
        let proofs: Vec<_> = chain.iter_mut().map(proof_on).collect();
        match proofs.iter().all(|proof| proof.reason.is_none()) {
            true => (padding, proofs),
            false => (Padding::default(), proofs),
        }
    }

    /// A trial of its rows.
    pub(crate) fn trial<'a>(
        &'a self,
        kind: ProviderKind,
        model: &'a mut dyn Model,
        info: &'a ModelInfo,
        within: Duration,
    ) -> Trial<'a> {
        let slack = if kind.is_gpu() { GPU_SLACK } else { 1.0 };
        Trial { model, info, pool: &self.pool, slack, within }
    }

    /// One more instance of a model that is loaded on `providers`. Takes long.
    ///
    /// # Errors
    /// As for [`load`](Self::load), and [`LoadError::Unusable`] if one of the providers cannot load
    /// it.
    pub fn replacement<'a>(
        &self,
        file: impl Into<ModelFile<'a>>,
        options: &LoadOptions,
        providers: &Arc<[ProviderHealth]>,
    ) -> Result<Box<dyn Model>, LoadError> {
        let source = open_rows::open(file.into())?;
        let inspected = inspect(&source)?;
        let kinds = providers.iter().map(|health| health.kind);
        let options = LoadOptions { providers: kinds.collect(), instances: 1, ..options.clone() };
        let Candidates { loaded, failures } = self.candidates(&source, &options, &inspected);
        let info = match loaded.first() {
            Some((_, best)) if loaded.len() == providers.len() => best.info.clone(),
            _ => return Err(LoadError::Unusable { opset: inspected.opset, reasons: failures }),
        };
        let mut chain = Vec::new();
        for ((_, loaded), provider) in loaded.into_iter().zip(providers.iter()) {
            chain.extend(loaded.instances);
            provider.sessions.add(loaded.memory);
        }
        Ok(Box::new(Fallback::new(chain, providers.clone(), &info)))
    }

    /// Load the model on each provider that can load it, the best first, and collect the failures
    /// of the others.
    fn candidates(
        &self,
        source: &ModelSource<'_>,
        options: &LoadOptions,
        inspected: &Inspected,
    ) -> Candidates {
        let (mut loaded, mut failures) = (Vec::<(ProviderKind, Loaded)>::new(), Vec::new());
        for kind in self.wanted(&options.providers) {
            // Without a configured list, tract is used only for models that ONNX Runtime cannot
            // load.
            if options.providers.is_empty() && kind == ProviderKind::Tract && !loaded.is_empty() {
                break;
            }
            match self.load_on(kind, source, options, inspected) {
                Ok(on) => loaded.push((kind, on)),
                Err(error) => failures.push(ProviderFailure { provider: kind, error }),
            }
        }
        Candidates { loaded, failures }
    }

    /// The providers to try, in order: those in `named`, or all if it is empty.
    pub fn wanted(&self, named: &[ProviderKind]) -> Vec<ProviderKind> {
        if !named.is_empty() {
            return named.to_vec();
        }
        let cuda = self.onnxruntime.as_ref().is_some_and(|runtime| runtime.has_cuda());
        let cuda = cuda.then_some(ProviderKind::Cuda);
        cuda.into_iter().chain([ProviderKind::Cpu, ProviderKind::Tract]).collect()
    }

    /// Load the model on one provider.
    pub(crate) fn load_on(
        &self,
        kind: ProviderKind,
        source: &ModelSource<'_>,
        options: &LoadOptions,
        inspected: &Inspected,
    ) -> Result<Loaded, ProviderError> {
        let mut loaded = match (kind, &self.onnxruntime) {
            (ProviderKind::Tract, _) => tract::load(source, options, &self.pool, inspected),
            (_, Some(runtime)) => runtime.load(source, options, kind, inspected),
            (_, None) => Err(ProviderError::NoLibrary),
        }?;
        loaded.info.equal_dims = inspected.equal_dims(&loaded.info.inputs);
        Ok(loaded)
    }
}

/// Whether both take and give tensors of the same names and element types.
fn same_interface(a: &ModelInfo, b: &ModelInfo) -> bool {
    let same = |a: &[TensorInfo], b: &[TensorInfo]| {
        let pairs = a.iter().zip(b);
        a.len() == b.len() && pairs.into_iter().all(|(a, b)| a.name == b.name && a.dtype == b.dtype)
    };
    same(&a.inputs, &b.inputs) && same(&a.outputs, &b.outputs)
}
