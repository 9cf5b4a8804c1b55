use gristmill_core::{DocumentFault, PipelineLimits};
use serde_json::{Map, Value, json};

use super::{PipelineDocument, PipelineSpec};
use crate::release::named_version::NamedVersion;

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
        "unknown key \"modle\"; known are pre, model, post, handler, models, settings, assets, \
         limits, priority, instance_reuse, debug, oip, candidate, capture, samples",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for named in expected {
        assert!(faults.iter().any(|fault| fault.contains(named)), "{named}: {faults:#?}");
    }
}

/// The document of a handler with more keys.
fn handler(more: Value) -> Value {
    let models = json!({ "detect": "ocr-det", "read": "ocr-rec@2" });
    let mut document = json!({ "handler": "ocr@3", "models": models });
    document.as_object_mut().unwrap().extend(keys(more));
    document
}

#[test]
fn a_handlers_document_is_read_as_the_log_reads_it_and_written_as_it_was() {
    let candidate = json!({
        "handler": "ocr-new", "models": { "detect": "ocr-det@9" }, "traffic_percent": 5.0,
    });
    let document =
        handler(json!({ "settings": { "a": 1 }, "priority": 2, "candidate": candidate }));
    let spec = read(document.clone()).unwrap();
    assert_eq!(serde_json::from_value::<PipelineSpec>(document.clone()).unwrap(), spec);
    let mut written = serde_json::to_value(&spec).unwrap();
    for default in ["limits", "instance_reuse"] {
        written.as_object_mut().unwrap().remove(default);
    }
    assert_eq!(written, document);
    let texts =
        |named: Vec<&NamedVersion>| named.into_iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(texts(spec.plugins().collect()), ["ocr@3", "ocr-new"]);
    assert_eq!(texts(spec.models().collect()), ["ocr-det", "ocr-rec@2", "ocr-det@9"]);
    assert_eq!(texts(spec.candidate_plugins().unwrap()), ["ocr-new"]);
}

#[test]
fn a_promoted_candidate_takes_the_place_of_the_parts_that_it_names() {
    let promoted = |candidate: Value| {
        let spec =
            read(handler(json!({ "settings": { "a": 1 }, "candidate": candidate }))).unwrap();
        let promoted = serde_json::to_value(spec.promoted().unwrap()).unwrap();
        assert_eq!(promoted.get("candidate"), None);
        ["handler", "models", "settings"].map(|key| promoted[key].clone())
    };
    let models = json!({ "detect": "ocr-det", "read": "ocr-rec@2" });
    let [handler, same, settings] =
        promoted(json!({ "handler": "ocr@4", "shadow_percent": 1, "settings": {} }));
    assert_eq!((handler, same, settings), (json!("ocr@4"), models, json!({})));
    let [handler, others, settings] =
        promoted(json!({ "models": { "one": "m" }, "traffic_percent": 1 }));
    let expected = (json!("ocr@3"), json!({ "one": "m" }), json!({ "a": 1 }));
    assert_eq!((handler, others, settings), expected, "all models, and nothing else");
}

#[test]
fn a_pair_is_written_as_before_handlers() {
    let document = json!({
        "pre": "a@7", "model": "b", "post": "c", "settings": { "colour": "red" }, "debug": true,
        "candidate": { "model": "d", "traffic_percent": 1 },
    });
    let spec = read(document).unwrap();
    let expected = concat!(
        r#"{"pre":"a@7","model":"b","post":"c","settings":{"colour":"red"},"#,
        r#""limits":{"timeout_ms":null,"body_bytes":null,"cpu_ms":null,"memory_bytes":null,"#,
        r#""response_bytes":null,"log_bytes":null},"priority":null,"#,
        r#""instance_reuse":{"mode":"none"},"debug":true,"#,
        r#""candidate":{"model":"d","traffic_percent":1.0}}"#,
    );
    assert_eq!(serde_json::to_string(&spec).unwrap(), expected);
    assert_eq!(serde_json::from_str::<PipelineSpec>(expected).unwrap(), spec);
}

