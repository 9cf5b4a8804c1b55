use std::time::Duration;

use gristmill_batch::{QueueLimits, QueuePolicy, TimeoutAction};
use serde_json::{Map, Value, json};

use super::{ModelConfig, ProviderName, TimeoutActionSpec};

fn keys(value: Value) -> Map<String, Value> {
    let Value::Object(keys) = value else { panic!("{value} is not an object") };
    keys
}

#[track_caller]
fn assert_faults(document: Value, expected: &[&str]) {
    let error = ModelConfig::read(keys(document)).unwrap_err().to_string();
    let faults: Vec<_> = error.split("; ").collect();
    for named in expected {
        assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:#?}");
    }
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
}

/// Each key of the log's format must be accepted in documents, too.
#[test]
fn a_document_is_read_as_the_log_reads_it() {
    let default = keys(serde_json::to_value(ModelConfig::default()).unwrap());
    assert_eq!(ModelConfig::read(default).unwrap(), ModelConfig::default());
    assert_eq!(ModelConfig::read(Map::new()).unwrap(), ModelConfig::default());
    let policy = json!({
        "max_queue_size": 5, "default_timeout_us": 6, "timeout_action": "delay",
        "allow_timeout_override": true,
    });
    let document = json!({
        "max_batch_size": 9, "preferred_batch_sizes": [3, 9], "allowed_batch_sizes": [1, 9],
        "pad": { "ids": { "axis": 1, "value": -1.5, "buckets": [16, 32] } },
        "cut": { "tokens": { "axis": 2, "as": "ids" } },
        "max_queue_delay_us": 4,
        "priority_levels": 3, "default_priority_level": 2, "priority_ageing_ms": 77,
        "default_queue_policy": policy, "priority_queue_policies": { "3": policy },
        "max_queue_rows": 100, "max_queue_bytes": 101, "max_tenant_queue_rows": 50,
        "max_tenant_queue_bytes": 51, "instances": 2, "threads": 3, "inter_op_threads": 4,
        "providers": ["cuda", "cpu"], "provider_options": { "cuda": { "device_id": "1" } },
        "graph_optimization": "basic", "memory_arena": false, "memory_pattern": false,
        "warm_up": [1, 9], "version_policy": { "specific": { "versions": [3, 16] } },
        "input": [{ "name": "image", "format": "FORMAT_NCHW" }],
        "output": [{ "name": "scores", "labels": ["cat", "dog"] }],
    });
    let logged: ModelConfig = serde_json::from_value(document.clone()).unwrap();
    let read = ModelConfig::read(keys(document)).unwrap();
    assert_eq!(read, logged);
    assert_eq!(read.providers, [ProviderName::Cuda, ProviderName::Cpu]);
    assert_eq!(read.priority_queue_policies[&3].timeout_action, TimeoutActionSpec::Delay);
}

#[test]
fn no_fault_follows_from_another() {
    let sizes = json!({ "max_batch_size": 70_000, "preferred_batch_sizes": [512] });
    assert_faults(sizes, &["max_batch_size is 70000: must be 0 to 65536"]);
    let sizes = json!({ "max_batch_size": "many", "preferred_batch_sizes": [512] });
    assert_faults(sizes, &["max_batch_size is \"many\": must be \"auto\" or a whole number"]);
    let sizes = json!({ "max_batch_size": 70_000, "warm_up": [512] });
    assert_faults(sizes, &["max_batch_size is 70000: must be 0 to 65536"]);
    let levels = json!({ "priority_levels": 65, "default_priority_level": 5 });
    assert_faults(levels, &["priority_levels is 65: must be 1 to 64"]);
    let rows = json!({ "max_queue_rows": 0, "max_tenant_queue_rows": 9 });
    assert_faults(rows, &["max_queue_rows is 0: must be 1 to 10000000"]);
    let providers = json!({ "providers": ["gpu"], "provider_options": { "cuda": {} } });
    assert_faults(providers, &["providers[0] is \"gpu\": must be one of cuda, cpu, tract"]);
}

#[test]
fn faults_of_inputs_and_outputs_are_named() {
    let document = json!({
        "input": [{ "format": "NCHW" }, { "name": "" }, { "name": "a" }, { "name": "a", "dims": [3] }],
        "output": [{ "name": "y", "labels": ["cat", 7] }],
    });
    let expected = [
        "input[0].name is missing",
        "input[0].format is \"NCHW\": must be one of FORMAT_NONE, FORMAT_NHWC, FORMAT_NCHW",
        "input[3]: unknown key \"dims\"",
        "output[0].labels[1] is 7: must be text",
    ];
    let error = ModelConfig::read(keys(document)).unwrap_err().to_string();
    for named in expected {
        assert!(error.contains(named), "{named} is missing from {error}");
    }
    let long = "x".repeat(1025);
    assert_faults(
        json!({
            "input": [{ "name": "" }, { "name": "a" }, { "name": "a" }],
            "output": [{ "name": "y", "labels": ["cat", long] }],
        }),
        &[
            "input[0].name has 0 bytes: must be 1 to 1024",
            "input[2].name is \"a\", which is named twice",
            "output[0].labels[1] has 1025 bytes: the limit is 1024",
        ],
    );
    let many = vec!["x"; 65_537];
    let many = json!({ "output": [{ "name": "y", "labels": many }] });
    assert_faults(many, &["output[0].labels has 65537 labels: the limit is 65536"]);
}

