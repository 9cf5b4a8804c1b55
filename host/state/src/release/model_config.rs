//! A model's configuration as it is logged.
//!
//! Names that Triton has mean the same here; names of times end in `_us` or `_ms`. `read` reads a
//! configuration from a document, `check` checks its ranges, and `meaning` turns it into settings
//! of the batcher and the backends. `padding` says how rows of different lengths share batches,
//! `tensors` is what it says of inputs and outputs to clients, `triton` reads Triton's own
//! documents. Its enums mirror those of the backends and the batcher, because the spelling in the
//! log must never change, not even if another crate renames something.

mod check;
mod meaning;
mod padding;
mod read;
mod size;
mod tensors;
mod triton;

use std::collections::BTreeMap;

use gristmill_backend::TRIAL_TIME;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

pub use self::padding::{CutSpec, PadSpec};
pub use self::size::SizeSpec;
pub use self::size::Sizes;
use self::size::size_schema;
pub use self::tensors::{FormatSpec, InputSpec, LABELS_MAX, Labels, OutputSpec};
pub use self::triton::LabelFiles;
use crate::release::version_policy::VersionPolicy;

/// The providers that can run a model.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
#[schema(as = Provider)]
pub enum ProviderName {
    /// ONNX Runtime on an NVIDIA GPU.
    Cuda,
    /// ONNX Runtime on the processor.
    Cpu,
    /// tract, on the processor.
    Tract,
}

/// The degree to which ONNX Runtime may rewrite a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = GraphOptimization)]
pub enum GraphOptimizationSpec {
    /// Not at all.
    Disable,
    /// By folding constants and removing operators without effect.
    Basic,
    /// Also by fusing operators into larger ones.
    Extended,
    /// Also by changing the layout of tensors.
    #[default]
    All,
}

/// Whether requests of a model share batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Batching)]
pub enum BatchingSpec {
    /// If a trial and the graph prove that rows do not influence each other.
    #[default]
    Proven,
    /// Never. Each request runs alone, with the dimensions that it has.
    Off,
    /// Always. The operator states that rows do not influence each other. Some requests are run
    /// again alone; if one gets another answer, or the number of rows changes, batching ends.
    Declared,
}

/// The configuration of a model: loading and batching.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The most rows in a batch. A larger request runs in several batches if rows are proven to be
    /// independent. 0: as `batching` `off`.
    #[schema(schema_with = size_schema::<0, 65_536>)]
    pub max_batch_size: SizeSpec,
    /// Whether requests share batches.
    pub batching: BatchingSpec,
    /// The CPU time that proving the independence of rows may take on each provider, when the
    /// model is loaded for the first time.
    #[schema(minimum = 100, maximum = 600_000)]
    pub batch_proof_ms: u64,
    /// Preferred sizes. A batch gets the largest of them that the queue fills.
    pub preferred_batch_sizes: Vec<usize>,
    /// The sizes of the batches that the model runs, ascending, the last one `max_batch_size`. A
    /// batch is padded to the next of them. On CUDA an instance of a model with convolutions has a
    /// session, with its own memory, for each. Empty: any size.
    #[schema(max_items = 64)]
    pub allowed_batch_sizes: Vec<usize>,
    /// The inputs that may be filled up to a bucket, so that rows of different lengths share
    /// batches, by input. It is tried when the model is loaded, and refused if an output changes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pad: BTreeMap<String, PadSpec>,
    /// The outputs that grow with a padded input, by output. They are cut back to the length of
    /// each request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cut: BTreeMap<String, CutSpec>,
    /// How long a request may wait for others while an instance is idle.
    #[schema(maximum = 60_000_000)]
    pub max_queue_delay_us: u64,
    /// Priority levels, 1 being served first.
    #[schema(minimum = 1, maximum = 64)]
    pub priority_levels: u32,
    /// The level of requests that name no level. 0 means the middle level.
    #[schema(maximum = 64)]
    pub default_priority_level: u32,
    /// After this time in a level a request moves up by one level.
    #[schema(minimum = 1, maximum = 3_600_000)]
    pub priority_ageing_ms: u64,
    /// The queueing of each level, unless `priority_queue_policies` says otherwise.
    pub default_queue_policy: QueuePolicySpec,
    /// The queueing of single levels, by level.
    #[schema(value_type = BTreeMap<String, QueuePolicySpec>)]
    #[serde(deserialize_with = "by_level")]
    pub priority_queue_policies: BTreeMap<u32, QueuePolicySpec>,
    /// The most rows waiting; further requests get 429.
    #[schema(minimum = 1, maximum = 10_000_000)]
    pub max_queue_rows: usize,
    /// The most bytes of inputs waiting.
    #[schema(minimum = 1, maximum = 1_099_511_627_776_u64)]
    pub max_queue_bytes: usize,
    /// The most rows of one tenant waiting. If it is not given: half of all.
    #[schema(minimum = 1, maximum = 10_000_000)]
    pub max_tenant_queue_rows: Option<usize>,
    /// The most bytes of one tenant waiting. If it is not given: half of all.
    #[schema(minimum = 1, maximum = 1_099_511_627_776_u64)]
    pub max_tenant_queue_bytes: Option<usize>,
    /// The time from the last deadline of a run's requests until the run is told to end.
    #[schema(maximum = 3_600_000)]
    pub run_grace_ms: u64,
    /// Instances, each run by one thread at a time.
    #[schema(schema_with = size_schema::<1, 64>)]
    pub instances: SizeSpec,
    /// Threads that one run may use inside an operator.
    #[schema(schema_with = size_schema::<1, 256>)]
    pub threads: SizeSpec,
    /// Threads that run independent operators side by side. With 1 they run one after the other.
    #[schema(minimum = 1, maximum = 256)]
    pub inter_op_threads: usize,
    /// The providers in order of preference. The first one that can load the model serves; the
    /// others stand by. An empty list means the best available provider.
    pub providers: Vec<ProviderName>,
    /// Options by provider, with ONNX Runtime's names, for example `device_id`.
    #[schema(value_type = BTreeMap<String, BTreeMap<String, String>>)]
    pub provider_options: BTreeMap<ProviderName, BTreeMap<String, String>>,
    /// The degree to which the graph may be rewritten.
    pub graph_optimization: GraphOptimizationSpec,
    /// Whether ONNX Runtime keeps memory between runs.
    pub memory_arena: bool,
    /// Whether ONNX Runtime plans memory ahead for shapes it has seen.
    pub memory_pattern: bool,
    /// The batch sizes that each instance runs once on zeros when it is loaded. If it is not given:
    /// the smallest of `allowed_batch_sizes`, or all of them if each has a session; 1 if any size
    /// is allowed.
    #[schema(max_items = 16)]
    pub warm_up: Option<Vec<usize>>,
    /// The versions that stay loaded beside the newest one.
    pub version_policy: VersionPolicy,
    /// What is said of inputs.
    #[schema(max_items = 1024)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<InputSpec>,
    /// What is said of outputs.
    #[schema(max_items = 1024)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output: Vec<OutputSpec>,
}