#[test]
fn a_document_has_one_kind_of_program() {
    let models = || json!({ "detect": "m" });
    let missing_models = "models is missing: name those that the handler runs, as in \
                          {\"detect\": \"ocr-det\"}";
    let cure = "give either pre, model and post, or handler and models";
    let models_beside = format!("models is given beside model: {cure}");
    let handler_beside = format!("handler is given beside pre: {cure}");
    let cases: [(Value, &[&str]); 6] = [
        (
            json!({}),
            &[
                "pre is missing: give pre, model and post, or handler and models",
                "model is missing",
                "post is missing",
            ],
        ),
        (json!({ "pre": "a", "post": "b" }), &["model is missing"]),
        (json!({ "handler": "a" }), &[missing_models]),
        (
            json!({ "models": models() }),
            &["handler is missing: name the plugin that runs the models"],
        ),
        (json!({ "model": "a", "models": models() }), &[&models_beside]),
        (json!({ "pre": "a", "model": "a", "post": "a", "handler": "a" }), &[&handler_beside]),
    ];
    for (document, faults) in cases {
        assert_eq!(read(document).unwrap_err(), faults);
    }
    for logged in [
        json!({}),
        json!({ "pre": "a", "model": "b" }),
        json!({ "handler": "a" }),
        json!({ "pre": "a", "model": "b", "post": "c", "handler": "a", "models": models() }),
    ] {
        let error = serde_json::from_value::<PipelineSpec>(logged).unwrap_err().to_string();
        assert!(error.contains("either pre, model and post, or handler and models"), "{error}");
    }
}

#[test]
fn every_fault_of_a_handlers_models_is_named() {
    let document = json!({
        "handler": "Ocr", "models": { "Detect": "m", "read": 5, "other": "a/b", "pinned": "m@x" },
    });
    let document = PipelineDocument::read(keys(document), &PipelineLimits::default());
    let placed = document.faults.placed("");
    let expected = [
        ("/handler", "handler: \"Ocr\" is not a valid name: "),
        ("/models/Detect", "models: \"Detect\" is not a valid name: "),
        ("/models/read", "models.read is 5: must be the name of a model"),
        ("/models/other", "models.other: \"a/b\" is not a valid name of a model"),
        ("/models/pinned", "models.pinned: \"m@x\" names no version"),
    ];
    for (pointer, text) in expected {
        let is_it =
            |fault: &DocumentFault| fault.pointer == pointer && fault.detail.starts_with(text);
        assert!(placed.iter().any(is_it), "{text}: {placed:#?}");
    }
    assert_eq!(placed.len(), expected.len(), "{placed:#?}");
    let count = |count: usize| {
        let models: Map<_, _> = (0..count).map(|at| (format!("m{at}"), json!("m"))).collect();
        read(json!({ "handler": "a", "models": models })).map(|_| ())
    };
    assert_eq!(count(1).and_then(|()| count(16)), Ok(()));
    assert_eq!(count(0).unwrap_err(), ["models has 0 models: must be 1 to 16"]);
    assert_eq!(count(17).unwrap_err(), ["models has 17 models: must be 1 to 16"]);
}

#[test]
fn a_candidate_has_the_parts_of_its_pipeline() {
    let of_handler = |candidate: Value| read(handler(json!({ "candidate": candidate })));
    let of_pair = |candidate: Value| {
        read(json!({ "pre": "a", "model": "b", "post": "c", "candidate": candidate }))
    };
    assert_eq!(
        of_handler(json!({ "pre": "a", "model": "b", "traffic_percent": 1 })).unwrap_err(),
        ["pre", "model"].map(|key| format!(
            "candidate.{key} is for a pipeline without a handler: name handler, models, settings \
             or assets"
        ))
    );
    assert_eq!(
        of_pair(json!({ "handler": "a", "models": { "a": "b" }, "traffic_percent": 1 }))
            .unwrap_err(),
        ["handler", "models"].map(|key| format!(
            "candidate.{key} is for a pipeline with a handler: name pre, model, post, settings or \
             assets"
        ))
    );
    assert_eq!(
        of_handler(json!({ "traffic_percent": 1 })).unwrap_err(),
        ["candidate.handler is missing: give one of handler, models, settings and assets at least"]
    );
    let faults = of_handler(json!({ "models": { "A": "m" }, "traffic_percent": 1 })).unwrap_err();
    assert!(faults[0].starts_with("candidate.models: \"A\" is not a valid name"), "{faults:?}");
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
