//! A model's configuration as it is written and logged, and what it means to the batcher.
//!
//! Where Triton has a word for something it is used, in its meaning; times end in `_us` or `_ms`.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_backend::{GraphOptimization, LoadOptions, ProviderKind};
use gristmill_batch::{LOST_AFTER, LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::ControlError;

/// The most priority levels.
const LEVELS_MAX: u32 = 64;

/// What can run a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    /// ONNX Runtime on an NVIDIA GPU.
    Cuda,
    /// ONNX Runtime on the processor.
    Cpu,
    Tract,
}

/// How much ONNX Runtime may rewrite a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GraphOptimizationSpec {
    Disable,
    Basic,
    Extended,
    #[default]
    All,
}

/// How a model is loaded and batched.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelConfig {
    /// The most rows in a batch. A request of more is run in several.
    pub max_batch_size: usize,
    /// Sizes worth waiting for; the largest that the queue fills is taken.
    pub preferred_batch_sizes: Vec<usize>,
    /// How long a request may wait for others while an instance is idle.
    pub max_queue_delay_us: u64,
    /// Priority levels, 1 being served first.
    pub priority_levels: u32,
    /// The level of requests that name none; 0: the middle one.
    pub default_priority_level: u32,
    /// After so long in a level a request moves up by one.
    pub priority_ageing_ms: u64,
    /// How each level queues, where `priority_queue_policies` does not say otherwise.
    pub default_queue_policy: QueuePolicySpec,
    /// By level.
    pub priority_queue_policies: BTreeMap<u32, QueuePolicySpec>,
    /// The most rows waiting; further requests get 429.
    pub max_queue_rows: usize,
    /// The most bytes of inputs waiting.
    pub max_queue_bytes: usize,
    /// The most rows of one tenant waiting; not given: half of all.
    pub max_tenant_queue_rows: Option<usize>,
    /// The most bytes of one tenant waiting; not given: half of all.
    pub max_tenant_queue_bytes: Option<usize>,
    /// A run is told to end so long after the last deadline of its requests.
    pub run_grace_ms: u64,
    /// Instances, each run by one thread at a time.
    pub instances: usize,
    /// Threads that one run may use inside an operator.
    pub threads: usize,
    /// Threads that run independent operators side by side; 1: one after the other.
    pub inter_op_threads: usize,
    /// In order of preference: the first that can load the model serves, the others stand by. Empty: the
    /// best there is.
    pub providers: Vec<ProviderName>,
    /// By provider, in ONNX Runtime's own words, `device_id` for example.
    pub provider_options: BTreeMap<ProviderName, BTreeMap<String, String>>,
    pub graph_optimization: GraphOptimizationSpec,
    /// Whether ONNX Runtime keeps memory between runs.
    pub memory_arena: bool,
    /// Whether ONNX Runtime plans memory ahead for shapes it has seen.
    pub memory_pattern: bool,
}

/// How a priority level queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueuePolicySpec {
    /// The most requests in the level; 0: only the limits on rows and bytes count.
    pub max_queue_size: usize,
    /// How long a request may be queued; 0: until its deadline.
    pub default_timeout_us: u64,
    /// What becomes of one that was queued longer.
    pub timeout_action: TimeoutActionSpec,
    /// Whether a request may name a shorter timeout.
    pub allow_timeout_override: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeoutActionSpec {
    /// It fails.
    #[default]
    Reject,
    /// It waits on, behind everything else in its level.
    Delay,
}

impl Default for ModelConfig {
    fn default() -> Self {
        Self {
            max_batch_size: 256,
            preferred_batch_sizes: Vec::new(),
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
            instances: 1,
            threads: 1,
            inter_op_threads: 1,
            providers: Vec::new(),
            provider_options: BTreeMap::new(),
            graph_optimization: GraphOptimizationSpec::All,
            memory_arena: true,
            memory_pattern: true,
        }
    }
}

impl ModelConfig {
    /// The configuration that `document` is.
    ///
    /// # Errors
    /// [`ControlError::Invalid`] with every fault at once: unknown keys, values of the wrong type or out of
    /// range.
    pub fn read(document: Map<String, Value>) -> Result<Self, ControlError> {
        let (mut sound, mut faults) = (Map::new(), Vec::new());
        for (key, value) in document {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            match Self::deserialize(Value::Object(alone)) {
                Ok(_) => drop(sound.insert(key, value)),
                Err(error) => faults.push(format!("{key}: {error}")),
            }
        }
        let config = Self::deserialize(Value::Object(sound));
        let config = config.map_err(|error| ControlError::Invalid(vec![error.to_string()]))?;
        faults.extend(config.faults());
        if faults.is_empty() { Ok(config) } else { Err(ControlError::Invalid(faults)) }
    }

