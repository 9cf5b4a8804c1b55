//! Loading and running models: ONNX Runtime where its library is found, tract where it is not or
//! cannot run the model. The only crate that names `ort` or tract.
//!
//! Refuses to know batching, tenants and files other than the ONNX Runtime library: a model comes in
//! as bytes and goes out as [`Model`] instances.
//!
//! Invariant: no `ort` value is ever cloned, nor bound as an input, which may clone it. In 2.0.0-rc.15 a
//! clone deadlocks in its identity session.

#![forbid(unsafe_code)]

mod chain;
mod inspect;
mod onnxruntime;
mod probe;
mod prove;
mod tract;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_core::{BufferPool, Dtype, ErrorCode, Model, ModelInfo, TensorInfo};

use chain::Chain;
pub use chain::ProviderHealth;
use inspect::{Inspected, inspect};
pub use prove::Proven;

/// What can run a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProviderKind {
    /// ONNX Runtime on an NVIDIA GPU.
    Cuda,
    /// ONNX Runtime on the processor.
    Cpu,
    /// tract, on the processor.
    Tract,
}

impl ProviderKind {
    /// As configured and reported.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
            Self::Tract => "tract",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Cuda, Self::Cpu, Self::Tract].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// How much ONNX Runtime may rewrite a graph when it loads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GraphOptimization {
    Disable,
    Basic,
    Extended,
    #[default]
    All,
}

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadOptions {
    /// In order of preference: the first that can load it serves, the others that can stand by. Empty:
    /// the best there is, with ONNX Runtime on the processor standing by behind a GPU.
    pub providers: Vec<ProviderKind>,
    /// For CUDA, in ONNX Runtime's own words.
    pub cuda_options: BTreeMap<String, String>,
    /// Instances to load, each for a thread of its own.
    pub instances: usize,
    /// Threads that one run may use inside an operator.
    pub threads: usize,
    /// Threads that run independent operators side by side; 1: one after the other.
    pub inter_op_threads: usize,
    pub graph_optimization: GraphOptimization,
    /// Whether ONNX Runtime keeps memory between runs.
    pub memory_arena: bool,
    /// Whether ONNX Runtime plans memory ahead for shapes it has seen.
    pub memory_pattern: bool,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            providers: Vec::new(),
            cuda_options: BTreeMap::new(),
            instances: 1,
            threads: 1,
            inter_op_threads: 1,
            graph_optimization: GraphOptimization::All,
            memory_arena: true,
            memory_pattern: true,
        }
    }
}

/// A model ready to run.
pub struct LoadedModel {
    pub info: ModelInfo,
    pub instances: Vec<Box<dyn Model>>,
    /// What whoever uploaded it did not ask for, or should know.
    pub warnings: Vec<String>,
    /// Whether the sizes of its inputs say how much work a run is, as far as operators tell.
    pub is_steady: bool,
    /// What runs it, the best first.
    pub providers: Arc<[ProviderHealth]>,
    /// What batches are best copied together in: memory that the device reads directly, where there is a
    /// device, else the pool of the backends.
    pub staging: BufferPool,
}

/// A model on one provider.
struct Loaded {
    info: ModelInfo,
    instances: Vec<Box<dyn Model>>,
    /// As of [`LoadedModel`]; none: the pool of the backends.
    staging: Option<BufferPool>,
}

/// A model on the providers that can load it.
struct Candidates {
    loaded: Vec<(ProviderKind, Loaded)>,
    warnings: Vec<String>,
}

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is no ONNX model.
    #[error("the file is no ONNX model: {0}")]
    NoModel(String),
    /// Its weights lie in other files.
    #[error("the model keeps weights in external files ({}): upload one file that holds them, of at most 2 GB", .0.join(", "))]
    ExternalData(Vec<String>),
    /// Larger than protobuf allows.
    #[error(
        "the model is {0} bytes large: an ONNX file holds at most 2 GB, and external weights are not supported"
    )]
    TooLarge(usize),
    /// It runs out of the memory that its first run may have.
    #[error("its first run needs more memory than it may have: {0}")]
    OutOfMemory(String),
    /// No provider takes it; each says why.
    #[error("no backend can run this model (opset {opset}): {}", .reasons.join("; "))]
    Unusable { opset: i64, reasons: Vec<String> },
}

impl LoadError {
    pub fn code(&self) -> ErrorCode {
        ErrorCode::InvalidModel
    }
}

/// Where the ONNX Runtime library may lie.
#[derive(Clone, Debug, Default)]
pub struct LibrarySearch {
    /// The configuration's word; if it is there but cannot be used, that is an error.
    pub configured: Option<PathBuf>,
    /// The data directory, whose `onnxruntime/` is looked into.
    pub data_directory: Option<PathBuf>,
}

/// The ONNX Runtime library named by the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("ONNX Runtime library {path}: {why}")]
pub struct LibraryError {
    path: PathBuf,
    why: String,
}

