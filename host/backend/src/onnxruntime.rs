//! Models on ONNX Runtime, on the processor or on CUDA. `ort` loads its library at run time.
//!
//! `run` limits and ends the runs of a session, `values` and `texts` pass tensors, `pinned` gives
//! CUDA memory to stage batches in, `message` shortens errors, and `by_size` has a session for each
//! size of batches.
//! Refuses to know other providers: `fallback` does.
//!
//! Invariant: ONNX Runtime is set up only if `ORT_DISABLE_TELEMETRY` is 1. Otherwise version 1.31
//! writes a database and a device id to the home directory.

mod by_size;
mod message;
mod pinned;
mod run;
mod texts;
mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gristmill_core::{
    BufferPool, Interrupt, Model, ModelError, ModelInfo, NamedTensor, Tensor, TensorInfo,
};
use gristmill_platform::NativeMemory;
use ort::environment::Environment;
use ort::ep::{
    ArbitrarilyConfigurableExecutionProvider, CPU, CUDA, ExecutionProvider,
    ExecutionProviderDispatch,
};
use ort::session::Session;
use ort::session::builder::{GraphOptimizationLevel, SessionBuilder};
use ort::value::{Outlet, ValueType};

use self::run::{Keeping, Runs, Threads, run_failed};
use self::values::{OutputMemory, from_ort, read_all, unaliased, view};
use crate::error::{LibraryFault, ProviderError};
use crate::inspect::Inspected;
use crate::loaded::Loaded;
use crate::memory::SessionMemory;
use crate::options::{GraphOptimization, LoadOptions, ONNXRUNTIME, ProviderKind};
use crate::source::ModelSource;

/// The library reads this variable when it is set up. If it is not set, version 1.31 opens a
/// database and writes a device id under the home directory, even with `with_telemetry(false)`.
const NO_TELEMETRY: &str = "ORT_DISABLE_TELEMETRY";

/// Options of CUDA that differ from ONNX Runtime's own defaults. cuDNN chooses the algorithms of
/// convolutions by heuristics, because it would otherwise try all of them for each new size of
/// batch, which stops a model for up to a second each time.
const CUDA_DEFAULTS: [(&str, &str); 1] = [("cudnn_conv_algo_search", "HEURISTIC")];

/// An option of a session: the folder of the files that a model in memory names.
/// Source: `onnxruntime_session_options_config_keys.h`.
const WEIGHTS_FOLDER: &str = "session.model_external_initializers_file_folder_path";

pub(crate) struct Runtime {
    environment: Environment,
    pool: BufferPool,
    /// Maximum memory that the runs of one session may take.
    run_memory_bytes: usize,
}

impl Runtime {
    pub(crate) fn open(
        library: &Path,
        pool: BufferPool,
        run_memory_bytes: usize,
    ) -> Result<Self, LibraryFault> {
        if std::env::var_os(NO_TELEMETRY).is_none_or(|value| value != "1") {
            return Err(LibraryFault::Telemetry(NO_TELEMETRY));
        }
        if !gristmill_platform::is_counted() {
            tracing::warn!(
                "this program does not export posix_memalign and aligned_alloc: the memory of models' \
                 runs is not bounded"
            );
        }
        // Absolute, because `ort` would look for a relative path beside the executable first.
        let library = library.canonicalize()?;
        let environment =
            ort::init_from(library)?.with_name("gristmill").with_telemetry(false).build()?;
        Ok(Self { environment, pool, run_memory_bytes })
    }