    /// What is wrong with it: every fault at once.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut within = |name: &str, value: u64, min: u64, max: u64| {
            if !(min..=max).contains(&value) {
                faults.push(format!("{name} is {value}: must be {min} to {max}"));
            }
        };
        let batch = self.max_batch_size as u64;
        within("max_batch_size", batch, 1, 65_536);
        for size in &self.preferred_batch_sizes {
            within("preferred_batch_sizes", *size as u64, 1, batch.max(1));
        }
        within("max_queue_delay_us", self.max_queue_delay_us, 0, 60_000_000);
        within("priority_levels", self.priority_levels.into(), 1, LEVELS_MAX.into());
        let levels = u64::from(self.priority_levels.clamp(1, LEVELS_MAX));
        within("default_priority_level", self.default_priority_level.into(), 0, levels);
        within("priority_ageing_ms", self.priority_ageing_ms, 1, 3_600_000);
        for level in self.priority_queue_policies.keys() {
            within("priority_queue_policies", (*level).into(), 1, levels);
        }
        for policy in self.priority_queue_policies.values().chain([&self.default_queue_policy]) {
            within("max_queue_size", policy.max_queue_size as u64, 0, 10_000_000);
            within("default_timeout_us", policy.default_timeout_us, 0, 3_600_000_000);
        }
        within("max_queue_rows", self.max_queue_rows as u64, 1, 10_000_000);
        within("max_queue_bytes", self.max_queue_bytes as u64, 1, 1 << 40);
        let (rows, bytes) = (self.max_queue_rows as u64, self.max_queue_bytes as u64);
        if let Some(own) = self.max_tenant_queue_rows {
            within("max_tenant_queue_rows", own as u64, 1, rows.max(1));
        }
        if let Some(own) = self.max_tenant_queue_bytes {
            within("max_tenant_queue_bytes", own as u64, 1, bytes.max(1));
        }
        within("run_grace_ms", self.run_grace_ms, 0, 3_600_000);
        within("instances", self.instances as u64, 1, 64);
        within("threads", self.threads as u64, 1, 256);
        within("inter_op_threads", self.inter_op_threads as u64, 1, 256);
        if self.max_queue_rows < self.max_batch_size {
            faults.push(format!(
                "max_queue_rows is {rows}: must be at least max_batch_size, {batch}"
            ));
        }
        for (index, provider) in self.providers.iter().enumerate() {
            if self.providers[..index].contains(provider) {
                let name = provider.kind().as_str();
                faults.push(format!("providers[{index}] is {name:?}, which is named before"));
            }
        }
        for provider in self.provider_options.keys() {
            if *provider != ProviderName::Cuda {
                let name = provider.kind().as_str();
                faults.push(format!("provider_options has {name:?}, which takes none"));
            } else if !self.providers.is_empty() && !self.providers.contains(provider) {
                faults.push("provider_options has \"cuda\", which is not among providers".into());
            }
        }
        faults
    }

    /// What the backends make of it.
    pub(crate) fn load_options(&self) -> LoadOptions {
        LoadOptions {
            providers: self.providers.iter().map(|name| name.kind()).collect(),
            cuda_options: self
                .provider_options
                .get(&ProviderName::Cuda)
                .cloned()
                .unwrap_or_default(),
            instances: self.instances,
            threads: self.threads,
            inter_op_threads: self.inter_op_threads,
            graph_optimization: match self.graph_optimization {
                GraphOptimizationSpec::Disable => GraphOptimization::Disable,
                GraphOptimizationSpec::Basic => GraphOptimization::Basic,
                GraphOptimizationSpec::Extended => GraphOptimization::Extended,
                GraphOptimizationSpec::All => GraphOptimization::All,
            },
            memory_arena: self.memory_arena,
            memory_pattern: self.memory_pattern,
            warm_rows: self.max_batch_size,
        }
    }

    /// What the batcher makes of it; it has no [faults](Self::faults).
    pub(crate) fn lane(&self) -> LaneConfig {
        let levels = (1..=self.priority_levels).map(|level| {
            self.priority_queue_policies.get(&level).unwrap_or(&self.default_queue_policy).resolve()
        });
        let default_level = match self.default_priority_level {
            0 => self.priority_levels.div_ceil(2),
            level => level,
        };
        let mut preferred = self.preferred_batch_sizes.clone();
        preferred.sort_unstable();
        preferred.dedup();
        // A tenant may always queue what fills a batch.
        let half = (self.max_queue_rows / 2).max(self.max_batch_size);
        LaneConfig {
            max_batch_size: self.max_batch_size,
            preferred_batch_sizes: preferred,
            max_queue_delay: Duration::from_micros(self.max_queue_delay_us),
            levels: levels.collect(),
            default_level: default_level as usize - 1,
            ageing: Duration::from_millis(self.priority_ageing_ms),
            queue: QueueLimits { rows: self.max_queue_rows, bytes: self.max_queue_bytes },
            tenant_queue: QueueLimits {
                rows: self.max_tenant_queue_rows.unwrap_or(half),
                bytes: self.max_tenant_queue_bytes.unwrap_or(self.max_queue_bytes / 2),
            },
            leads: true,
            run_grace: Duration::from_millis(self.run_grace_ms),
            lost_after: LOST_AFTER,
        }
    }
}

impl ProviderName {
    pub(crate) fn of(kind: ProviderKind) -> Self {
        match kind {
            ProviderKind::Cuda => Self::Cuda,
            ProviderKind::Cpu => Self::Cpu,
            ProviderKind::Tract => Self::Tract,
        }
    }

    fn kind(self) -> ProviderKind {
        match self {
            Self::Cuda => ProviderKind::Cuda,
            Self::Cpu => ProviderKind::Cpu,
            Self::Tract => ProviderKind::Tract,
        }
    }
}

impl QueuePolicySpec {
    fn resolve(&self) -> QueuePolicy {
        let timeout = Duration::from_micros(self.default_timeout_us);
        QueuePolicy {
            max_requests: Some(self.max_queue_size).filter(|max| *max > 0),
            timeout: Some(timeout).filter(|timeout| !timeout.is_zero()),
            timeout_action: match self.timeout_action {
                TimeoutActionSpec::Reject => TimeoutAction::Reject,
                TimeoutActionSpec::Delay => TimeoutAction::Delay,
            },
            allow_timeout_override: self.allow_timeout_override,
        }
    }
}
