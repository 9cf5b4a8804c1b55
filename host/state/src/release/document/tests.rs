use serde_json::{Map, Value, json};

use super::{Document, Faults};

fn document(value: Value) -> Document {
    let Value::Object(keys) = value else { panic!("{value} is not an object") };
    Document::new(keys)
}

#[test]
fn what_fits_is_read() {
    let mut read = document(json!({
        "open": true, "weight": 7, "name": "acme", "list": [1, 2], "none": null,
        "inner": { "deep": "text" }, "colour": "red",
    }));
    assert_eq!(read.flag("open"), Some(true));
    assert_eq!(read.whole::<u32>("weight"), Some(7));
    assert_eq!(read.name("name").unwrap().as_str(), "acme");
    let double = |value: &Value| value.as_u64().map(|n| n * 2).ok_or_else(String::new);
    assert_eq!(read.list("list", double), Some(vec![2, 4]));
    assert_eq!(read.text("none"), None);
    assert_eq!(read.text("absent"), None);
    assert_eq!(read.nested("inner", |inner| inner.text("deep")).unwrap(), "text");
    assert_eq!(read.one_of("colour", &[("blue", 1), ("red", 2)]), Some(2));
    assert_eq!(read.finish(), Faults::default());
}

#[test]
fn a_whole_number_may_be_written_as_a_float() {
    let mut read = document(json!({
        "exponent": 1e7, "point": 2.0, "half": 0.5, "large": 1e300, "below": -1.0, "most": u64::MAX,
    }));
    assert_eq!(read.whole::<u64>("exponent"), Some(10_000_000));
    assert_eq!(read.whole::<u8>("point"), Some(2));
    assert_eq!(read.whole::<u64>("most"), Some(u64::MAX));
    for key in ["half", "large", "below"] {
        assert_eq!(read.whole::<u64>(key), None, "{key}");
    }
    assert_eq!(read.finish().into_texts().len(), 3);
}

#[test]
fn all_that_does_not_is_said_at_once() {
    let mut read = document(json!({
        "opne": true, "open": "yes", "weight": -1, "small": 300, "name": "A b", "list": [1, "x"],
        "inner": { "deep": 5, "depe": 6 }, "colour": "green", "object": [1],
        "long": "x".repeat(1000),
    }));
    read.flag("open");
    read.whole::<u32>("weight");
    read.whole::<u8>("small");
    read.name("name");
    let numbers = |value: &Value| value.as_u64().ok_or_else(|| " must be a number".to_owned());
    assert_eq!(read.list("list", numbers), None);
    read.nested("inner", |inner| inner.text("deep"));
    read.one_of("colour", &[("blue", 1), ("red", 2)]);
    read.object("object");
    read.whole::<u64>("long");
    let missing = read.whole::<u64>("missing");
    read.require("missing", missing);
    read.require::<bool>("open", None);
    let faults = read.finish();
    for key in ["open", "inner", "inner.deep", "list", "list[1]", "missing"] {
        assert!(faults.has(key), "{key}");
    }
    assert!(!faults.has("lis") && !faults.has("deep"));
    let texts = faults.into_texts();
    let expected = [
        "open is \"yes\": must be true or false",
        "weight is -1: must be a whole number from 0 on",
        "small is 300: must be a whole number from 0 on",
        "name: \"A b\" is no",
        "list[1] must be a number",
        "inner.deep is 5: must be text",
        "inner: unknown key \"depe\"; known are deep",
        "colour is \"green\": must be one of blue, red",
        "object is a list: must be a JSON object",
        "long is \"xxx",
        "missing is missing",
        "unknown key \"opne\"; known are open, weight, small, name, list, inner",
    ];
    assert_eq!(texts.len(), expected.len(), "{texts:#?}");
    for named in expected {
        assert!(texts.iter().any(|text| text.contains(named)), "{named}: {texts:#?}");
    }
    assert!(texts.iter().all(|text| text.len() < 200), "{texts:#?}");
}

#[test]
fn each_fault_has_a_place() {
    let mut read = document(json!({
        "deep": { "list": [{ "a/b": 1, "number": "x" }], "any": {} }, "own": { "wrong": 1 },
        "longer": levels(65),
    }));
    read.nested("deep", |deep| {
        deep.objects("list", |item| item.whole::<u8>("number"));
        deep.object("any");
        deep.member_fault("any", "x.y~", "any: no");
    });
    read.object("own");
    let mut faults = Faults::default();
    faults.add("", "all of it is wrong");
    faults.add("wrong[2].part", "wrong[2].part is wrong");
    read.faults_of("own", faults);
    read.require::<u8>("missing", None);
    let faults = read.finish().placed("/at");
    let places: Vec<_> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    let expected = [
        "/at/longer",
        "/at/deep/list/0/number",
        "/at/deep/list/0/a~1b",
        "/at/deep/any/x.y~0",
        "/at/own",
        "/at/own/wrong/2/part",
        "/at/missing",
    ];
    assert_eq!(places, expected, "{faults:#?}");
    assert_eq!(faults[3].detail, "deep.any: no");
    assert_eq!(faults[5].detail, "own: wrong[2].part is wrong");
}

#[test]
fn an_unknown_key_is_cut_where_it_is_long() {
    let keys = Map::from_iter([("k".repeat(5000), Value::Null)]);
    let texts = Document::new(keys).finish().into_texts();
    assert!(texts[0].len() < 200, "{texts:?}");
}

/// A value with so many levels.
fn levels(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| match level % 2 {
        0 => json!([inner]),
        _ => json!({ "in": inner }),
    })
}

#[test]
fn values_have_few_levels() {
    let mut read = document(json!({ "most": levels(64), "more": levels(65), "plain": 1 }));
    assert!(read.value("most").is_some() && read.value("plain").is_some());
    assert_eq!(read.value("more"), None);
    let texts = read.finish().into_texts();
    assert_eq!(texts, ["more has more than 64 levels of lists and objects"]);
}