/// The backends of this process.
pub struct Backends {
    library: Option<PathBuf>,
    onnxruntime: Option<onnxruntime::Runtime>,
    pool: BufferPool,
}

impl Backends {
    /// Look for ONNX Runtime: where the configuration says, in `ORT_DYLIB_PATH`, in the data
    /// directory. Where there is none, tract serves and a warning says so. The runs of one instance
    /// may take `run_memory_bytes` of the host's memory besides the model's weights.
    pub fn open(
        search: &LibrarySearch,
        pool: BufferPool,
        run_memory_bytes: usize,
    ) -> Result<Arc<Self>, LibraryError> {
        let open = |path: &Path| onnxruntime::Runtime::open(path, pool.clone(), run_memory_bytes);
        let onnxruntime = match find_library(search) {
            Some(path) => match open(&path) {
                Ok(runtime) => {
                    tracing::info!(library = %path.display(), "models run on ONNX Runtime");
                    // A child process works in another folder.
                    Some((path.canonicalize().unwrap_or(path), runtime))
                }
                Err(why) if search.configured.is_some() => return Err(LibraryError { path, why }),
                Err(why) => {
                    tracing::warn!(library = %path.display(), why, "ONNX Runtime cannot be used, models run on tract, which is several times slower");
                    None
                }
            },
            None => {
                tracing::warn!(
                    "no ONNX Runtime library found (onnxruntime_library, ORT_DYLIB_PATH, or onnxruntime/ in the data directory): models run on tract, which is several times slower"
                );
                None
            }
        };
        let (library, onnxruntime) = onnxruntime.unzip();
        Ok(Arc::new(Self { library, onnxruntime, pool }))
    }

    /// The library that was found and can be used.
    pub fn library(&self) -> Option<&Path> {
        self.library.as_deref()
    }

    /// What decides how a model is loaded, apart from the model: libraries and their versions.
    pub fn version(&self) -> String {
        let onnxruntime = self.onnxruntime.as_ref().map_or("none", onnxruntime::Runtime::version);
        format!("gristmill {}, onnxruntime {onnxruntime}", env!("CARGO_PKG_VERSION"))
    }

    /// The backends that can serve, best first.
    pub fn available(&self) -> Vec<&'static str> {
        let onnxruntime = self.onnxruntime.is_some().then_some(onnxruntime::NAME);
        onnxruntime.into_iter().chain([tract::NAME]).collect()
    }

    /// Load an ONNX file and run it once. Takes long: call this off the request threads.
    pub fn load(&self, onnx: &[u8], options: &LoadOptions) -> Result<LoadedModel, LoadError> {
        let inspected = check(onnx)?;
        let Candidates { loaded, mut warnings } = self.candidates(onnx, options, &inspected);
        let mut loaded = loaded.into_iter();
        let Some((kind, Loaded { info, mut instances, staging })) = loaded.next() else {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: warnings });
        };
        let warm_up = |kind: ProviderKind, instances: &mut [Box<dyn Model>]| {
            match probe::warm_up(instances, &info, &self.pool) {
                // No request could do better.
                Err(error) if onnxruntime::is_over_limit(&error) => {
                    Err(LoadError::OutOfMemory(error.0))
                }
                warm => Ok(warm.err().map(|error| format!("{}: {}", backend_of(kind), error.0))),
            }
        };
        let mut cold: Vec<_> = warm_up(kind, &mut instances)?.into_iter().collect();
        let mut names = vec![kind.as_str()];
        let mut chains: Vec<_> = instances.into_iter().map(|instance| vec![instance]).collect();
        for (kind, mut standby) in loaded {
            if !same_interface(&info, &standby.info) {
                let backend = backend_of(kind);
                warnings.push(format!("{backend} sees other inputs or outputs: not on stand-by"));
                continue;
            }
            cold.extend(warm_up(kind, &mut standby.instances)?);
            names.push(kind.as_str());
            chains.iter_mut().zip(standby.instances).for_each(|(chain, model)| chain.push(model));
        }
        warnings.extend(cold);
        let providers: Arc<[_]> = names.into_iter().map(ProviderHealth::new).collect();
        let instances = chains
            .into_iter()
            .map(|chain| Box::new(Chain::new(chain, providers.clone())) as Box<dyn Model>)
            .collect();
        let staging = staging.unwrap_or_else(|| self.pool.clone());
        let is_steady = inspected.is_steady();
        Ok(LoadedModel { info, instances, warnings, is_steady, providers, staging })
    }

    /// One more instance of a model that is loaded on `providers`. Takes long.
    pub fn replacement(
        &self,
        onnx: &[u8],
        options: &LoadOptions,
        providers: &Arc<[ProviderHealth]>,
    ) -> Result<Box<dyn Model>, LoadError> {
        let inspected = check(onnx)?;
        let kinds = providers.iter().filter_map(|health| ProviderKind::named(health.name));
        let options = LoadOptions { providers: kinds.collect(), instances: 1, ..options.clone() };
        let Candidates { loaded, warnings } = self.candidates(onnx, &options, &inspected);
        if loaded.len() < providers.len() {
            return Err(LoadError::Unusable { opset: inspected.opset, reasons: warnings });
        }
        let chain = loaded.into_iter().flat_map(|(_, loaded)| loaded.instances).collect();
        Ok(Box::new(Chain::new(chain, providers.clone())))
    }

    /// The model on each provider that can load it, the best first, and why others cannot.
    fn candidates(&self, onnx: &[u8], options: &LoadOptions, inspected: &Inspected) -> Candidates {
        let (mut loaded, mut warnings) = (Vec::<(ProviderKind, Loaded)>::new(), Vec::new());
        for kind in self.wanted(&options.providers) {
            // Without a list tract is for what ONNX Runtime cannot load, not beside it.
            if options.providers.is_empty() && kind == ProviderKind::Tract && !loaded.is_empty() {
                break;
            }
            match self.load_on(kind, onnx, options, inspected) {
                Ok(on) => loaded.push((kind, on)),
                Err(why) => warnings.push(format!("{}: {why}", backend_of(kind))),
            }
        }
        Candidates { loaded, warnings }
    }

    /// What to try, in order.
    pub fn wanted(&self, named: &[ProviderKind]) -> Vec<ProviderKind> {
        if !named.is_empty() {
            return named.to_vec();
        }
        let cuda = self.onnxruntime.as_ref().is_some_and(|runtime| runtime.has_cuda());
        let cuda = cuda.then_some(ProviderKind::Cuda);
        cuda.into_iter().chain([ProviderKind::Cpu, ProviderKind::Tract]).collect()
    }

    fn load_on(
        &self,
        kind: ProviderKind,
        onnx: &[u8],
        options: &LoadOptions,
        inspected: &Inspected,
    ) -> Result<Loaded, String> {
        match (kind, &self.onnxruntime) {
            (ProviderKind::Tract, _) => tract::load(onnx, options, &self.pool, inspected),
            (_, Some(runtime)) => runtime.load(onnx, options, kind, inspected),
            (_, None) => Err("its library is not there".into()),
        }
    }
}

