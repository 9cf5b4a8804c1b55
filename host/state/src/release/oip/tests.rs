use gristmill_core::Dtype;
use gristmill_snapshot::row_dims;
use serde_json::{Value, json};

use super::*;

fn read(oip: Value) -> Result<OipSpec, Vec<String>> {
    let Value::Object(keys) = json!({ "oip": oip }) else { unreachable!() };
    let mut document = Document::new(keys);
    let spec = OipSpec::read(&mut document);
    let faults = document.finish();
    match spec.filter(|_| faults.is_empty()) {
        Some(spec) => Ok(spec),
        None => Err(faults.into_texts()),
    }
}

fn label() -> Value {
    json!([{ "name": "FOOD_LABEL", "datatype": "BYTES", "pointer": "/prediction" }])
}

#[test]
fn a_document_reads_as_it_was_written() {
    let full = json!({
        "inputs": [
            { "name": "IMAGE", "datatype": "BYTES", "pointer": "/image~1small" },
            { "name": "AGE", "datatype": "FP32", "dims": [2, 3], "pointer": "/age" },
        ],
        "outputs": [
            { "name": "LABEL", "datatype": "BYTES", "pointer": "/prediction" },
            { "name": "SCORES", "datatype": "FP64", "dims": [11], "pointer": "" },
        ],
    });
    let spec = read(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), full);
    assert_eq!(serde_json::from_value::<OipSpec>(full).unwrap(), spec);
    let Signature { inputs, outputs, .. } = spec.signature();
    let Inputs::Members(inputs) = inputs else { panic!("{inputs:?}") };
    assert_eq!(inputs[0].key, "image/small");
    assert_eq!(inputs[1].info.signed_dims(), [-1, 2, 3]);
    assert_eq!(row_dims(&inputs[0].info), [0; 0]);
    assert_eq!((outputs[1].info.dtype, row_dims(&outputs[1].info)), (Dtype::Float64, vec![11]));
}

#[test]
fn one_text_is_the_body() {
    let input = json!({
        "name": "INPUT_IMAGE", "datatype": "BYTES", "dims": [1], "encoding": "base64",
        "content_type": "image/jpeg",
    });
    let spec = read(json!({ "inputs": [input], "outputs": label() })).unwrap();
    let signature = spec.signature();
    assert_eq!(signature.inputs()[0].signed_dims(), [-1, 1]);
    let Inputs::Body(body) = signature.inputs else { panic!("{signature:?}") };
    assert!(body.is_base64 && body.content_type.as_deref() == Some("image/jpeg"));
}

#[test]
fn all_faults_are_named_at_once() {
    let faults = read(json!({
        "inputs": [
            { "name": "", "datatype": "FP16", "dims": [0], "pointer": "/a/b", "encoding": "hex" },
            7,
        ],
        "outputs": [{ "name": "LABEL", "datatype": "BYTES", "pointer": "x" }, { "dims": [] }],
        "name": "food",
    }));
    let faults = faults.unwrap_err();
    for named in ["oip.inputs[1] must be a JSON object", "oip: unknown key \"name\""] {
        assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:#?}");
    }
    let faults = read(json!({
        "inputs": [
            { "name": "", "datatype": "FP16", "dims": [0], "pointer": "/a/b", "encoding": "hex" },
        ],
        "outputs": [
            { "name": "LABEL", "datatype": "BYTES", "pointer": "x" },
            { "dims": [1024, 1025], "rows": 1 },
        ],
    }));
    let faults = faults.unwrap_err();
    let expected = [
        "oip.inputs[0].name is empty",
        "oip.inputs[0].datatype is \"FP16\": must be one of BOOL, UINT8",
        "oip.inputs[0].dims[0] must be a whole number from 1 on",
        "oip.inputs[0].encoding is \"hex\": must be one of base64",
        "oip.inputs[0].pointer is \"/a/b\": must be a JSON pointer to one key",
        "oip.outputs[0].pointer is \"x\": must be a JSON pointer",
        "oip.outputs[1].name is missing",
        "oip.outputs[1].datatype is missing",
        "oip.outputs[1].dims make 1049600 elements: the limit is 1048576",
        "oip.outputs[1].pointer is missing: name the value",
        "oip.outputs[1]: unknown key \"rows\"",
    ];
    for named in expected {
        assert!(faults.iter().any(|fault| fault.starts_with(named)), "{named}: {faults:#?}");
    }
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
}

#[test]
fn inputs_fit_together() {
    let faults = |inputs: Value| read(json!({ "inputs": inputs, "outputs": label() })).unwrap_err();
    let text = |name: &str| json!({ "name": name, "datatype": "BYTES" });
    let member = |name: &str, pointer: &str| json!({ "name": name, "datatype": "BYTES", "pointer": pointer });
    let cases = [
        (json!([]), "oip.inputs has 0: must be 1 to 16"),
        (json!([text("A"), member("B", "/b")]), "oip.inputs[0].pointer is missing: each of"),
        (json!([member("A", "/a"), member("A", "/b")]), "oip.inputs[1].name is \"A\", which is"),
        (json!([member("A", "/a"), member("B", "/a")]), "oip.inputs[1].pointer is \"/a\", which"),
        (json!([{ "name": "A", "datatype": "FP32" }]), "oip.inputs[0].datatype must be BYTES for"),
        (
            json!([{ "name": "A", "datatype": "BYTES", "dims": [2] }]),
            "oip.inputs[0].dims must be [1] for an input that is the body",
        ),
        (
            json!([{
                "name": "A", "datatype": "BYTES", "pointer": "/a", "encoding": "base64",
            }]),
            "oip.inputs[0].encoding is for an input without pointer",
        ),
    ];
    for (inputs, expected) in cases {
        let faults = faults(inputs);
        assert!(faults.len() == 1 && faults[0].starts_with(expected), "{expected}: {faults:?}");
    }
    let many: Value = (0..17).map(|at| member(&format!("A{at}"), &format!("/{at}"))).collect();
    assert_eq!(faults(many), ["oip.inputs has 17: must be 1 to 16"]);
    assert_eq!(read(json!({ "inputs": [text("A")] })).unwrap_err(), ["oip.outputs is missing"]);
}

#[test]
fn a_pointer_that_the_data_plane_would_not_follow_is_refused() {
    let oip = |names: usize| {
        let pointer = "/a".repeat(names);
        let output = json!({ "name": "A", "datatype": "FP32", "dims": [2.0], "pointer": pointer });
        json!({ "inputs": [{ "name": "A", "datatype": "BYTES" }], "outputs": [output] })
    };
    let signature = read(oip(100)).unwrap().signature();
    assert_eq!(row_dims(&signature.outputs[0].info), [2]);
    let answer = r#"{"a":"#.repeat(100) + "7" + &"}".repeat(100);
    let values = signature.pointers.values(answer.as_bytes()).unwrap();
    assert_eq!(values[0].unwrap().get(), "7");
    let refused = read(oip(101)).unwrap_err();
    assert_eq!(refused, ["oip.outputs[0].pointer has 101 names: the limit is 100"]);
}
