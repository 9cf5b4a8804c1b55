use std::collections::BTreeSet;

use gristmill_state::ModelConfig;
use serde_json::json;

use super::*;
use crate::model::import::text_format::parse;

fn read(text: &str) -> TritonConfig {
    TritonConfig::read(&parse(text.as_bytes()).unwrap())
}

fn document(text: &str) -> Value {
    let reading = read(text).reading;
    assert!(reading.faults.is_empty() && reading.ignored.is_empty(), "{reading:?}");
    ModelConfig::read(reading.document.clone()).unwrap();
    reading.document.into()
}

fn faults(text: &str) -> Vec<String> {
    read(text).reading.faults.iter().map(ToString::to_string).collect()
}

fn ignored(text: &str) -> Vec<String> {
    let reading = read(text).reading;
    assert!(reading.faults.is_empty(), "{reading:?}");
    reading.ignored.iter().map(ToString::to_string).collect()
}

const COMPLETE: &str = r#"
name: "cnn"
platform: "onnxruntime_onnx"
backend: "onnxruntime"
default_model_filename: "net.onnx"
max_batch_size: 16
input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, -1, -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 10 ] label_filename: "labels.txt" } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 500
  preserve_ordering: false
  priority_levels: 3
  default_priority_level: 2
  default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 7 max_queue_size: 5 }
  priority_queue_policy { key: 1 value: { allow_timeout_override: true } }
  priority_queue_policy [ { key: 3, value { max_queue_size: 9 } } ]
}
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 1 ] }, { name: "more" kind: KIND_GPU } ]
version_policy: { specific { versions: [ 3, 1 ] } }
model_warmup { name: "zeros" batch_size: 8 inputs { key: "x" value: { zero_data: true } } }
model_warmup { name: "one" }
optimization { graph { level: 1 } }
parameters { key: "intra_op_thread_count" value: { string_value: "3" } }
parameters [
  { key: "inter_op_thread_count" value: { string_value: "2" } },
  { key: "execution_mode" value: { string_value: "1" } },
  { key: "enable_mem_arena" value: { string_value: "0" } }
]
response_cache { enable: false }
model_transaction_policy { decoupled: false }
"#;

#[test]
fn a_complete_configuration_has_its_meaning_here() {
    let expected = json!({
        "max_batch_size": 16,
        "input": [{ "name": "x", "format": "FORMAT_NCHW" }],
        "preferred_batch_sizes": [4, 8],
        "max_queue_delay_us": 500,
        "priority_levels": 3,
        "default_priority_level": 2,
        "default_queue_policy":
            { "timeout_action": "delay", "default_timeout_us": 7, "max_queue_size": 5 },
        "priority_queue_policies":
            { "1": { "allow_timeout_override": true }, "3": { "max_queue_size": 9 } },
        "instances": 3,
        "providers": ["cuda", "cpu"],
        "provider_options": { "cuda": { "device_id": "1" } },
        "warm_up": [1, 8],
        "graph_optimization": "extended",
        "threads": 3,
        "inter_op_threads": 2,
        "memory_arena": false,
    });
    assert_eq!(document(COMPLETE), expected);
    let config = read(COMPLETE);
    assert_eq!(config.name, Some((2, "cnn".to_owned())));
    assert_eq!(config.file, Some((5, "net.onnx".to_owned())));
    assert_eq!(config.versions, Versions::Specific(BTreeSet::from([1, 3])));
    let (line, output, file) = (8, "y".to_owned(), "labels.txt".to_owned());
    assert_eq!(config.labels, [LabelFile { line, output, file }]);
}

#[test]
fn short_configurations_mean_little() {
    assert_eq!(document(""), json!({}));
    assert_eq!(document("max_batch_size: 0"), json!({ "max_batch_size": 0 }));
    assert_eq!(document("dynamic_batching { }"), json!({}));
    assert_eq!(document("instance_group { kind: KIND_AUTO }"), json!({}));
    assert_eq!(document("instance_group { count: 3 }"), json!({ "instances": 3 }));
    assert_eq!(document("instance_group { kind: KIND_CPU }"), json!({ "providers": ["cpu"] }));
    assert_eq!(document("instance_group { kind: 2 }"), json!({ "providers": ["cpu"] }));
    assert_eq!(document("optimization { graph { level: -1 } }")["graph_optimization"], "basic");
    assert_eq!(read("version_policy { all { } }").versions, Versions::All);
    assert_eq!(read("version_policy { latest { } }").versions, Versions::Latest(1));
    assert_eq!(read("version_policy { latest { num_versions: 2 } }").versions, Versions::Latest(2));
    // A message that comes twice is merged.
    let twice = "dynamic_batching { preferred_batch_size: 1 } dynamic_batching { \
                 preferred_batch_size: 2 }";
    assert_eq!(document(twice), json!({ "preferred_batch_sizes": [1, 2] }));
}