    /// The library's name and version.
    pub(crate) fn version(&self) -> &'static str {
        ort::info()
    }

    /// Whether the library can run models on an NVIDIA GPU.
    pub(crate) fn has_cuda(&self) -> bool {
        CUDA::is_available().unwrap_or(false)
    }

    pub(crate) fn load(
        &self,
        source: &ModelSource<'_>,
        options: &LoadOptions,
        provider: ProviderKind,
        inspected: &Inspected,
    ) -> Result<Loaded, ProviderError> {
        let first = self.session(source, options, provider)?;
        let (inputs, outputs) = (first.0.inputs(), first.0.outputs());
        let info = ModelInfo {
            backend: ONNXRUNTIME,
            inputs: inputs.iter().map(describe).collect::<Result<_, _>>()?,
            outputs: outputs.iter().map(describe).collect::<Result<_, _>>()?,
            forms_batches: false,
            // Those that this host cannot make stay at their defaults.
            optional: (first.0.overridable_initializers().iter())
                .filter_map(|input| described(input.name(), input.dtype()).ok())
                .collect(),
            equal_dims: Vec::new(),
        };
        let (staging, arenas) = match provider {
            ProviderKind::Cuda => {
                let device = device_of(options)?;
                let staging = pinned::staging(&first.0, &pinned::memory(device)?);
                (staging, format!("cpu:0;gpu:{device}"))
            }
            ProviderKind::Cpu | ProviderKind::Tract => (None, "cpu:0".to_owned()),
        };
        let on_caller =
            provider == ProviderKind::Cpu && options.threads == 1 && options.inter_op_threads == 1;
        let arenas = options.memory_arena.then_some(arenas);
        let keeping = Keeping { arenas, is_steady: inspected.is_steady() };
        let sizes = by_size::session_sizes(provider, &info, inspected, options);
        let count = options.instances * sizes.len().max(1);
        let (mut sessions, mut taken) = (Vec::with_capacity(count), Vec::new());
        let mut next = Some(first);
        while sessions.len() < count {
            // Each instance has its own session, so that on CUDA each has its own stream: a session
            // makes one stream (`cudaStreamCreateWithFlags`, non-blocking) for each concurrent run.
            let (session, memory) = match next.take() {
                Some(session) => session,
                None => self.session(source, options, provider)?,
            };
            let (outputs, pool) = (info.outputs.clone(), self.pool.clone());
            taken.push(Arc::downgrade(&memory));
            let runs = Arc::new(Runs::new(memory, &keeping)?);
            sessions.push(Instance { session, runs, outputs, pool, on_caller });
        }
        let instances = by_size::instances(sessions, sizes);
        let session_sizes = sizes.to_vec();
        Ok(Loaded { info, instances, session_sizes, staging, memory: taken })
    }

    fn session(
        &self,
        source: &ModelSource<'_>,
        options: &LoadOptions,
        provider: ProviderKind,
    ) -> Result<(Session, Arc<SessionMemory>), ProviderError> {
        let memory = SessionMemory::new(self.run_memory_bytes, options.memory_arena);
        let level = match options.graph_optimization {
            GraphOptimization::Disable => GraphOptimizationLevel::Disable,
            GraphOptimization::Basic => GraphOptimizationLevel::Level1,
            GraphOptimization::Extended => GraphOptimizationLevel::Level2,
            GraphOptimization::All => GraphOptimizationLevel::All,
        };
        let parallel = options.inter_op_threads > 1;
        // The builder's error type contains the builder; `ort::Error` does not.
        let configured = || -> ort::Result<SessionBuilder> {
            Ok(Session::builder(&self.environment)?
                .with_thread_manager(Threads(memory.clone()))?
                .with_intra_threads(options.threads)?
                .with_inter_threads(options.inter_op_threads)?
                .with_parallel_execution(parallel)?
                // Spinning threads would take the cores that plugins run on.
                .with_intra_op_spinning(false)?
                .with_inter_op_spinning(false)?
                .with_optimization_level(level)?
                .with_memory_pattern(options.memory_pattern && !parallel)?
                .with_execution_providers(execution_providers(provider, options))?)
        };
        let mut configured = configured()?;
        if let Some(weights) = source.weights {
            let folder = configured.with_config_entry(WEIGHTS_FOLDER, weights.folder);
            configured = folder.map_err(ort::Error::from)?;
        }
        let loading = NativeMemory::new(usize::MAX);
        let session = loading.count(|| configured.commit_from_memory(&source.onnx))?;
        memory.loaded(loading.taken_bytes() + memory.runs.taken_bytes());
        Ok((session, memory))
    }
}

