use serde_json::{Value, json};

use super::*;

fn samples(samples: Value) -> Result<Vec<Sample>, Vec<String>> {
    let Value::Object(keys) = json!({ "samples": samples }) else { unreachable!() };
    let mut document = Document::new(keys);
    let samples = read(&mut document);
    let faults = document.finish();
    if faults.is_empty() { Ok(samples) } else { Err(faults.into_texts()) }
}

#[test]
fn a_document_is_read_as_the_log_reads_it() {
    let documents = json!([
        { "name": "text", "request": { "body": "a", "query": "do=it&n=%20", "content_type": "a/b" },
            "expect": { "status": 400, "at": { "/a": 1 } } },
        { "name": "json", "request": { "json": { "b": [1.5, null] } }, "expect": {} },
        { "name": "bytes", "request": { "base64": "AAE=" }, "expect": { "json": {} } },
        { "name": "none", "request": {}, "expect": {} },
    ]);
    let logged: Vec<Sample> = serde_json::from_value(documents.clone()).unwrap();
    assert_eq!(serde_json::to_value(&logged).unwrap(), documents);
    let read = samples(documents).unwrap();
    assert_eq!(read, logged);
    let contents: Vec<_> = read.iter().map(|sample| sample.request.content()).collect();
    assert_eq!(contents[0], (Bytes::from_static(b"a"), Some("text/plain")));
    let json = Bytes::from_static(br#"{"b":[1.5,null]}"#);
    assert_eq!(contents[1], (json, Some("application/json")));
    assert_eq!(contents[2], (Bytes::from_static(&[0, 1]), None));
    assert_eq!(contents[3], (Bytes::new(), None));
    let least = samples(json!([{ "name": "a" }])).unwrap();
    assert_eq!((&least[0].request, &least[0].expect), (&Default::default(), &Default::default()));
    assert_eq!(samples(Value::Null), Ok(Vec::new()));
}

#[test]
fn every_fault_is_named_with_its_place() {
    let faults = samples(json!([
        { "name": "A b", "request": { "body": "a", "json": 1, "boddy": "b" }, "expects": {} },
        { "request": { "base64": "A", "query": "a b", "content_type": "a\n" } },
        { "name": "c", "request": [], "expect": { "status": 42, "at": { "x": 1 } } },
        7,
    ]));
    assert_eq!(faults.unwrap_err(), ["samples[3] must be a JSON object"]);
    let faults = samples(json!([
        { "name": "A b", "request": { "body": "a", "json": 1, "boddy": "b" }, "expects": {} },
        { "request": { "base64": "A", "query": "a b", "content_type": "a\n" } },
        { "name": "c", "request": [], "expect": { "status": 42, "at": { "x": 1 } } },
    ]));
    let faults = faults.unwrap_err();
    let expected = [
        "samples[0].name: \"A b\" is no",
        "samples[0].request.body: give one of body, json and base64",
        "samples[0].request: unknown key \"boddy\"",
        "samples[0]: unknown key \"expects\"; known are name, request, expect",
        "samples[1].name is missing",
        "samples[1].request.content_type cannot be sent in a header",
        "samples[1].request.query cannot be sent in a URL",
        "samples[1].request.base64 is not Base64",
        "samples[2].request is a list: must be a JSON object",
        "samples[2].expect.status is 42: must be 200 to 599",
        "samples[2].expect.at[\"x\"]: must be a JSON pointer",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, named) in faults.iter().zip(expected) {
        assert!(fault.starts_with(named), "{named}: {faults:#?}");
    }
}

#[test]
fn samples_are_bounded_and_their_names_differ() {
    let sample = |name: String, body: &str| json!({ "name": name, "request": { "body": body } });
    let many = |count: usize| -> Vec<_> {
        (0..count).map(|index| sample(format!("s{index}"), "")).collect()
    };
    assert_eq!(samples(many(16).into()).unwrap().len(), 16);
    assert_eq!(samples(many(17).into()).unwrap_err(), ["samples has 17: the limit is 16"]);
    let twice = json!([sample("a".into(), "1"), sample("b".into(), "2"), sample("a".into(), "3")]);
    let expected = "samples[2].name is \"a\", which is the name of an earlier one";
    assert_eq!(samples(twice).unwrap_err(), [expected]);
    let large = |bytes: usize| json!([sample("a".into(), &"x".repeat(bytes))]);
    // All but the body takes 48 bytes.
    assert!(samples(large(SAMPLES_BYTES_MAX - 48)).is_ok());
    let expected = "samples take 262145 bytes as JSON: the limit is 262144";
    assert_eq!(samples(large(SAMPLES_BYTES_MAX - 47)).unwrap_err(), [expected]);
}