#[test]
fn every_fault_is_named_at_once() {
    let document = json!({
        "threds": 2, "threads": "two", "max_batch_size": 256, "max_queue_rows": 5, "memory_arena": 1,
        "priority_queue_policies": { "2": {}, "x": {}, "1": 7 },
        "default_queue_policy": { "max_queue_size": -1, "size": 5, "timeout_action": "wait" },
        "provider_options": { "gpu": {}, "cpu": {}, "cuda": { "device_id": 0 } },
        "graph_optimization": "some", "preferred_batch_sizes": [1, "two", 300],
        "version_policy": { "all": {} }, "warm_up": [1, 0, 257, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5],
    });
    let expected = [
        "threads is \"two\": must be \"auto\" or a whole number from 0 on",
        "max_queue_rows is 5: must be at least max_batch_size, 256",
        "memory_arena is 1: must be true or false",
        "priority_queue_policies.2: the levels are 1 to 1",
        "priority_queue_policies.x: a level is a whole number",
        "priority_queue_policies.1 is 7: must be a JSON object",
        "default_queue_policy.max_queue_size is -1: must be a whole number",
        "default_queue_policy: unknown key \"size\"",
        "default_queue_policy.timeout_action is \"wait\": must be one of reject, delay",
        "provider_options has \"gpu\": must be one of cuda",
        "provider_options has \"cpu\", which takes no options",
        "provider_options.cuda: \"device_id\" is 0: must be text",
        "graph_optimization is \"some\": must be one of disable",
        "preferred_batch_sizes[1] is \"two\"",
        "warm_up[1] is 0: must be 1 to 256",
        "warm_up[2] is 257: must be 1 to 256",
        "warm_up has 17 sizes: the limit is 16",
        "version_policy.all is not offered",
        "unknown key \"threds\"",
    ];
    let error = ModelConfig::read(keys(document)).unwrap_err().to_string();
    for named in expected {
        assert!(error.contains(named), "{named} is missing from {error}");
    }
}

fn read(document: Value) -> ModelConfig {
    ModelConfig::read(keys(document)).unwrap()
}

#[test]
fn a_lane_gets_what_the_configuration_says() {
    let lane = read(json!({
        "max_batch_size": 9, "preferred_batch_sizes": [9, 3, 9], "max_queue_delay_us": 4,
        "priority_levels": 3, "priority_ageing_ms": 77, "run_grace_ms": 5,
        "default_queue_policy": { "default_timeout_us": 6 },
        "priority_queue_policies": { "3": {
            "max_queue_size": 5, "timeout_action": "delay", "allow_timeout_override": true,
        } },
        "max_queue_rows": 100, "max_queue_bytes": 101,
    }))
    .lane();
    assert_eq!((lane.max_batch_size, &lane.preferred_batch_sizes[..]), (9, &[3, 9][..]));
    assert_eq!(lane.max_queue_delay, Duration::from_micros(4));
    assert_eq!(
        (lane.ageing, lane.run_grace),
        (Duration::from_millis(77), Duration::from_millis(5))
    );
    let usual = QueuePolicy { timeout: Some(Duration::from_micros(6)), ..QueuePolicy::default() };
    let last = QueuePolicy {
        max_requests: Some(5),
        timeout: None,
        timeout_action: TimeoutAction::Delay,
        allow_timeout_override: true,
    };
    assert_eq!(lane.levels, [usual.clone(), usual, last]);
    assert_eq!(lane.default_level, 1, "the middle one");
    assert_eq!(lane.queue, QueueLimits { rows: 100, bytes: 101 });
    assert_eq!(lane.tenant_queue, QueueLimits { rows: 50, bytes: 50 });
}

#[test]
fn a_tenant_may_always_queue_what_fills_a_batch() {
    let lane = read(json!({ "max_batch_size": 80, "max_queue_rows": 100 })).lane();
    assert_eq!(lane.tenant_queue.rows, 80);
    let limits = json!({ "max_tenant_queue_rows": 7, "max_tenant_queue_bytes": 8 });
    assert_eq!(read(limits).lane().tenant_queue, QueueLimits { rows: 7, bytes: 8 });
}

#[test]
fn loading_depends_on_nothing_but_its_options() {
    let usual = ModelConfig::default().load_options();
    let queue = json!({ "max_queue_rows": 1000, "run_grace_ms": 1, "priority_levels": 2 });
    assert_eq!(read(queue).load_options(), usual);
    let versions = read(json!({ "version_policy": { "latest": { "num_versions": 2 } } }));
    assert_eq!(versions.load_options(), usual);
    assert_eq!(versions.lane(), ModelConfig::default().lane());
    for options in [
        json!({ "instances": 2 }),
        json!({ "threads": 2 }),
        json!({ "inter_op_threads": 2 }),
        json!({ "providers": ["cpu"] }),
        json!({ "provider_options": { "cuda": { "device_id": "1" } } }),
        json!({ "graph_optimization": "basic" }),
        json!({ "memory_arena": false }),
        json!({ "memory_pattern": false }),
        json!({ "pad": { "ids": { "axis": 1, "buckets": [16] } } }),
    ] {
        assert_ne!(read(options.clone()).load_options(), usual, "{options}");
    }
}
