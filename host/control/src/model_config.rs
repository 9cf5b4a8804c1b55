//! A model's configuration as it is written and logged, and what it means to the batcher.
//!
//! Where Triton has a word for something it is used, in its meaning; times end in `_us` or `_ms`.

use std::collections::BTreeMap;
use std::time::Duration;

use gristmill_backend::{GraphOptimization, LoadOptions, ProviderKind};
use gristmill_batch::{LOST_AFTER, LaneConfig, QueueLimits, QueuePolicy, TimeoutAction};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Faults, named, one_of, shown};
use crate::error::ControlError;

/// The most priority levels.
const LEVELS_MAX: u32 = 64;

/// The most rows of a batch, and rows and bytes in a queue.
const BATCH_SIZE_MAX: u64 = 65_536;
const ROWS_MAX: u64 = 10_000_000;
const BYTES_MAX: u64 = 1 << 40;

/// What documents call them.
const PROVIDERS: [(&str, ProviderName); 3] =
    [("cuda", ProviderName::Cuda), ("cpu", ProviderName::Cpu), ("tract", ProviderName::Tract)];

const OPTIMIZATIONS: [(&str, GraphOptimizationSpec); 4] = [
    ("disable", GraphOptimizationSpec::Disable),
    ("basic", GraphOptimizationSpec::Basic),
    ("extended", GraphOptimizationSpec::Extended),
    ("all", GraphOptimizationSpec::All),
];

