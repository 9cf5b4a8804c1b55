//! A model's configuration in Triton's words, as `model.proto` has them in JSON.
//!
//! Keys that change nothing here are taken and dropped, so that a configuration that a client got
//! from a server can be sent back. A key that would change something, and cannot, is a fault.

use std::collections::{BTreeMap, BTreeSet};

use gristmill_snapshot::TensorNotes;
use serde_json::{Map, Value};

use crate::error::StateError;
use crate::release::document::{Document, shown, whole_of};
use crate::release::model_config::tensors::{FORMATS, FormatSpec, InputSpec, Labels, OutputSpec};
use crate::release::model_config::{
    ModelConfig, ProviderName, QueuePolicySpec, SizeSpec, TimeoutActionSpec,
};
use crate::release::version_policy::{MODEL_VERSIONS_MAX, VersionPolicy};

/// Keys that describe the model, or that tune what this host tunes by itself.
const DROPPED: [&str; 8] = [
    "name",
    "default_model_filename",
    "metric_tags",
    "model_operations",
    "optimization",
    "runtime",
    "model_transaction_policy",
    "model_metrics",
];

/// Keys of 64-bit integers, which the JSON of protobuf may have as texts.
const LONG: [&str; 5] = [
    "default_priority_level",
    "default_timeout_microseconds",
    "max_queue_delay_microseconds",
    "priority_levels",
    "versions",
];

/// Keys of inputs and outputs that describe the model.
const DESCRIBED: [&str; 7] = [
    "data_type",
    "dims",
    "reshape",
    "is_shape_tensor",
    "allow_ragged_batch",
    "optional",
    "is_non_linear_format_io",
];

const KINDS: [(&str, Option<ProviderName>); 4] = [
    ("KIND_AUTO", None),
    ("KIND_MODEL", None),
    ("KIND_CPU", Some(ProviderName::Cpu)),
    ("KIND_GPU", Some(ProviderName::Cuda)),
];

const TIMEOUT_ACTIONS: [(&str, TimeoutActionSpec); 2] =
    [("REJECT", TimeoutActionSpec::Reject), ("DELAY", TimeoutActionSpec::Delay)];

/// Labels by the name of their file.
pub type LabelFiles = BTreeMap<String, Labels>;

impl ModelConfig {
    /// Read the configuration from a document of Triton with these `keys`. Labels are in `files`.
    /// An output whose file is not there keeps the labels in `previous`, which are the model's now.
    ///
    /// # Errors
    /// [`StateError::Invalid`] names all faults at once.
    pub fn read_triton(
        mut keys: Map<String, Value>,
        files: &LabelFiles,
        previous: &TensorNotes,
    ) -> Result<Self, StateError> {
        keys.retain(|key, value| !DROPPED.contains(&&**key) && says_something(value));
        keys.iter_mut().for_each(|(key, value)| numbers_of_texts(key, value));
        let mut document = Document::new(keys);
        let read = read_from(&mut document, files, previous);
        let mut faults = document.finish();
        read.check(&mut faults);
        if faults.is_empty() { Ok(read) } else { Err(StateError::Invalid(faults)) }
    }
}

/// Put numbers in place of texts where they stand for 64-bit integers.
fn numbers_of_texts(key: &str, value: &mut Value) {
    match value {
        Value::String(text) if LONG.contains(&key) => {
            if let Ok(number) = text.parse::<u64>() {
                *value = number.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| numbers_of_texts(key, item)),
        Value::Object(keys) => {
            keys.iter_mut().for_each(|(key, value)| numbers_of_texts(key, value));
        }
        _ => {}
    }
}

/// Whether a value differs from that of a key that is not given.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(keys) => keys.values().any(says_something),
        Value::Number(_) => true,
    }
}

