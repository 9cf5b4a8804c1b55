//! How a model is loaded: on which providers, with which options.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use gristmill_core::PaddingSpec;
use serde::{Deserialize, Serialize};

/// The name of ONNX Runtime as a backend.
pub(crate) const ONNXRUNTIME: &str = "onnxruntime";

/// The name of tract as a backend.
pub(crate) const TRACT: &str = "tract";

/// A provider: a library and the device on which it runs a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// ONNX Runtime on an NVIDIA GPU.
    Cuda,
    /// ONNX Runtime on the processor.
    Cpu,
    /// tract, on the processor.
    Tract,
}

impl ProviderKind {
    /// The name in the configuration and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Cpu => "cpu",
            Self::Tract => "tract",
        }
    }

    /// Whether the model runs on a GPU.
    pub fn is_gpu(self) -> bool {
        self == Self::Cuda
    }

    /// Whether ONNX Runtime runs the model on it.
    pub fn is_onnxruntime(self) -> bool {
        matches!(self, Self::Cuda | Self::Cpu)
    }
}

/// How much ONNX Runtime may rewrite a graph when it loads it. Source:
/// <https://onnxruntime.ai/docs/performance/model-optimizations/graph-optimizations.html>.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GraphOptimization {
    /// Nothing.
    Disable,
    /// Rewrites that keep the graph's meaning on every provider, such as folding constants.
    Basic,
    /// Also fusions of nodes for the provider.
    Extended,
    /// Also changes of layout.
    #[default]
    All,
}

/// Whether rows of several requests may share a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Batching {
    /// If rows are proven to be independent.
    #[default]
    Proven,
    /// Never.
    Off,
    /// Always: the operator says that rows are independent.
    Declared,
}

impl Batching {
    /// Whether a proof decides.
    pub fn is_proven(self) -> bool {
        self == Self::Proven
    }
}

/// The default of [`LoadOptions::trial_time`].
pub const TRIAL_TIME: Duration = Duration::from_secs(5);

/// How a model is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LoadOptions {
    /// Providers in order of preference. The first one that can load the model serves; the others
    /// that can load it stand by. If the list is empty, the best provider serves, and behind a GPU
    /// ONNX Runtime on the processor stands by.
    pub providers: Vec<ProviderKind>,
    /// Options of the CUDA provider, by ONNX Runtime's names. Source:
    /// <https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html>.
    pub cuda_options: BTreeMap<String, String>,
    /// Instances to load, each for a thread of its own.
    pub instances: usize,
    /// Threads that one run may use inside an operator.
    pub threads: usize,
    /// Threads that run independent operators side by side. With 1 they run one after the other.
    pub inter_op_threads: usize,
    /// How much a graph may be rewritten.
    pub graph_optimization: GraphOptimization,
    /// Whether ONNX Runtime keeps memory between runs.
    pub memory_arena: bool,
    /// Whether ONNX Runtime plans memory ahead for shapes it has seen.
    pub memory_pattern: bool,
    /// The sizes of the batches that the model runs, ascending. Empty if they may have any size. On
    /// CUDA an instance of a model with convolutions has a session for each.
    pub allowed_batch_sizes: Vec<usize>,
    /// The batch sizes that each instance runs once on zeros when it is loaded, so that the first
    /// requests do not pay for it. None: the smallest allowed one, or each that has a session; 1 if
    /// any size is allowed.
    pub warm_up: Option<Vec<usize>>,
    /// Whether requests may share batches.
    pub batching: Batching,
    /// How rows of different lengths may be padded. It is used only if requests share batches.
    pub padding: PaddingSpec,
    /// The time that testing the independence of its rows may take on a provider; testing whether
    /// they may be padded may take as long.
    pub trial_time: Duration,
}

impl LoadOptions {
    /// The batch sizes that an instance with `sessions` of their own runs first.
    pub(crate) fn warm_up_sizes(&self, sessions: &[usize]) -> Vec<usize> {
        match &self.warm_up {
            Some(sizes) => sizes.clone(),
            None if !sessions.is_empty() => sessions.to_vec(),
            None => vec![self.allowed_batch_sizes.first().copied().unwrap_or(1)],
        }
    }
}

impl fmt::Display for ProviderKind {
    /// The library and the device, for display.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cuda => "onnxruntime on cuda",
            Self::Cpu => ONNXRUNTIME,
            Self::Tract => TRACT,
        })
    }
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
            allowed_batch_sizes: Vec::new(),
            warm_up: None,
            batching: Batching::Proven,
            padding: PaddingSpec::default(),
            trial_time: TRIAL_TIME,
        }
    }
}
