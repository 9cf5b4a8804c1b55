//! A `config.pbtxt` in Gristmill's words.
//!
//! `tensors`, `tuning` and `versions` read their parts of it; `reading` keeps what comes of it. A
//! key that would change something and has no counterpart here is ignored and named. A key without
//! which the model cannot be served is a fault.

use serde_json::{Map, Value};

use super::reading::Reading;
use super::tensors::{LabelFile, WarmUp, add_labels, read_input};
use super::text_format::{Field, Message};
use super::tuning::{Groups, Parameters, read_optimization};
use super::versions::Versions;

const TIMEOUT_ACTIONS: [(&str, &str); 2] = [("REJECT", "reject"), ("DELAY", "delay")];

/// A text, and its line.
pub(super) type Line = (usize, String);

/// A configuration of Triton.
#[derive(Debug, Default)]
pub(super) struct TritonConfig {
    /// Gristmill's configuration, without the versions and the labels.
    pub(super) reading: Reading,
    pub(super) name: Option<Line>,
    /// The name of the model's file in the folders of its versions.
    pub(super) file: Option<Line>,
    pub(super) versions: Versions,
    /// The line of `version_policy`, if it is given.
    pub(super) versions_line: Option<usize>,
    pub(super) labels: Vec<LabelFile>,
}

impl TritonConfig {
    /// Read the fields of a `config.pbtxt`.
    pub(super) fn read(message: &Message) -> Self {
        let mut config = Self::default();
        let (mut groups, mut parameters) = (Groups::default(), Parameters::default());
        let mut warm_up = WarmUp::default();
        for field in &message.fields {
            let read = &mut config.reading;
            match &*field.name {
                "name" => config.name = line_of(read, field),
                "default_model_filename" => config.file = line_of(read, field),
                "platform" | "backend" => check_backend(read, field),
                "max_batch_size" => read.set_whole("", field, "max_batch_size"),
                "dynamic_batching" => read_batching(read, field),
                "instance_group" => groups.read(read, field),
                "parameters" => parameters.read(read, field),
                "optimization" => read_optimization(read, field),
                "model_warmup" => warm_up.read(read, field),
                "input" => read_input(read, field),
                "output" => add_labels(&mut config.labels, read, field),
                "version_policy" => {
                    config.versions = Versions::read(read, field);
                    config.versions_line = Some(field.line);
                }
                "response_cache" => read_switch(read, field, "enable"),
                "model_transaction_policy" => read_switch(read, field, "decoupled"),
                _ => read_rest(read, field),
            }
        }
        let read = &mut config.reading;
        groups.finish(read);
        parameters.finish(read);
        warm_up.finish(read);
        config
    }
}

/// A text that is not empty.
fn line_of(read: &mut Reading, field: &Field) -> Option<Line> {
    let text = read.text("", field).filter(|text| !text.is_empty());
    text.map(|text| (field.line, text.to_owned()))
}

fn check_backend(read: &mut Reading, field: &Field) {
    let Some(name) = read.text("", field) else { return };
    let cure = match name {
        "" | "onnxruntime" | "onnxruntime_onnx" => return,
        "ensemble" => "make a pipeline with plugins in its place",
        "python" => "its code becomes a plugin, and a model that it loads an ONNX file",
        _ => "export the model as ONNX, and write backend: \"onnxruntime\"",
    };
    let text = format!(" is {}: only ONNX models are imported: {cure}", field.value);
    read.fault("", field, text);
}

/// A field that nothing here is like.
fn read_rest(read: &mut Reading, field: &Field) {
    match &*field.name {
        "ensemble_scheduling" => {
            let text = ": an ensemble is not imported: make a pipeline with plugins in its place";
            read.fault("", field, text);
        }
        "sequence_batching" => {
            let text = ": a model that keeps state between requests is not imported, because its \
                        requests would meet other instances: make the state an input and an output, \
                        which clients send back";
            read.fault("", field, text);
        }
        "batch_input" | "batch_output" => {
            let text = ": Triton makes this tensor of a batch, and nothing here would: export the \
                        model without it";
            read.fault("", field, text);
        }
        "cc_model_filenames" => read.ignore("", field, "the file of the version is taken"),
        "metric_tags" => read.ignore("", field, "metrics have the labels of the server"),
        "model_repository_agents" => read.ignore("", field, "the files are taken as they are"),
        _ => read.ignore_unknown("", field),
    }
}

/// A message whose field `name` turns something on that is not offered.
fn read_switch(read: &mut Reading, field: &Field, name: &str) {
    let at = format!("{}.", field.name);
    for field in read.message("", field).into_iter().flat_map(|all| &all.fields) {
        match &*field.name == name {
            true => read.ignore_if_on(&at, field, "it is not offered"),
            false => read.ignore_unknown(&at, field),
        }
    }
}

fn read_batching(read: &mut Reading, field: &Field) {
    let at = "dynamic_batching.";
    for field in read.message("", field).into_iter().flat_map(|batching| &batching.fields) {
        match &*field.name {
            "preferred_batch_size" => {
                if let Some(size) = read.whole(at, field) {
                    read.push("preferred_batch_sizes", field.line, size);
                }
            }
            "max_queue_delay_microseconds" => read.set_whole(at, field, "max_queue_delay_us"),
            "preserve_ordering" => {
                read.ignore_if_on(at, field, "an answer is sent when it is ready");
            }
            "priority_levels" => {
                if let Some(levels) = read.whole(at, field) {
                    // With 0 levels there is one, too.
                    read.set("priority_levels", field.line, levels.max(1));
                }
            }
            "default_priority_level" => read.set_whole(at, field, "default_priority_level"),
            "default_queue_policy" => {
                let policy = read_policy(read, at, field);
                read.set("default_queue_policy", field.line, policy);
            }
            "priority_queue_policy" => read_level(read, at, field),
            _ => read.ignore_unknown(at, field),
        }
    }
}

/// Read the queueing of one level: an entry of a map.
fn read_level(read: &mut Reading, at: &str, field: &Field) {
    let at = format!("{at}priority_queue_policy.");
    let (Some(key), Some(value)) = read.entry("dynamic_batching.", field) else {
        return read.fault("dynamic_batching.", field, ": must have a key and a value".to_owned());
    };
    let Some(level) = read.whole(&at, key) else { return };
    let policy = read_policy(read, &at, value);
    let key = "priority_queue_policies";
    let mut policies = match read.document.remove(key) {
        Some(Value::Object(policies)) => policies,
        _ => Map::new(),
    };
    policies.insert(level.to_string(), policy.into());
    read.set(key, field.line, policies);
}

/// Read a queue policy.
fn read_policy(read: &mut Reading, at: &str, field: &Field) -> Map<String, Value> {
    let mut policy = Map::new();
    let inner = format!("{at}{}.", field.name);
    for field in read.message(at, field).into_iter().flat_map(|policy| &policy.fields) {
        let (key, value) = match &*field.name {
            "max_queue_size" => ("max_queue_size", read.whole(&inner, field).map(Value::from)),
            "default_timeout_microseconds" => {
                ("default_timeout_us", read.whole(&inner, field).map(Value::from))
            }
            "allow_timeout_override" => {
                ("allow_timeout_override", read.flag(&inner, field).map(Value::from))
            }
            "timeout_action" => {
                let action = read.one_of(&inner, field, &TIMEOUT_ACTIONS);
                ("timeout_action", action.map(Value::from))
            }
            _ => {
                read.ignore_unknown(&inner, field);
                continue;
            }
        };
        policy.extend(value.map(|value| (key.to_owned(), value)));
    }
    policy
}

#[cfg(test)]
mod tests;
