//! The documents of values in stores, and what they must be.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gristmill_sandbox::STORE_KEY_BYTES_MAX;
use gristmill_state::{Document, Faults, StateError};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Maximum values of one call.
const VALUES_MAX: usize = 1000;

/// The value of a key: a text, or any bytes.
#[derive(ToSchema)]
#[schema(as = NewValue)]
pub(super) struct NewValue {
    /// The value as text.
    pub(super) text: Option<String>,
    /// The value as base64, in place of `text`.
    pub(super) base64: Option<String>,
    /// The milliseconds after which the store forgets it; without them it stays.
    #[schema(minimum = 1)]
    pub(super) ttl_ms: Option<u64>,
}

/// Values of several keys.
#[derive(ToSchema)]
#[schema(as = NewValues)]
pub(super) struct NewValues {
    /// At most 1000.
    pub(super) values: Vec<KeyValue>,
    /// The milliseconds after which the store forgets them; without them they stay.
    #[schema(minimum = 1)]
    pub(super) ttl_ms: Option<u64>,
}

/// A key with its value.
#[derive(ToSchema)]
#[schema(as = KeyValue)]
pub(super) struct KeyValue {
    pub(super) key: String,
    /// The value as text.
    pub(super) text: Option<String>,
    /// The value as base64, in place of `text`.
    pub(super) base64: Option<String>,
}

/// The value that a key has: `text` if it is UTF-8, otherwise `base64`.
#[derive(Serialize, ToSchema)]
#[schema(as = FoundValue)]
pub(super) struct FoundValue {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// How many values were set or forgotten.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedValues)]
pub(super) struct ChangedValues {
    pub(super) changed: usize,
}

impl NewValue {
    /// # Errors
    /// All faults of the document.
    pub(super) fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let (text, base64) = read_value(&mut document);
        let ttl_ms = read_ttl(&mut document);
        refused(document.finish())?;
        Ok(Self { text, base64, ttl_ms })
    }
}

impl NewValues {
    /// # Errors
    /// All faults of the document.
    pub(super) fn read(keys: Map<String, Value>) -> Result<Self, StateError> {
        let mut document = Document::new(keys);
        let values = document.objects("values", |item| {
            let key = item.text("key");
            let key = item.require("key", key);
            if let Some(why) = key.as_deref().and_then(fault_of_key) {
                item.fault("key", why);
            }
            let (text, base64) = read_value(item);
            Some(KeyValue { key: key?, text, base64 })
        });
        let values = document.require("values", values);
        if let Some(count) = values.as_ref().map(Vec::len).filter(|count| *count > VALUES_MAX) {
            document.fault("values", format_args!(" has {count} items: the limit is {VALUES_MAX}"));
        }
        let ttl_ms = read_ttl(&mut document);
        refused(document.finish())?;
        Ok(Self { values: values.unwrap_or_default(), ttl_ms })
    }
}

/// How many values were forgotten.
#[derive(Serialize, ToSchema)]
#[schema(as = ClearedValues)]
pub(super) struct ClearedValues {
    pub(super) changed: usize,
    /// Whether all that were there at one moment are gone. Otherwise the same call goes on.
    pub(super) is_empty: bool,
}

/// # Errors
/// There are faults.
fn refused(faults: Faults) -> Result<(), StateError> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(StateError::Invalid(faults)),
    }
}

/// Read `text` or `base64`, one of which is given.
fn read_value(document: &mut Document) -> (Option<String>, Option<String>) {
    let are_there = (document.gives("text"), document.gives("base64"));
    let (text, base64) = (document.text("text"), document.text("base64"));
    match are_there {
        (true, true) => document.fault("base64", " is given beside text: give one of them"),
        (false, false) => document.fault("text", " is missing: give it, or base64"),
        _ => {}
    }
    if base64.as_ref().is_some_and(|base64| STANDARD.decode(base64).is_err()) {
        document.fault("base64", " must be base64 with its padding");
    }
    (text, base64)
}

fn read_ttl(document: &mut Document) -> Option<u64> {
    let ttl_ms: Option<u64> = document.whole("ttl_ms");
    if ttl_ms.is_some_and(|ttl_ms| ttl_ms == 0 || i64::try_from(ttl_ms).is_err()) {
        document.fault("ttl_ms", format_args!(" must be 1 to {}", i64::MAX));
    }
    ttl_ms
}

/// What is wrong with a key.
pub(super) fn fault_of_key(key: &str) -> Option<String> {
    match key.len() {
        0 => Some(" is empty".to_owned()),
        1..=STORE_KEY_BYTES_MAX => None,
        bytes => Some(format!(" has {bytes} bytes: the limit is {STORE_KEY_BYTES_MAX}")),
    }
}

/// The bytes of a value that was read.
pub(super) fn bytes_of(text: Option<String>, base64: Option<String>) -> Vec<u8> {
    match base64 {
        Some(base64) => STANDARD.decode(base64).unwrap_or_default(),
        None => text.unwrap_or_default().into_bytes(),
    }
}

impl FoundValue {
    pub(super) fn of(value: &Bytes) -> Self {
        match str::from_utf8(value) {
            Ok(text) => Self { text: Some(text.to_owned()), base64: None },
            Err(_) => Self { text: None, base64: Some(STANDARD.encode(value)) },
        }
    }
}