/// What a file that may be a model says of itself.
fn check(onnx: &[u8]) -> Result<Inspected, LoadError> {
    if onnx.len() > i32::MAX as usize {
        return Err(LoadError::TooLarge(onnx.len()));
    }
    inspect(onnx)
}

/// The backend's name, for people.
fn backend_of(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Cuda => "onnxruntime on cuda",
        ProviderKind::Cpu => onnxruntime::NAME,
        ProviderKind::Tract => tract::NAME,
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

fn find_library(search: &LibrarySearch) -> Option<PathBuf> {
    if let Some(path) = &search.configured {
        return Some(path.clone());
    }
    if let Some(path) = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    library_in(&search.data_directory.as_ref()?.join("onnxruntime"))
}

/// The ONNX Runtime library directly in `directory`: the file name varies with version and system.
fn library_in(directory: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libonnxruntime.so")
            || name.starts_with("libonnxruntime.dylib")
            || name == "onnxruntime.dll"
    };
    let entries = std::fs::read_dir(directory).ok()?;
    entries.filter_map(|entry| Some(entry.ok()?.path())).find(is_library)
}

/// What a backend does not take, in a sentence.
fn unsupported(dtype: Dtype) -> String {
    format!("{dtype} tensors are not supported yet")
}

/// Run `$body` with `$type` being the Rust type of `$dtype`'s elements; `$other` for those without.
macro_rules! with_element_type {
    ($dtype:expr, $type:ident => $body:expr, $other:pat => $fallback:expr) => {
        match $dtype {
            Dtype::Bool => {
                type $type = bool;
                $body
            }
            Dtype::Uint8 => {
                type $type = u8;
                $body
            }
            Dtype::Int8 => {
                type $type = i8;
                $body
            }
            Dtype::Uint16 => {
                type $type = u16;
                $body
            }
            Dtype::Int16 => {
                type $type = i16;
                $body
            }
            Dtype::Uint32 => {
                type $type = u32;
                $body
            }
            Dtype::Int32 => {
                type $type = i32;
                $body
            }
            Dtype::Uint64 => {
                type $type = u64;
                $body
            }
            Dtype::Int64 => {
                type $type = i64;
                $body
            }
            Dtype::Float16 => {
                type $type = half::f16;
                $body
            }
            Dtype::Float32 => {
                type $type = f32;
                $body
            }
            Dtype::Float64 => {
                type $type = f64;
                $body
            }
            $other => $fallback,
        }
    };
}
use with_element_type;

#[cfg(test)]
mod tests;