/// The execution providers of a session. An accelerator that cannot be used is an error: this crate
/// itself falls back to another provider, and warns.
fn execution_providers(
    provider: ProviderKind,
    options: &LoadOptions,
) -> Vec<ExecutionProviderDispatch> {
    let cpu = CPU::default().with_arena_allocator(options.memory_arena).build();
    match provider {
        ProviderKind::Cuda => {
            let of_model = options.cuda_options.iter().map(|(key, value)| (&**key, &**value));
            let all: BTreeMap<_, _> = CUDA_DEFAULTS.into_iter().chain(of_model).collect();
            let cuda = all
                .into_iter()
                .fold(CUDA::default(), |cuda, (key, value)| cuda.with_arbitrary_config(key, value));
            vec![cuda.build().error_on_failure(), cpu]
        }
        ProviderKind::Cpu | ProviderKind::Tract => vec![cpu],
    }
}

fn describe(outlet: &Outlet) -> Result<TensorInfo, ProviderError> {
    described(outlet.name(), outlet.dtype())
}

fn described(name: &str, dtype: &ValueType) -> Result<TensorInfo, ProviderError> {
    let name = name.to_owned();
    let ValueType::Tensor { ty, shape, .. } = dtype else {
        return Err(ProviderError::NotATensor { name, actual: dtype.to_string() });
    };
    let Some(dtype) = from_ort(*ty) else {
        return Err(ProviderError::ElementType { name, actual: ty.to_string() });
    };
    let dims = shape.iter().map(|dim| usize::try_from(*dim).ok()).collect();
    Ok(TensorInfo { name: name.into(), dtype, dims })
}

/// The GPU in `options`.
fn device_of(options: &LoadOptions) -> Result<i32, ProviderError> {
    let Some(id) = options.cuda_options.get("device_id") else { return Ok(0) };
    id.parse().map_err(|source| ProviderError::DeviceId { value: id.clone(), source })
}

struct Instance {
    session: Session,
    runs: Arc<Runs>,
    outputs: Vec<TensorInfo>,
    pool: BufferPool,
    on_caller: bool,
}

// A run returns only when its stream is done and the outputs are on the host: ONNX Runtime
// synchronizes by default. Source: `onnxruntime_run_options_config_keys.h`,
// `disable_synchronize_execution_providers`.
impl Model for Instance {
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
        let values = inputs.iter().map(view).collect::<Result<Vec<_>, _>>()?;
        let Self { session, runs, outputs, pool, .. } = self;
        let outputs = runs.limited(|options, pin| {
            let values = session.run_with_options(&values[..], options).map_err(run_failed)?;
            read_all(values, outputs, OutputMemory { pool, pin })
        })?;
        outputs.into_iter().map(|output| unaliased(output, inputs, pool)).collect()
    }

    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        let Self { session, runs, outputs, pool, .. } = self;
        let names: Vec<_> = session.inputs().iter().map(|input| input.name().to_owned()).collect();
        let names = names.iter().map(String::as_str);
        let named =
            names.zip(inputs).chain(optional.iter().map(|input| (&*input.name, &input.tensor)));
        let outputs = runs.limited(|options, pin| {
            let values = named.clone().map(|(name, tensor)| Ok((name, view(tensor)?)));
            let values = values.collect::<Result<Vec<_>, ModelError>>()?;
            let values = session.run_with_options(values, options).map_err(run_failed)?;
            read_all(values, outputs, OutputMemory { pool, pin })
        })?;
        let all = inputs.iter().chain(optional.iter().map(|input| &input.tensor));
        let all: Vec<_> = all.cloned().collect();
        outputs.into_iter().map(|output| unaliased(output, &all, pool)).collect()
    }

    fn ran_on_caller(&self) -> bool {
        self.on_caller
    }

    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        Some(self.runs.clone())
    }
}

#[cfg(test)]
mod tests;
