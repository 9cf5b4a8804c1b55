//! `instance_group`, `parameters` and `optimization`: how a model is loaded.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::reading::{NO_COUNTERPART, Reading};
use super::text_format::{Field, FieldValue, SHOWN_CHARS_MAX};
use crate::output::cut;

/// What runs the instances of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The GPU, if there is one.
    Auto,
    Gpu,
    Cpu,
}

/// The kinds, in the order of their numbers.
const KINDS: [(&str, Kind); 4] = [
    ("KIND_AUTO", Kind::Auto),
    ("KIND_GPU", Kind::Gpu),
    ("KIND_CPU", Kind::Cpu),
    ("KIND_MODEL", Kind::Auto),
];

/// One group of instances.
#[derive(Debug)]
struct Group {
    kind: Kind,
    /// The line that says the kind.
    line: usize,
    /// The number of its instances, if it is given.
    count: Option<u64>,
}

/// What all groups of instances say together.
///
/// Triton's groups run side by side. Here all instances run on one provider, and the providers that
/// are named after it stand by.
#[derive(Debug, Default)]
pub(super) struct Groups {
    line: usize,
    groups: Vec<Group>,
    gpus: BTreeSet<u64>,
    gpus_line: usize,
}

impl Groups {
    /// Read one field `instance_group`.
    pub(super) fn read(&mut self, read: &mut Reading, field: &Field) {
        let at = "instance_group.";
        if self.line == 0 {
            self.line = field.line;
        }
        let mut group = Group { kind: Kind::Auto, line: field.line, count: None };
        for field in read.message("", field).into_iter().flat_map(|group| &group.fields) {
            match &*field.name {
                "name" => {}
                "count" => group.count = read.whole(at, field).map(|count| count.max(1)),
                "kind" => {
                    group.kind = read.one_of(at, field, &KINDS).unwrap_or(Kind::Auto);
                    group.line = field.line;
                }
                "gpus" => {
                    self.gpus.extend(read.whole(at, field));
                    self.gpus_line = field.line;
                }
                _ => read.ignore_unknown(at, field),
            }
        }
        self.groups.push(group);
    }

    /// Set the keys for all groups. A group without a number of instances has one. If no group says
    /// it, the server chooses the number.
    pub(super) fn finish(self, read: &mut Reading) {
        let Some(first) = self.groups.first() else { return };
        let has = |kind: Kind| self.groups.iter().any(|group| group.kind == kind);
        let other = self.groups.iter().find(|group| group.kind != first.kind);
        if let Some(other) = other {
            let why = "all instances run on the first provider that works";
            read.ignore_key(other.line, "instance_group.kind".into(), why);
        }
        // Beside a group that is on the GPU, those on the processor do not serve.
        let is_on_gpu = has(Kind::Auto) || has(Kind::Gpu);
        let serving = self.groups.iter().filter(|group| !is_on_gpu || group.kind != Kind::Cpu);
        let counts: Vec<_> = serving.map(|group| group.count).collect();
        if counts.iter().any(Option::is_some) {
            let counts = counts.into_iter().map(|count| count.unwrap_or(1));
            read.set("instances", self.line, counts.fold(0, u64::saturating_add));
        }
        if !has(Kind::Auto) {
            // Where there is no GPU, the processor serves.
            let providers = if is_on_gpu { vec!["cuda", "cpu"] } else { vec!["cpu"] };
            read.set("providers", self.line, providers);
        }
        let gpus: Vec<_> = self.gpus.into_iter().collect();
        match &gpus[..] {
            [] | [0] => {}
            [gpu] if is_on_gpu => {
                let options = json!({ "cuda": { "device_id": gpu.to_string() } });
                read.set("provider_options", self.gpus_line, options);
            }
            _ => {
                let why =
                    "a model runs on one GPU, by default the first: provider_options names it";
                read.ignore_key(self.gpus_line, "instance_group.gpus".into(), why);
            }
        }
    }
}

/// The parameters of Triton's backend for ONNX Runtime, by name, with their lines.
#[derive(Debug, Default)]
pub(super) struct Parameters(BTreeMap<String, (usize, String)>);