/// The queueing of a priority level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[schema(as = QueuePolicy)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePolicySpec {
    /// The most requests in the level. 0: only the limits on rows and bytes apply.
    #[schema(maximum = 10_000_000)]
    pub max_queue_size: usize,
    /// The longest time in the queue; 0 means until the deadline.
    #[schema(maximum = 3_600_000_000_u64)]
    pub default_timeout_us: u64,
    /// The action for a request that was queued longer.
    pub timeout_action: TimeoutActionSpec,
    /// Whether a request may name a shorter timeout.
    pub allow_timeout_override: bool,
}

/// The action for a request that was queued too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = TimeoutAction)]
pub enum TimeoutActionSpec {
    /// It fails.
    #[default]
    Reject,
    /// It stays queued, behind all other requests of its level.
    Delay,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            max_batch_size: SizeSpec::AUTO,
            batching: BatchingSpec::Proven,
            batch_proof_ms: TRIAL_TIME.as_millis() as u64,
            preferred_batch_sizes: Vec::new(),
            allowed_batch_sizes: Vec::new(),
            pad: BTreeMap::new(),
            cut: BTreeMap::new(),
            max_queue_delay_us: 0,
            priority_levels: 1,
            default_priority_level: 0,
            priority_ageing_ms: 1000,
            default_queue_policy: QueuePolicySpec::default(),
            priority_queue_policies: BTreeMap::new(),
            max_queue_rows: 16_384,
            max_queue_bytes: 1 << 30,
            max_tenant_queue_rows: None,
            max_tenant_queue_bytes: None,
            run_grace_ms: 1000,
            instances: SizeSpec::AUTO,
            threads: SizeSpec::AUTO,
            inter_op_threads: 1,
            providers: Vec::new(),
            provider_options: BTreeMap::new(),
            graph_optimization: GraphOptimizationSpec::All,
            memory_arena: true,
            memory_pattern: true,
            warm_up: None,
            version_policy: VersionPolicy::default(),
            input: Vec::new(),
            output: Vec::new(),
        }
    }
}

/// Reads levels as JSON has them, as texts. Inside of a release's changes, which are told apart by
/// their kind, serde reads no other keys.
fn by_level<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<u32, QueuePolicySpec>, D::Error> {
    let policies = BTreeMap::<String, QueuePolicySpec>::deserialize(deserializer)?;
    let parsed =
        |(level, policy): (String, _)| Ok((level.parse().map_err(D::Error::custom)?, policy));
    policies.into_iter().map(parsed).collect()
}

#[cfg(test)]
mod tests;
