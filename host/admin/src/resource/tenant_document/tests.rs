use serde_json::{Value, json};

use super::{Secrets, read, read_key};
use gristmill_state::{GivenKey, SentKey, TenantDocument};
use gristmill_transport::credentials::KeyHasher;

const ADMIN: &str = "the-admin-token-1234";

/// One token, and a secret for hashes.
struct OneToken(KeyHasher);

impl Secrets for OneToken {
    fn sent(&self, key: &str) -> SentKey {
        SentKey { hashes: self.0.hashes(key), is_token: key == ADMIN }
    }
}

fn secrets() -> OneToken {
    OneToken(KeyHasher::new(&[1; 32]))
}

fn tenant(document: Value) -> Result<TenantDocument, Vec<String>> {
    let Value::Object(keys) = document else { panic!("{document} is not an object") };
    let (document, faults) = read(keys, &secrets());
    if faults.is_empty() { Ok(document) } else { Err(faults.into_texts()) }
}

#[test]
fn a_whole_document_is_read() {
    let document = json!({
        "open": false, "api_keys": ["the-key-of-acme-1", "with a blank inside"],
        "default_pipeline": "main", "weight": 5, "models": ["b", "a", "a"],
    });
    let spec = tenant(document).unwrap();
    let keys = ["the-key-of-acme-1", "with a blank inside"].map(|key| secrets().sent(key));
    assert_eq!(spec.api_keys, keys.map(GivenKey::Unnamed));
    assert_eq!((spec.open, spec.weight, spec.models.len()), (false, 5, 2));
    assert_eq!(spec.default_pipeline.unwrap().as_str(), "main");
    assert!(tenant(json!({ "open": true })).unwrap().open);
}

#[test]
fn keys_that_cannot_be_used_are_named_by_their_place() {
    let keys = json!([
        "the-key-of-acme-1",
        "short",
        "a blank at the end ",
        "not-in-ASCII-\u{e4}-1234",
        "a-control\u{7}-character",
        "a-tab\tcannot-be-seen",
        "k".repeat(513),
    ]);
    let header = "cannot be sent in a header: it must be ASCII, without control characters and \
                  without blanks at its ends";
    let expected = [
        "api_keys[1] is shorter than 16 characters".to_owned(),
        format!("api_keys[2] {header}"),
        format!("api_keys[3] {header}"),
        format!("api_keys[4] {header}"),
        format!("api_keys[5] {header}"),
        "api_keys[6] is longer than 512 characters".into(),
    ];
    assert_eq!(tenant(json!({ "api_keys": keys })).unwrap_err(), expected);
}

#[test]
fn every_fault_is_named_once() {
    let document = json!({
        "open": "yes", "weight": 0, "default_pipeline": "Main", "models": ["a", 5, "B!"], "opne": 1,
    });
    let faults = tenant(document).unwrap_err();
    let expected = [
        "open is \"yes\": must be true or false",
        "default_pipeline: \"Main\" is no",
        "models[1] must be a model's name",
        "models[2]: \"B!\" is no",
        "unknown key \"opne\"; known are open, api_keys, default_pipeline, weight, batch_with",
        "weight is 0: must be 1 to 1000",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, named) in faults.iter().zip(expected) {
        assert!(fault.starts_with(named), "{named}: {fault}");
    }
}

#[test]
fn keys_and_grants_are_bounded_in_number() {
    let keys: Vec<_> = (0..257).map(|index| format!("the-key-of-acme-{index}")).collect();
    let faults = tenant(json!({ "api_keys": keys })).unwrap_err();
    assert_eq!(faults, ["api_keys has 257 keys: the limit is 256"]);
    let models: Vec<_> = (0..1025).map(|index| format!("model-{index}")).collect();
    let faults = tenant(json!({ "open": true, "models": models })).unwrap_err();
    assert_eq!(faults, ["models has 1025 names: the limit is 1024"]);
}

#[test]
fn no_key_is_repeated() {
    for keys in [json!([5, "secret-but-short"]), json!([["a-secret-in-a-list"]])] {
        let faults = tenant(json!({ "api_keys": keys })).unwrap_err().join("");
        assert!(!faults.contains("secret"), "{faults}");
    }
}

#[test]
fn keys_have_names_and_stay_by_them() {
    let key = "the-key-of-acme-1";
    let document = json!({
        "api_keys": [key, { "name": "ci", "key": key }, { "name": "old", "key": null }],
    });
    let (digest, name) = (secrets().sent(key), |name: &str| name.parse().unwrap());
    let expected = [
        GivenKey::Unnamed(digest),
        GivenKey::Named(name("ci"), digest),
        GivenKey::Kept(name("old")),
    ];
    assert_eq!(tenant(document).unwrap().api_keys, expected);
    let wrong = json!([
        { "name": "a", "key": "short-secret" },
        { "name": "a", "key": ["secret"] },
        { "key": "a-secret-without-a-name" },
        { "name": "A" },
        { "name": "a", "secret": 1 },
    ]);
    let expected = [
        "api_keys[1].key must be text",
        "api_keys[2].name must be text",
        "api_keys[3].name: \"A\" is not a valid name",
        "api_keys[4] must have nothing but name and key",
    ];
    let faults = tenant(json!({ "api_keys": wrong })).unwrap_err();
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault}");
    }
    let short = json!({ "api_keys": [{ "name": "a", "key": "short-secret" }] });
    let expected = ["api_keys[0].key is shorter than 16 characters"];
    assert_eq!(tenant(short).unwrap_err(), expected);
}

#[test]
fn the_document_of_a_key_has_the_key_and_nothing_else() {
    let read = |document: Value| {
        let Value::Object(keys) = document else { panic!("{document} is not an object") };
        read_key(keys, &secrets()).map_err(|faults| faults.into_texts().join("; "))
    };
    let key = "the-key-of-acme-1";
    assert_eq!(read(json!({ "key": key })), Ok(secrets().sent(key)));
    assert!(read(json!({ "key": ADMIN })).unwrap().is_token);
    for (document, expected) in [
        (json!({}), "key is missing"),
        (json!({ "key": 5 }), "key must be text"),
        (json!({ "key": "short" }), "key is shorter than 16 characters"),
        (json!({ "key": key, "name": "x" }), "unknown key \"name\"; known are key"),
    ] {
        assert_eq!(read(document).unwrap_err(), expected);
    }
}

#[test]
fn only_an_open_tenant_has_a_page_to_try() {
    assert!(tenant(json!({ "open": true, "try_page": true })).unwrap().try_page);
    assert!(!tenant(json!({ "open": true })).unwrap().try_page);
    let keys = json!(["the-key-of-acme-1"]);
    let faults = tenant(json!({ "api_keys": keys, "try_page": true })).unwrap_err();
    assert_eq!(faults, ["try_page is true: only an open tenant has the page (\"open\": true)"]);
    assert!(tenant(json!({ "api_keys": keys, "try_page": false })).is_ok());
}
