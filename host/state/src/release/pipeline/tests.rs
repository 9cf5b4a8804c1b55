use gristmill_core::PipelineLimits;
use serde_json::{Map, Value, json};

use super::{PipelineDocument, PipelineSpec};

fn keys(value: Value) -> Map<String, Value> {
    let Value::Object(keys) = value else { panic!("{value} is not an object") };
    keys
}

fn read(value: Value) -> Result<PipelineSpec, Vec<String>> {
    let document = PipelineDocument::read(keys(value), &PipelineLimits::default());
    document.into_spec().map_err(|faulty| faulty.faults.into_texts())
}

#[test]
fn a_pipelines_document_is_read_as_the_log_reads_it() {
    let document = json!({
        "pre": "a@7", "model": "b@16", "post": "c", "settings": { "colour": "red" }, "priority": 2,
        "limits": {
            "timeout_ms": 1, "body_bytes": 2, "cpu_ms": 30, "memory_bytes": 4 << 20,
            "response_bytes": 5, "log_bytes": 0,
        },
        "instance_reuse": { "mode": "tenant", "max_count": 6, "idle_ms": 7, "max_idle": 8 },
        "debug": true,
        "samples": [{ "name": "one", "request": { "json": 1 }, "expect": { "at": { "": 2 } } }],
    });
    let logged: PipelineSpec = serde_json::from_value(document.clone()).unwrap();
    assert_eq!(read(document), Ok(logged));
    let least = json!({ "pre": "a", "model": "b", "post": "c" });
    let logged: PipelineSpec = serde_json::from_value(least.clone()).unwrap();
    assert_eq!(read(least), Ok(logged));
}

#[test]
fn every_fault_of_a_pipeline_is_named() {
    let faults = read(json!({
        "pre": "Front", "post": 5, "settings": { "text": "x".repeat(65_536) }, "priority": "high",
        "limits": { "cpu_ms": 4, "memory_bytes": 1, "timeout_ms": "long", "cpu": 5 }, "modle": "b",
        "debug": "yes", "samples": { "name": "one" },
    }));
    let faults = faults.unwrap_err();
    let expected = [
        "pre: \"Front\" is no",
        "model is missing",
        "post is 5: must be text",
        "settings take 65547 bytes as JSON: the limit is 65536",
        "priority is \"high\": must be a whole number from 0 on",
        "limits.cpu_ms is 4: must be 5 to 60000",
        "limits.memory_bytes is 1: must be 1048576 to 67108864",
        "limits.timeout_ms is \"long\": must be a whole number from 0 on",
        "limits: unknown key \"cpu\"; known are timeout_ms, body_bytes",
        "debug is \"yes\": must be true or false",
        "samples is an object: must be a list",
        "unknown key \"modle\"; known are pre, model, post, settings, limits, priority, \
         instance_reuse, debug, candidate, capture, samples",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for named in expected {
        assert!(faults.iter().any(|fault| fault.contains(named)), "{named}: {faults:#?}");
    }
}

#[test]
fn a_version_that_is_not_one_is_named() {
    let faults = read(json!({ "pre": "a@", "model": "b@x", "post": "C@7" })).unwrap_err();
    let expected = [
        "pre: \"a@\" names no version: give the number of the release that brought it",
        "model: \"b@x\" names no version",
        "post: \"C\" is no",
    ];
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{faults:#?}");
    }
    assert_eq!(faults.len(), 3, "{faults:#?}");
}

#[test]
fn instances_are_used_again_as_the_document_says() {
    let with = |reuse: Value| {
        let document = json!({ "pre": "a", "model": "b", "post": "c", "instance_reuse": reuse });
        read(document).map(|spec| spec.instance_reuse)
    };
    assert_eq!(with(json!("request")), with(json!({ "mode": "request" })));
    for (reuse, expected) in [
        (
            json!("always"),
            "instance_reuse.mode is \"always\": must be one of none, request, tenant",
        ),
        (json!({ "max_idle": 1 }), "instance_reuse.mode is missing"),
        (
            json!({ "mode": "request", "max_count": 5 }),
            "instance_reuse.max_count is 5: only the mode tenant has it",
        ),
        (
            json!({ "mode": "tenant", "max_idle": 65 }),
            "instance_reuse.max_idle is 65: must be 1 to 64",
        ),
        (
            json!({ "mode": "tenant", "count": 65 }),
            "instance_reuse: unknown key \"count\"; known are mode, max_count, idle_ms, max_idle",
        ),
    ] {
        assert_eq!(with(reuse).unwrap_err(), [expected]);
    }
}
