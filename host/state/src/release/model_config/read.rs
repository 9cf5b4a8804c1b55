//! A model's configuration as people write it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::StateError;
use crate::release::document::{Document, named, one_of, shown, whole_of};
use crate::release::model_config::padding::{read_cut, read_pad};
use crate::release::model_config::tensors::{read_inputs, read_outputs};
use crate::release::model_config::{
    BatchingSpec, GraphOptimizationSpec, ModelConfig, ProviderName, QueuePolicySpec, SizeSpec,
    TimeoutActionSpec,
};
use crate::release::version_policy::{MODEL_VERSIONS_MAX, VersionPolicy};

/// Their names in documents.
const PROVIDERS: [(&str, ProviderName); 3] =
    [("cuda", ProviderName::Cuda), ("cpu", ProviderName::Cpu), ("tract", ProviderName::Tract)];

const OPTIMIZATIONS: [(&str, GraphOptimizationSpec); 4] = [
    ("disable", GraphOptimizationSpec::Disable),
    ("basic", GraphOptimizationSpec::Basic),
    ("extended", GraphOptimizationSpec::Extended),
    ("all", GraphOptimizationSpec::All),
];

const BATCHINGS: [(&str, BatchingSpec); 3] = [
    ("proven", BatchingSpec::Proven),
    ("off", BatchingSpec::Off),
    ("declared", BatchingSpec::Declared),
];

const TIMEOUT_ACTIONS: [(&str, TimeoutActionSpec); 2] =
    [("reject", TimeoutActionSpec::Reject), ("delay", TimeoutActionSpec::Delay)];

impl ModelConfig {
    /// Read the configuration from a document with these `keys`.
    ///
    /// # Errors
    /// [`StateError::Invalid`] names all faults at once: unknown keys, values of the wrong type
    /// or out of range.
    pub fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let read = Self::read_from(&mut document);
        let mut faults = document.finish();
        read.check(&mut faults);
        if faults.is_empty() { Ok(read) } else { Err(StateError::Invalid(faults)) }
    }

    fn read_from(read: &mut Document) -> Self {
        let default = Self::default();
        let size = |item: &Value| {
            let wrong = || format!(" is {}: must be a whole number from 0 on", shown(item));
            whole_of(item).map(|size| size as usize).ok_or_else(wrong)
        };
        let provider = |item: &Value| {
            let wrong = || format!(" is {}: must be {}", shown(item), one_of(&PROVIDERS));
            named(item, &PROVIDERS).ok_or_else(wrong)
        };
        Self {
            max_batch_size: SizeSpec::read(read, "max_batch_size")
                .unwrap_or(default.max_batch_size),
            batching: read.one_of("batching", &BATCHINGS).unwrap_or_default(),
            batch_proof_ms: read.whole("batch_proof_ms").unwrap_or(default.batch_proof_ms),
            preferred_batch_sizes: read.list("preferred_batch_sizes", size).unwrap_or_default(),
            allowed_batch_sizes: read.list("allowed_batch_sizes", size).unwrap_or_default(),
            pad: read_pad(read),
            cut: read_cut(read),
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
            instances: SizeSpec::read(read, "instances").unwrap_or(default.instances),
            threads: SizeSpec::read(read, "threads").unwrap_or(default.threads),
            inter_op_threads: read.whole("inter_op_threads").unwrap_or(default.inter_op_threads),
            providers: read.list("providers", provider).unwrap_or_default(),
            provider_options: read_provider_options(read),
            graph_optimization: read
                .one_of("graph_optimization", &OPTIMIZATIONS)
                .unwrap_or(default.graph_optimization),
            memory_arena: read.flag("memory_arena").unwrap_or(default.memory_arena),
            memory_pattern: read.flag("memory_pattern").unwrap_or(default.memory_pattern),
            warm_up: read.list("warm_up", size),
            version_policy: VersionPolicy::read(read, "version_policy", MODEL_VERSIONS_MAX),
            input: read_inputs(read),
            output: read_outputs(read),
        }
    }
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
}

/// The queue policies by level.
fn read_policies(read: &mut Document) -> BTreeMap<u32, QueuePolicySpec> {
    let key = "priority_queue_policies";
    let mut policies = BTreeMap::new();
    for (name, policy) in read.object(key).unwrap_or_default() {
        let at = format!("{key}.{}", shown(&Value::String(name.clone())).trim_matches('"'));
        match (name.parse(), policy) {
            (Ok(level), Value::Object(policy)) => {
                let policy = read.inside(format!("{at}."), policy, QueuePolicySpec::read);
                policies.insert(level, policy);
            }
            (Ok(_), other) => {
                let text = format!(" is {}: must be a JSON object", shown(&other));
                read.fault(&at, text);
            }
            (Err(_), _) => {
                let text = format_args!("{at}: a level is a whole number from 1 on");
                read.member_fault(key, &name, text);
            }
        }
    }
    policies
}

/// The options by provider. All values are texts.
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