const TIMEOUT_ACTIONS: [(&str, TimeoutActionSpec); 2] =
    [("reject", TimeoutActionSpec::Reject), ("delay", TimeoutActionSpec::Delay)];

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
    /// The configuration that the document of these `keys` is.
    ///
    /// # Errors
    /// [`ControlError::Invalid`] with every fault at once: unknown keys, values of the wrong type or
    /// out of range.
    pub fn read(keys: Map<String, Value>) -> Result<Self, ControlError> {
        let mut document = Document::new(keys);
        let read = Self::read_from(&mut document);
        let mut faults = document.finish();
        read.check(&mut faults);
        if faults.is_empty() { Ok(read) } else { Err(ControlError::Invalid(faults.into_texts())) }
    }

    fn read_from(read: &mut Document) -> Self {
        let default = Self::default();
        let size = |item: &Value| {
            let wrong = || format!(" is {}: must be a whole number from 0 on", shown(item));
            item.as_u64().map(|size| size as usize).ok_or_else(wrong)
        };
        let provider = |item: &Value| {
            let wrong = || format!(" is {}: must be {}", shown(item), one_of(&PROVIDERS));
            named(item, &PROVIDERS).ok_or_else(wrong)
        };
        Self {
            max_batch_size: read.whole("max_batch_size").unwrap_or(default.max_batch_size),
            preferred_batch_sizes: read.list("preferred_batch_sizes", size).unwrap_or_default(),
            max_queue_delay_us: read.whole("max_queue_delay_us").unwrap_or_default(),
            priority_levels: read.whole("priority_levels").unwrap_or(default.priority_levels),
            default_priority_level: read.whole("default_priority_level").unwrap_or_default(),
            priority_ageing_ms: read
                .whole("priority_ageing_ms")
                .unwrap_or(default.priority_ageing_ms),
            default_queue_policy: read.nested("default_queue_policy", QueuePolicySpec::read),
            priority_queue_policies: read_policies(read),
            max_queue_rows: read.whole("max_queue_rows").unwrap_or(default.max_queue_rows),
            max_queue_bytes: read.whole("max_queue_bytes").unwrap_or(default.max_queue_bytes),
            max_tenant_queue_rows: read.whole("max_tenant_queue_rows"),
            max_tenant_queue_bytes: read.whole("max_tenant_queue_bytes"),
            run_grace_ms: read.whole("run_grace_ms").unwrap_or(default.run_grace_ms),
            instances: read.whole("instances").unwrap_or(default.instances),
            threads: read.whole("threads").unwrap_or(default.threads),
            inter_op_threads: read.whole("inter_op_threads").unwrap_or(default.inter_op_threads),
            providers: read.list("providers", provider).unwrap_or_default(),
            provider_options: read_provider_options(read),
            graph_optimization: read
                .one_of("graph_optimization", &OPTIMIZATIONS)
                .unwrap_or(default.graph_optimization),
            memory_arena: read.flag("memory_arena").unwrap_or(default.memory_arena),
            memory_pattern: read.flag("memory_pattern").unwrap_or(default.memory_pattern),
        }
    }

    /// What is wrong with it: every fault at once.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Faults::default();
        self.check(&mut faults);
        faults.into_texts()
    }

    /// Add what is wrong with it to `faults`, of which none follows from another.
    fn check(&self, faults: &mut Faults) {
        let batch = self.max_batch_size as u64;
        faults.within("max_batch_size", batch, (1, BATCH_SIZE_MAX));
        let most = if faults.has("max_batch_size") { BATCH_SIZE_MAX } else { batch };
        for size in &self.preferred_batch_sizes {
            faults.within("preferred_batch_sizes", *size as u64, (1, most));
        }
        faults.within("max_queue_delay_us", self.max_queue_delay_us, (0, 60_000_000));
        faults.within("priority_levels", self.priority_levels.into(), (1, LEVELS_MAX.into()));
        let levels = match faults.has("priority_levels") {
            true => LEVELS_MAX,
            false => self.priority_levels,
        };
        let level = self.default_priority_level.into();
        faults.within("default_priority_level", level, (0, levels.into()));
        faults.within("priority_ageing_ms", self.priority_ageing_ms, (1, 3_600_000));
        self.default_queue_policy.check("default_queue_policy", faults);
        for (level, policy) in &self.priority_queue_policies {
            let key = format!("priority_queue_policies.{level}");
            if !(1..=levels).contains(level) {
                let text = format!("{key}: there are the levels 1 to {levels}");
                faults.add("priority_queue_policies", text);
            }
            policy.check(&key, faults);
        }
        self.check_queue(faults);
        faults.within("run_grace_ms", self.run_grace_ms, (0, 3_600_000));
        faults.within("instances", self.instances as u64, (1, 64));
        faults.within("threads", self.threads as u64, (1, 256));
        faults.within("inter_op_threads", self.inter_op_threads as u64, (1, 256));
        self.check_providers(faults);
    }

    fn check_queue(&self, faults: &mut Faults) {
        let (rows, bytes) = (self.max_queue_rows as u64, self.max_queue_bytes as u64);
        faults.within("max_queue_rows", rows, (1, ROWS_MAX));
        faults.within("max_queue_bytes", bytes, (1, BYTES_MAX));
        let rows_max = if faults.has("max_queue_rows") { ROWS_MAX } else { rows };
        if let Some(own) = self.max_tenant_queue_rows {
            faults.within("max_tenant_queue_rows", own as u64, (1, rows_max));
        }
        let bytes_max = if faults.has("max_queue_bytes") { BYTES_MAX } else { bytes };
        if let Some(own) = self.max_tenant_queue_bytes {
            faults.within("max_tenant_queue_bytes", own as u64, (1, bytes_max));
        }
        let sound = !faults.has("max_batch_size") && !faults.has("max_queue_rows");
        if sound && self.max_queue_rows < self.max_batch_size {
            let batch = self.max_batch_size;
            let text =
                format!("max_queue_rows is {rows}: must be at least max_batch_size, {batch}");
            faults.add("max_queue_rows", text);
        }
    }

    fn check_providers(&self, faults: &mut Faults) {
        let are_read = !faults.has("providers");
        for (index, provider) in self.providers.iter().enumerate() {
            if self.providers[..index].contains(provider) {
                let name = provider.kind().as_str();
                let text = format!("providers[{index}] is {name:?}, which is named before");
                faults.add("providers", text);
            }
        }
        for provider in self.provider_options.keys() {
            let name = provider.kind().as_str();
            if *provider != ProviderName::Cuda {
                let text = format!("provider_options has {name:?}, which takes none");
                faults.add("provider_options", text);
            } else if !self.providers.is_empty() && !self.providers.contains(provider) && are_read {
                let text = format!("provider_options has {name:?}, which is not among providers");
                faults.add("provider_options", text);
            }
        }
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

/// The queue policies by level.
fn read_policies(read: &mut Document) -> BTreeMap<u32, QueuePolicySpec> {
    let key = "priority_queue_policies";
    let mut policies = BTreeMap::new();
    for (level, policy) in read.object(key).unwrap_or_default() {
        let at = format!("{key}.{}", shown(&Value::String(level.clone())).trim_matches('"'));
        match (level.parse(), policy) {
            (Ok(level), Value::Object(policy)) => {
                let policy = read.inside(format!("{at}."), policy, QueuePolicySpec::read);
                policies.insert(level, policy);
            }
            (Ok(_), other) => {
                let text = format!(" is {}: must be a JSON object", shown(&other));
                read.fault(&at, text);
            }
            (Err(_), _) => read.fault(&at, ": a level is a whole number from 1 on"),
        }
    }
    policies
}

/// The options by provider, all of them texts.
fn read_provider_options(read: &mut Document) -> BTreeMap<ProviderName, BTreeMap<String, String>> {
    let key = "provider_options";
    let mut all = BTreeMap::new();
    for (provider, options) in read.object(key).unwrap_or_default() {
        let at = shown(&Value::String(provider));
        let Some(name) = PROVIDERS.iter().find(|(name, _)| at == format!("{name:?}")) else {
            read.fault(key, format_args!(" has {at}: must be {}", one_of(&PROVIDERS)));
            continue;
        };
        let at = format!("{key}.{}", name.0);
        let Value::Object(options) = options else {
            read.fault(&at, format_args!(" is {}: must be a JSON object", shown(&options)));
            continue;
        };
        let mut texts = BTreeMap::new();
        for (option, value) in options {
            match value {
                Value::String(text) => drop(texts.insert(option, text)),
                other => {
                    let option = shown(&Value::String(option));
                    let text = format!(": {option} is {}: must be text", shown(&other));
                    read.fault(&at, text);
                }
            }
        }
        all.insert(name.1, texts);
    }
    all
}

impl QueuePolicySpec {
    fn read(document: &mut Document) -> Self {
        Self {
            max_queue_size: document.whole("max_queue_size").unwrap_or_default(),
            default_timeout_us: document.whole("default_timeout_us").unwrap_or_default(),
            timeout_action: document.one_of("timeout_action", &TIMEOUT_ACTIONS).unwrap_or_default(),
            allow_timeout_override: document.flag("allow_timeout_override").unwrap_or_default(),
        }
    }

    fn check(&self, at: &str, faults: &mut Faults) {
        let (size, timeout) = (self.max_queue_size as u64, self.default_timeout_us);
        faults.within(&format!("{at}.max_queue_size"), size, (0, 10_000_000));
        faults.within(&format!("{at}.default_timeout_us"), timeout, (0, 3_600_000_000));
    }

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

#[cfg(test)]
mod tests;
