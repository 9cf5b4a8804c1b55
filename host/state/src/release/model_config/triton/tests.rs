use gristmill_snapshot::TensorNotes;
use serde_json::{Map, Value, json};

use super::{LabelFiles, ModelConfig, ProviderName};
use crate::release::model_config::{FormatSpec, Labels, SizeSpec, TimeoutActionSpec};

fn read(document: Value) -> Result<ModelConfig, String> {
    let Value::Object(keys) = document else { panic!("{document} is not an object") };
    let labels = LabelFiles::from([("labels.txt".to_owned(), Labels::of_lines("cat\r\ndog\n"))]);
    let previous = TensorNotes {
        labels: [("kept".to_owned(), Labels::of_lines("old").0)].into(),
        ..TensorNotes::default()
    };
    ModelConfig::read_triton(keys, &labels, &previous).map_err(|error| error.to_string())
}

#[test]
fn a_configuration_of_triton_is_read() {
    let config = read(json!({
        "name": "m", "platform": "onnxruntime_onnx", "backend": "onnxruntime", "max_batch_size": 8,
        "input": [{ "name": "x", "data_type": "TYPE_FP32", "dims": [3, 8, 8], "format": "FORMAT_NCHW" }],
        "output": [{ "name": "y", "data_type": "TYPE_FP32", "dims": [2], "label_filename": "labels.txt" }],
        "instance_group": [{ "name": "m", "count": 2, "kind": "KIND_CPU", "gpus": [] }, { "kind": "KIND_CPU" }],
        "dynamic_batching": {
            "preferred_batch_size": [4, 8], "max_queue_delay_microseconds": 100,
            "preserve_ordering": false, "priority_levels": 2, "default_priority_level": 1,
            "default_queue_policy": { "timeout_action": "DELAY", "max_queue_size": 5 },
            "priority_queue_policy": { "1": { "default_timeout_microseconds": 7 } },
        },
        "version_policy": { "latest": { "num_versions": 2 } },
        "parameters": {
            "intra_op_thread_count": { "string_value": "3" },
            "inter_op_thread_count": { "string_value": "0" },
        },
        "optimization": { "priority": "PRIORITY_DEFAULT" }, "batch_input": [], "cc_model_filenames": {},
        "model_transaction_policy": { "decoupled": false }, "response_cache": { "enable": false },
    }));
    let config = config.unwrap();
    let sizes = [config.max_batch_size, config.instances, config.threads];
    assert_eq!(sizes.map(SizeSpec::fixed), [Some(8), Some(3), Some(3)]);
    assert_eq!((config.inter_op_threads, config.max_queue_delay_us), (1, 100));
    assert_eq!((config.priority_levels, config.default_priority_level), (2, 1));
    assert_eq!(config.providers, [ProviderName::Cpu]);
    assert_eq!(config.preferred_batch_sizes, [4, 8]);
    assert_eq!(config.default_queue_policy.timeout_action, TimeoutActionSpec::Delay);
    assert_eq!(config.priority_queue_policies[&1].default_timeout_us, 7);
    assert_eq!(config.input[0].format, FormatSpec::Nchw);
    let labels: Vec<&str> = config.output[0].labels.0.iter().map(|label| &**label).collect();
    assert_eq!(labels, ["cat", "dog"]);
    // As the JSON of protobuf has 64-bit integers.
    let texts = read(json!({
        "dynamic_batching": { "max_queue_delay_microseconds": "100", "priority_levels": "2" },
        "version_policy": { "specific": { "versions": ["3", "5"] } },
    }));
    let texts = texts.unwrap();
    assert_eq!((texts.max_queue_delay_us, texts.priority_levels), (100, 2));
    assert_eq!(texts.version_policy.named().collect::<Vec<_>>(), [3, 5]);
    let empty = ModelConfig::read_triton(Map::new(), &LabelFiles::new(), &TensorNotes::default());
    assert_eq!(empty.unwrap(), ModelConfig::default());
}

#[test]
fn groups_of_several_kinds_do_not_turn_the_gpu_off() {
    let group = |count: usize, kind: &str| json!({ "count": count, "kind": kind });
    let (cpu, gpu, auto) = (group(4, "KIND_CPU"), group(2, "KIND_GPU"), json!({ "count": 3 }));
    let both = [ProviderName::Cuda, ProviderName::Cpu];
    for (groups, instances, providers) in [
        (json!([cpu, gpu]), 2, &both[..]),
        (json!([gpu, cpu]), 2, &both[..]),
        (json!([cpu, auto]), 3, &both[..0]),
        (json!([auto, gpu]), 5, &both[..0]),
        (json!([gpu, gpu]), 4, &both[..1]),
        (json!([cpu, cpu]), 8, &both[1..]),
    ] {
        let config = read(json!({ "instance_group": groups })).unwrap();
        assert_eq!(config.instances.fixed(), Some(instances), "{groups}");
        assert_eq!(config.providers, providers, "{groups}");
    }
}

/// As the server names the files of labels, which no client can get.
#[test]
fn an_output_whose_file_is_not_sent_keeps_its_labels() {
    let labels = |output: Value| {
        let config = read(json!({ "output": [output] })).unwrap();
        let labels = config.output.iter().flat_map(|output| output.labels.0.iter());
        labels.map(|label| label.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(labels(json!({ "name": "kept", "label_filename": "labels_kept.txt" })), ["old"]);
    let other = json!({ "output": [{ "name": "kept", "label_filename": "other.txt" }] });
    assert!(read(other).is_err(), "it may be a wrong name");
    assert_eq!(labels(json!({ "name": "kept", "label_filename": "labels.txt" })), ["cat", "dog"]);
    assert_eq!(labels(json!({ "name": "kept", "label_filename": "" })), [""; 0]);
}

#[test]
fn what_cannot_be_done_is_named() {
    let error = read(json!({
        "backend": "tensorrt", "sequence_batching": { "max_sequence_idle_microseconds": 5 },
        "response_cache": { "enable": true }, "parameters": { "execution_mode": "1" },
        "output": [{ "name": "y", "label_filename": "other.txt" }],
        "dynamic_batching": { "preserve_ordering": true },
        "instance_group": [{ "count": 65 }],
    }));
    let error = error.unwrap_err();
    for named in [
        "backend is \"tensorrt\": must be onnxruntime",
        "unknown key \"sequence_batching\"",
        "unknown key \"response_cache\"",
        "parameters: unknown key \"execution_mode\"",
        "output[0].label_filename is \"other.txt\": send this file",
        "dynamic_batching.preserve_ordering is true",
        "instances is 65: must be 1 to 64",
    ] {
        assert!(error.contains(named), "{named} is missing from {error}");
    }
}
