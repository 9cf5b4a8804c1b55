use serde_json::{Map, json};

use super::*;
use crate::error::StateError;
use crate::release::model_config::ModelConfig;

fn keys(value: Value) -> Map<String, Value> {
    let Value::Object(keys) = value else { panic!("{value} is not an object") };
    keys
}

/// The places and the texts of all faults.
fn faults_of(document: Value) -> Vec<(String, String)> {
    let Err(StateError::Invalid(faults)) = ModelConfig::read(keys(document)) else {
        panic!("it has no faults")
    };
    faults.placed("").into_iter().map(|fault| (fault.pointer, fault.detail)).collect()
}

#[track_caller]
fn assert_faults(document: Value, expected: &[(&str, &str)]) {
    let faults = faults_of(document);
    for (pointer, text) in expected {
        let is_named = |(at, detail): &(String, String)| at == pointer && detail.contains(text);
        assert!(faults.iter().any(is_named), "{pointer} {text}: {faults:#?}");
    }
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
}

#[test]
fn a_claim_is_passed_on_to_the_backends() {
    let config = ModelConfig::read(keys(json!({
        "pad": {
            "ids": { "axis": 1, "value": 1, "buckets": [16, 32] },
            "mask": { "axis": 1, "buckets": [16, 32] },
            "boxes": { "axis": 2, "value": -0.5, "buckets": [4] },
        },
        "cut": { "tokens": { "axis": 1, "as": "ids" } },
    })));
    let PaddingSpec { inputs, outputs } = config.unwrap().load_options().padding;
    let values: Vec<_> =
        inputs.iter().map(|pad| (&pad.input[..], pad.axis, pad.value.to_string())).collect();
    let expected = [("boxes", 2, "-0.5"), ("ids", 1, "1"), ("mask", 1, "0")];
    assert_eq!(values, expected.map(|(name, axis, value)| (name, axis, value.to_owned())));
    assert_eq!(inputs[1].buckets, [16, 32]);
    assert_eq!(
        (&outputs[0].output[..], &outputs[0].input[..], outputs[0].axis),
        ("tokens", "ids", 1)
    );
}

#[test]
fn each_fault_is_named_with_its_place() {
    let pad = |pad: Value| json!({ "pad": { "ids": pad } });
    let right = || json!({ "axis": 1, "buckets": [16] });
    assert_faults(pad(json!(7)), &[("/pad/ids", "is 7: must be a JSON object")]);
    let missing =
        [("/pad/ids/axis", "axis is missing"), ("/pad/ids/buckets", "buckets is missing")];
    assert_faults(pad(json!({})), &missing);
    assert_faults(
        pad(json!({ "axis": 0, "value": "x", "buckets": [32, 16], "side": "left" })),
        &[
            ("/pad/ids/value", "pad.ids: value is \"x\": must be a number"),
            ("/pad/ids/side", "pad.ids: unknown key \"side\""),
            ("/pad/ids/axis", "pad.ids: axis is 0: must be 1 to 15"),
            ("/pad/ids/buckets/1", "buckets[1] is 16: must be more than 32, before it"),
        ],
    );
    let none = json!({ "axis": 1, "buckets": [] });
    assert_faults(pad(none), &[("/pad/ids/buckets", "buckets has 0 sizes: must be 1 to 16")]);
    let zero = json!({ "axis": 1, "buckets": [0] });
    assert_faults(pad(zero), &[("/pad/ids/buckets/0", "buckets[0] is 0: must be 1 to 1048576")]);
    let off = json!({ "batching": "off", "pad": { "ids": right() } });
    assert_faults(off, &[("/pad", "batching is \"off\"")]);
    let list = |size: usize| json!({ "axis": 1, "buckets": [size] });
    let many = json!({ "pad": { "a": list(1), "b": list(2), "c": list(3) } });
    assert_faults(many, &[("/pad", "3 different lists of buckets: the limit is 2")]);
    let cut = |cut: Value| json!({ "pad": { "ids": right() }, "cut": { "a/b.c": cut } });
    let other = cut(json!({ "axis": 1, "as": "mask" }));
    assert_faults(other, &[("/cut/a~1b.c/as", "cut.a/b.c: as is \"mask\", which is not named")]);
    let faults = faults_of(cut(json!({ "axis": 1 })));
    assert!(faults[0].1.contains("as is missing: the input under pad"), "{faults:?}");
}
