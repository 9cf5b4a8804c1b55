use gristmill_plugin::testing;
use serde_json::{Value, json};

use super::*;

fn item(id: &str, features: usize) -> Value {
    json!({ "id": id, "features": vec![0.5; features] })
}

fn prepared(body: &Value) -> Result<Prepared, Failure> {
    RankerPre::preprocess(&testing::context().build(), &testing::request().json(body).build())
}

fn refused(body: &Value) -> String {
    match prepared(body).unwrap_err() {
        Failure::InvalidInput(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn features_become_rows_and_ids_the_state() {
    let second: Vec<f32> = (0..32).map(|index| index as f32 / 8.0 - 1.0).collect();
    let body = json!({ "items": [item("a", 32), { "id": "b \"ü\"", "features": second }] });
    let prepared = prepared(&body).unwrap();
    let input = prepared.get("input").unwrap();
    assert_eq!(input.dims(), [2, 32]);
    assert_eq!(input.view::<f32>().unwrap().as_slice(), [&[0.5; 32][..], &second[..]].concat());
    assert_eq!(prepared.state, r#"["a","b \"ü\""]"#.as_bytes());
}

#[test]
fn wrong_items_are_named() {
    let body = json!({ "items": [item("a", 32), item("b", 31)] });
    assert_eq!(refused(&body), "items[1].features has 31 numbers, not 32");
    let body = json!({ "items": [item("a", 33)] });
    assert_eq!(refused(&body), "items[0].features has 33 numbers, not 32");
    assert_eq!(refused(&json!({ "items": [] })), "items is empty: at least one is needed");
    assert!(refused(&json!({})).starts_with("invalid JSON: missing field `items`"));
    let body = json!({ "items": [{ "id": "a", "features": ["x"] }] });
    assert!(refused(&body).starts_with("invalid JSON: invalid type: string \"x\""));
}

#[test]
fn numbers_of_every_form_are_read_as_serde_json_reads_them() {
    let forms = [
        "0",
        "-0",
        "7",
        "-12.5",
        "0.1",
        "3.4028234e38",
        "1e-3",
        "123456789012345",
        "0.000001",
        "0.123456789012345678",
        "16777217",
        "-2.5E+1",
        "1234567890123456",
        "99999.99999",
    ];
    let mut numbers = forms.repeat(3);
    numbers.truncate(FEATURES);
    let list = numbers.join(" ,\n ");
    let body = format!(r#"{{"items":[{{"id":"a","features":[ {list} ]}}]}}"#);
    let request = testing::request().body(body).build();
    let prepared = RankerPre::preprocess(&testing::context().build(), &request).unwrap();
    let expected: Vec<f32> = numbers.iter().map(|text| text.parse().unwrap()).collect();
    assert_eq!(prepared.get("input").unwrap().view::<f32>().unwrap().as_slice(), expected);
    for form in forms {
        let (features, alone) = ([form; FEATURES].join(","), form.parse::<f32>().unwrap());
        let features: features::Features = serde_json::from_str(&format!("[{features}]")).unwrap();
        assert_eq!(features.row().unwrap(), &[alone; FEATURES], "{form}");
    }
}