/// Triton's groups run side by side, and Gristmill's providers stand by for each other.
#[test]
fn groups_of_several_kinds_do_not_turn_the_gpu_off() {
    let (cpu, gpu) = ("{ count: 4 kind: KIND_CPU }", "{ count: 2 kind: KIND_GPU }");
    let (auto, bare) = ("{ count: 3 }", "{ kind: KIND_GPU }");
    let both = json!({ "instances": 2, "providers": ["cuda", "cpu"] });
    for (groups, expected) in [
        ([cpu, gpu], both.clone()),
        ([gpu, cpu], both),
        ([cpu, bare], json!({ "providers": ["cuda", "cpu"] })),
        ([cpu, auto], json!({ "instances": 3 })),
        ([auto, gpu], json!({ "instances": 5 })),
    ] {
        let text = format!("instance_group [\n{},\n{}]", groups[0], groups[1]);
        let reading = read(&text).reading;
        assert_eq!(Value::from(reading.document), expected, "{text}");
        let why = "3: instance_group.kind: all instances run on the first provider that works";
        assert_eq!(ignored(&text), [why], "{text}");
    }
    let equal = format!("instance_group [{gpu}, {bare}]");
    assert_eq!(document(&equal), json!({ "instances": 3, "providers": ["cuda", "cpu"] }));
    let equal = format!("instance_group [{cpu}, {cpu}]");
    assert_eq!(document(&equal), json!({ "instances": 8, "providers": ["cpu"] }));
}

#[test]
fn each_ignored_key_is_named_once_with_its_line() {
    let text = r#"
dynamic_batching { preserve_ordering: true }
optimization { cuda { graphs: true } execution_accelerators { } }
response_cache { enable: true }
input { name: "x" reshape { shape: [ 1 ] } }
input { name: "z" reshape { shape: [ 1 ] } }
parameters { key: "gpu_mem_limit" value { string_value: "1" } }
parameters { key: "inter_op_thread_count" value { string_value: "4" } }
model_warmup { batch_size: 2 inputs { key: "x" value { random_data: true } } }
instance_group { gpus: [ 0, 1 ] passive: true }
some_day: "new"
"#;
    let ignored = ignored(text);
    for (index, named) in [
        "2: dynamic_batching.preserve_ordering: an answer is sent",
        "3: optimization.cuda: give provider_options",
        "3: optimization.execution_accelerators: providers",
        "4: response_cache.enable: it is not offered",
        "5: input.reshape: clients send",
        "9: model_warmup.inputs.random_data: zeros are run",
        "10: instance_group.passive: it has no counterpart here",
        "11: some_day: it has no counterpart here",
        "10: instance_group.gpus: a model runs on one GPU",
        "8: parameters.inter_op_thread_count: it means nothing without execution_mode",
        "7: parameters.gpu_mem_limit: give it in provider_options",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(ignored[index].starts_with(named), "{named} at {index}: {ignored:#?}");
    }
    assert_eq!(ignored.len(), 11, "{ignored:#?}");
    // However many there are.
    let many: String = (0..10_000).map(|number| format!("key{number}: 1\n")).collect();
    assert_eq!(read(&many).reading.ignored.len(), 100);
}

#[test]
fn what_cannot_be_imported_is_a_fault() {
    for (text, named) in [
        ("platform: \"ensemble\"", "1: platform is \"ensemble\": only ONNX models are imported"),
        ("ensemble_scheduling { step [ ] }", "1: ensemble_scheduling: an ensemble is not imported"),
        ("\nbackend: \"python\"", "2: backend is \"python\": only ONNX models are imported"),
        ("platform: \"tensorrt_plan\"", "1: platform is \"tensorrt_plan\": only ONNX"),
        ("sequence_batching { }", "1: sequence_batching: a model that keeps state"),
        ("batch_input [ { kind: BATCH_ELEMENT_COUNT } ]", "1: batch_input: Triton makes"),
        ("max_batch_size: -1", "1: max_batch_size is -1: must be a whole number from 0 on"),
        ("max_batch_size: \"8\"", "1: max_batch_size is \"8\": must be a whole number from 0 on"),
        ("dynamic_batching: 1", "1: dynamic_batching is 1: must be a message in braces"),
        (
            "dynamic_batching { default_queue_policy { timeout_action: WAIT } }",
            "1: dynamic_batching.default_queue_policy.timeout_action is WAIT: must be one of REJECT, \
             DELAY",
        ),
        (
            "instance_group { kind: KIND_TPU }",
            "1: instance_group.kind is KIND_TPU: must be one of KIND_AUTO",
        ),
        (
            "default_model_filename: net",
            "1: default_model_filename is net: must be a text in quotes",
        ),
    ] {
        let faults = faults(text);
        assert!(faults.len() == 1 && faults[0].starts_with(named), "{named}: {faults:?}");
    }
    let all = faults("max_batch_size: x\nname: 5\ninput: 1");
    assert_eq!(all.len(), 3, "{all:?}");
}