impl Parameters {
    /// Read one field `parameters`.
    pub(super) fn read(&mut self, read: &mut Reading, field: &Field) {
        let (Some(key), Some(value)) = read.entry("", field) else {
            read.ignore("", field, "an entry without a key or without a value");
            return;
        };
        let Some(name) = read.text("parameters.", key) else { return };
        let fields = read.message("parameters.", value).into_iter().flat_map(|value| &value.fields);
        let mut text = String::new();
        for field in fields.filter(|field| &*field.name == "string_value") {
            text = read.text("parameters.value.", field).unwrap_or_default().to_owned();
        }
        self.0.insert(name.to_owned(), (key.line, text));
    }

    /// Set the keys that they mean.
    pub(super) fn finish(mut self, read: &mut Reading) {
        if let Some((line, threads)) = self.number(read, "intra_op_thread_count") {
            read.set("threads", line, threads);
        }
        let mode = self.0.remove("execution_mode");
        let is_parallel = mode.as_ref().is_some_and(|(_, mode)| mode == "1");
        match (self.number(read, "inter_op_thread_count"), mode) {
            (Some((line, threads)), _) if is_parallel => {
                read.set("inter_op_threads", line, threads);
            }
            (Some((line, _)), _) => {
                let why = "it means nothing without execution_mode \"1\"";
                read.ignore_key(line, "parameters.inter_op_thread_count".into(), why);
            }
            (None, Some((line, _))) if is_parallel => {
                let why = "operators run side by side with inter_op_thread_count alone";
                read.ignore_key(line, "parameters.execution_mode".into(), why);
            }
            (None, _) => {}
        }
        for (name, key) in
            [("enable_mem_arena", "memory_arena"), ("enable_mem_pattern", "memory_pattern")]
        {
            match self.0.remove(name) {
                Some((line, value)) if value == "0" || value == "1" => {
                    read.set(key, line, value == "1");
                }
                Some((line, _)) => {
                    let why = "the string_value must be \"0\" or \"1\"";
                    read.ignore_key(line, format!("parameters.{name}"), why);
                }
                None => {}
            }
        }
        for (name, (line, _)) in self.0 {
            let why = match &*name {
                "cudnn_conv_algo_search"
                | "gpu_mem_limit"
                | "arena_extend_strategy"
                | "do_copy_in_default_stream" => {
                    "give it in provider_options for cuda, in ONNX Runtime's own words"
                }
                _ => NO_COUNTERPART,
            };
            read.ignore_key(line, format!("parameters.{}", cut(&name, SHOWN_CHARS_MAX)), why);
        }
    }

    /// The number of threads in a parameter. 0 leaves the number to ONNX Runtime.
    fn number(&mut self, read: &mut Reading, name: &str) -> Option<(usize, u64)> {
        let (line, text) = self.0.remove(name)?;
        match text.parse() {
            Ok(0) => None,
            Ok(number) => Some((line, number)),
            Err(_) => {
                let why = "the string_value must be a whole number";
                read.ignore_key(line, format!("parameters.{name}"), why);
                None
            }
        }
    }
}

/// Read the field `optimization`.
pub(super) fn read_optimization(read: &mut Reading, field: &Field) {
    let at = "optimization.";
    for field in read.message("", field).into_iter().flat_map(|all| &all.fields) {
        match &*field.name {
            "graph" => {
                let at = "optimization.graph.";
                for field in read.message(at, field).into_iter().flat_map(|graph| &graph.fields) {
                    match (&*field.name, level(field)) {
                        ("level", Some(level)) => {
                            read.set("graph_optimization", field.line, level);
                        }
                        ("level", None) => read.ignore(at, field, "the levels are -1, 0, 1 and 2"),
                        _ => read.ignore_unknown(at, field),
                    }
                }
            }
            "execution_accelerators" => {
                read.ignore(at, field, "providers and provider_options choose what runs a model");
            }
            "priority" => read.ignore(at, field, "tenants have weights, and pipelines a priority"),
            "cuda" => read.ignore(at, field, "give provider_options for cuda"),
            _ => read.ignore_unknown(at, field),
        }
    }
}

/// What Triton's backend for ONNX Runtime understands by a level.
fn level(field: &Field) -> Option<&'static str> {
    match field.value {
        FieldValue::Integer(-1) => Some("basic"),
        FieldValue::Integer(0) => Some("all"),
        FieldValue::Integer(1) => Some("extended"),
        FieldValue::Integer(2) => Some("disable"),
        _ => None,
    }
}