/// Let these keys be known, and not used.
fn drop_keys(read: &mut Document, keys: &[&'static str]) {
    for &key in keys {
        read.value(key);
    }
}

fn read_from(read: &mut Document, files: &LabelFiles, previous: &TensorNotes) -> ModelConfig {
    let mut config = ModelConfig::default();
    for key in ["backend", "platform"] {
        if let Some(name) = read.text(key)
            && !name.starts_with("onnxruntime")
            && name != "tract"
        {
            read.fault(key, format_args!(" is {name:?}: must be onnxruntime or onnxruntime_onnx"));
        }
    }
    if let Some(size) = read.whole("max_batch_size") {
        config.max_batch_size = SizeSpec::Fixed(size);
    }
    if let Some(keys) = read.object("dynamic_batching") {
        read.inside("dynamic_batching.".into(), keys, |batching| {
            read_batching(batching, &mut config);
        });
    }
    read_instances(read, &mut config);
    read_threads(read, &mut config);
    config.version_policy = VersionPolicy::read(read, "version_policy", MODEL_VERSIONS_MAX);
    config.input = read_inputs(read);
    config.output = read_outputs(read, files, previous);
    config
}

fn read_batching(read: &mut Document, config: &mut ModelConfig) {
    let size = |item: &Value| {
        let wrong = || format!(" is {}: must be a whole number from 0 on", shown(item));
        whole_of(item).map(|size| size as usize).ok_or_else(wrong)
    };
    config.preferred_batch_sizes = read.list("preferred_batch_size", size).unwrap_or_default();
    config.max_queue_delay_us = read.whole("max_queue_delay_microseconds").unwrap_or_default();
    // With 0 levels there is one, too.
    config.priority_levels = read.whole("priority_levels").unwrap_or(1).max(1);
    config.default_priority_level = read.whole("default_priority_level").unwrap_or_default();
    if read.flag("preserve_ordering") == Some(true) {
        read.fault("preserve_ordering", " is true: answers keep the order of their requests only");
    }
    config.default_queue_policy = read.nested("default_queue_policy", read_policy);
    for (level, policy) in read.object("priority_queue_policy").unwrap_or_default() {
        match (level.parse(), policy) {
            (Ok(number), Value::Object(keys)) => {
                let at = format!("dynamic_batching.priority_queue_policy.{number}.");
                let policy = read.inside(at, keys, read_policy);
                config.priority_queue_policies.insert(number, policy);
            }
            _ => read.fault("priority_queue_policy", ": must have an object for each level"),
        }
    }
}

fn read_policy(read: &mut Document) -> QueuePolicySpec {
    QueuePolicySpec {
        max_queue_size: read.whole("max_queue_size").unwrap_or_default(),
        default_timeout_us: read.whole("default_timeout_microseconds").unwrap_or_default(),
        timeout_action: read.one_of("timeout_action", &TIMEOUT_ACTIONS).unwrap_or_default(),
        allow_timeout_override: read.flag("allow_timeout_override").unwrap_or_default(),
    }
}

/// The instances of all groups together. A group names its kind of provider.
///
/// Triton's groups run side by side, and here the first provider that works has all instances. So
/// groups on the processor do not count beside others, and a group on any provider leaves the
/// providers open.
fn read_instances(read: &mut Document, config: &mut ModelConfig) {
    let groups = read.objects("instance_group", |group| {
        drop_keys(
            group,
            &["name", "gpus", "secondary_devices", "profile", "passive", "host_policy"],
        );
        let count: usize = group.whole("count").unwrap_or(1).max(1);
        Some((count, group.one_of("kind", &KINDS).flatten()))
    });
    let groups = groups.unwrap_or_default();
    let providers: BTreeSet<_> = groups.iter().map(|(_, provider)| *provider).collect();
    let on_processor = Some(ProviderName::Cpu);
    let serves = |provider: Option<ProviderName>| provider != on_processor || providers.len() == 1;
    let counts = groups.iter().filter(|(_, provider)| serves(*provider)).map(|(count, _)| *count);
    let instances = counts.fold(0, usize::saturating_add);
    if instances > 0 {
        config.instances = SizeSpec::Fixed(instances);
    }
    // In the order of their ranks: the GPU first.
    config.providers = providers.into_iter().collect::<Option<_>>().unwrap_or_default();
}

/// The parameters of Triton's backend for ONNX Runtime that mean threads.
fn read_threads(read: &mut Document, config: &mut ModelConfig) {
    let Some(keys) = read.object("parameters") else { return };
    read.inside("parameters.".into(), keys, |parameters| {
        let mut number = |key: &'static str| {
            let value = parameters.value(key)?;
            let text = value.get("string_value").and_then(Value::as_str).unwrap_or_default();
            let number = text.parse::<usize>().ok();
            if number.is_none() {
                parameters.fault(key, ": must have a string_value that is a number");
            }
            // 0 leaves the number to ONNX Runtime.
            number.filter(|number| *number > 0)
        };
        if let Some(threads) = number("intra_op_thread_count") {
            config.threads = threads.into();
        }
        config.inter_op_threads =
            number("inter_op_thread_count").unwrap_or(config.inter_op_threads);
    });
}

fn read_inputs(read: &mut Document) -> Vec<InputSpec> {
    let inputs = read.objects("input", |input| {
        drop_keys(input, &DESCRIBED);
        let (name, format) = (input.text("name"), input.one_of("format", &FORMATS));
        Some(InputSpec { name: input.require("name", name)?, format: format.unwrap_or_default() })
    });
    let has_format = |input: &InputSpec| input.format != FormatSpec::None;
    inputs.unwrap_or_default().into_iter().filter(has_format).collect()
}

fn read_outputs(
    read: &mut Document,
    files: &LabelFiles,
    previous: &TensorNotes,
) -> Vec<OutputSpec> {
    let outputs = read.objects("output", |output| {
        drop_keys(output, &DESCRIBED);
        let (name, file) = (output.text("name"), output.text("label_filename"));
        let name = output.require("name", name)?;
        let file = file.filter(|file| !file.is_empty());
        let labels = file.map(|file| {
            // As `/config` names the file of an output's labels.
            let of_output = format!("labels_{}.txt", name.replace('/', "_"));
            let is_announced = file == "labels.txt" || file == of_output;
            let kept = || previous.labels.get(&name).filter(|_| is_announced).cloned().map(Labels);
            files.get(&file).cloned().or_else(kept).unwrap_or_else(|| {
                let text = format!(" is {file:?}: send this file, or leave it out");
                output.fault("label_filename", text);
                Labels::default()
            })
        });
        let labels = labels.unwrap_or_default();
        Some(OutputSpec { name, labels })
    });
    let has_labels = |output: &OutputSpec| !output.labels.0.is_empty();
    outputs.unwrap_or_default().into_iter().filter(has_labels).collect()
}

#[cfg(test)]
mod tests;
