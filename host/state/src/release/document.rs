//! Reading a JSON object that people write. All faults are named at once, in words for its author.
//!
//! A reader asks a [`Document`] for each key it knows. A key that is missing or `null` is not
//! given. A value of the wrong kind is a fault, and so is each key that the reader does not ask
//! for. Checks of values use [`Faults`], which knows the keys that are faulty already, so that no
//! fault is reported that only follows from another. `pointer` has the places of faults.

mod faults;
mod pointer;

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use gristmill_core::{Digest, Name};
use serde_json::{Map, Value};

pub use self::faults::Faults;
use self::faults::{FAULTS_MAX, Fault};
use crate::release::named_version::NamedVersion;

/// Maximum levels of lists and objects in a value. The log and its checkpoint have such values
/// inside of others, and parsers of JSON read 127 levels at most.
const LEVELS_MAX: usize = 64;

/// Maximum bytes of a wrong value that an error repeats.
const VALUE_BYTES_MAX: usize = 60;

/// A JSON object that is being read.
#[derive(Debug)]
pub struct Document {
    /// The prefix of each key: empty, or the key whose value this document is, and a dot.
    at: String,
    keys: Map<String, Value>,
    known_keys: Vec<&'static str>,
    faults: Faults,
}

impl Document {
    /// A document of these keys. A value with too many levels is a fault.
    pub fn new(mut keys: Map<String, Value>) -> Self {
        let mut faults = Faults::default();
        keys.retain(|key, value| {
            let fits = has_levels(value, LEVELS_MAX);
            if !fits {
                let shown = cut(key.clone());
                let text =
                    format!("{shown} has more than {LEVELS_MAX} levels of lists and objects");
                let pointer = pointer::child(String::new(), key);
                faults.push(Fault { key: key.clone(), pointer, text });
            }
            fits
        });
        Self { at: String::new(), keys, known_keys: Vec::new(), faults }
    }

    /// The value of a key, if it is given.
    pub fn value(&mut self, key: &'static str) -> Option<Value> {
        self.known_keys.push(key);
        self.keys.remove(key).filter(|value| !value.is_null())
    }

    /// Whether the key is given, with any value. It was not read yet.
    pub fn gives(&self, key: &str) -> bool {
        self.keys.get(key).is_some_and(|value| !value.is_null())
    }

    /// Whether a fault was found so far.
    pub fn has_faults(&self) -> bool {
        !self.faults.is_empty()
    }

    /// One more fault of the value of a key.
    pub fn fault(&mut self, key: &str, text: impl fmt::Display) {
        let key = format!("{}{key}", self.at);
        self.faults.add(key.clone(), format!("{key}{text}"));
    }

    /// One more fault of the member `name`, which can be any text, of the object that is the value
    /// of a key. `text` names both.
    pub fn member_fault(&mut self, key: &str, name: &str, text: impl fmt::Display) {
        let text = format!("{}{text}", self.at);
        let key = format!("{}{key}", self.at);
        let pointer = pointer::child(pointer::of_key(&key), name);
        self.faults.push(Fault { key, pointer, text });
    }

    /// Add the faults of the member `name`, which can be any text, of the object that is the value
    /// of a key. The member was read as a document of its own.
    pub fn member_faults(&mut self, key: &str, name: &str, faults: Faults) {
        self.faults.add_member_all(&format!("{}{key}", self.at), name, faults);
    }

    /// The value of a key, which `read` turns into what it `must` be.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        must: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = self.value(key)?;
        let read = read(&value);
        if read.is_none() {
            self.fault(key, format_args!(" is {}: must be {must}", shown(&value)));
        }
        read
    }

    /// A value that is true or false.
    pub fn flag(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// A whole number from 0 on.
    pub fn whole<T: TryFrom<u64>>(&mut self, key: &'static str) -> Option<T> {
        let read = |value: &Value| T::try_from(whole_of(value)?).ok();
        self.read(key, "a whole number from 0 on", read)
    }

    /// A number in the range.
    pub fn number(&mut self, key: &'static str, range: &RangeInclusive<f64>) -> Option<f64> {
        let must = format!("a number from {} to {}", range.start(), range.end());
        let read = |value: &Value| value.as_f64().filter(|number| range.contains(number));
        self.read(key, &must, read)
    }

    /// A text.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        self.read(key, "text", |value| value.as_str().map(str::to_owned))
    }

    /// A JSON object.
    pub fn object(&mut self, key: &'static str) -> Option<Map<String, Value>> {
        self.read(key, "a JSON object", |value| value.as_object().cloned())
    }

    /// The variant of `known` with the name that is given.
    pub fn one_of<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        self.read(key, &one_of(choices), |value| named(value, choices))
    }

    /// A name of a tenant, a plugin or a pipeline.
    pub fn name(&mut self, key: &'static str) -> Option<Name> {
        self.parsed(key, Name::from_str)
    }

    /// A name of a model.
    pub fn model_name(&mut self, key: &'static str) -> Option<Name> {
        self.parsed(key, Name::of_model)
    }

    /// A name of a plugin, or one of its versions.
    pub fn named_version(&mut self, key: &'static str) -> Option<NamedVersion> {
        self.parsed(key, NamedVersion::from_str)
    }

    /// A name of a model, or one of its versions.
    pub fn named_model(&mut self, key: &'static str) -> Option<NamedVersion> {
        self.parsed(key, NamedVersion::of_model)
    }

    fn parsed<T, E: fmt::Display>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(&self.text(key)?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.fault(key, format_args!(": {error}"));
                None
            }
        }
    }

    /// A list. `read` reads an item; its error says what the item must be.
    pub fn list<T>(
        &mut self,
        key: &'static str,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        let items = self.read(key, "a list", |value| value.as_array().cloned())?;
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match read(item) {
                Ok(item) => list.push(item),
                Err(why) => self.fault(&format!("{key}[{index}]"), why),
            }
        }
        (!self.faults.has(&format!("{}{key}", self.at))).then_some(list)
    }

    /// A list of JSON objects, each read as the document at its place. None if there is a fault.
    pub fn objects<T>(
        &mut self,
        key: &'static str,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let items = self.list(key, |item| match item {
            Value::Object(keys) => Ok(keys.clone()),
            _ => Err(" must be a JSON object".into()),
        })?;
        let mut objects = Vec::with_capacity(items.len());
        for (index, keys) in items.into_iter().enumerate() {
            let at = format!("{}{key}[{index}].", self.at);
            objects.extend(self.inside(at, keys, &mut read));
        }
        (!self.faults.has(&format!("{}{key}", self.at))).then_some(objects)
    }

    /// The digest of an uploaded file.
    pub fn digest(&mut self, key: &'static str) -> Option<Digest> {
        let text = self.text(key)?;
        let digest = text.parse().ok();
        if digest.is_none() {
            let text = shown(&text.into());
            self.fault(key, format_args!(" is {text}: must be sha256: and 64 digits 0-9, a-f"));
        }
        digest
    }

    /// Add the faults of the value of a key, which was read as a document of its own.
    pub fn faults_of(&mut self, key: &str, faults: Faults) {
        let key = format!("{}{key}", self.at);
        let at = pointer::of_key(&key);
        for fault in faults.into_list() {
            let pointer = format!("{at}{}", fault.pointer);
            let text = format!("{key}: {}", fault.text);
            self.faults.push(Fault { key: key.clone(), pointer, text });
        }
    }

    /// Read the object under the key; an empty one if the key is not given.
    pub fn nested<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        let at = format!("{}{key}.", self.at);
        let keys = self.object(key).unwrap_or_default();
        self.inside(at, keys, read)
    }

    /// Read `keys` as the object at `at`, its faults among those of this document.
    pub fn inside<T>(
        &mut self,
        at: String,
        keys: Map<String, Value>,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut inner = Self { at, keys, known_keys: Vec::new(), faults: Faults::default() };
        let value = read(&mut inner);
        inner.finish().into_list().into_iter().for_each(|fault| self.faults.push(fault));
        value
    }

    /// Require the key, unless it has another fault.
    pub fn require<T>(&mut self, key: &str, value: Option<T>) -> Option<T> {
        self.require_with(key, value, "")
    }

    /// As [`Self::require`]. The fault of a missing key ends with the `hint`.
    pub fn require_with<T>(&mut self, key: &str, value: Option<T>, hint: &str) -> Option<T> {
        if value.is_none() && !self.faults.has(&format!("{}{key}", self.at)) {
            self.fault(key, format_args!(" is missing{hint}"));
        }
        value
    }

    /// All faults, including a fault for each key that the reader did not ask for.
    pub fn finish(mut self) -> Faults {
        let known_keys = self.known_keys.join(", ");
        let place = self.at.trim_end_matches('.');
        for name in self.keys.keys().take(FAULTS_MAX) {
            let shown = cut(format!("{name:?}"));
            let of = if place.is_empty() { String::new() } else { format!("{place}: ") };
            let text = format!("{of}unknown key {shown}; known are {known_keys}");
            let pointer = pointer::child(pointer::of_key(place), name);
            self.faults.push(Fault { key: format!("{}{shown}", self.at), pointer, text });
        }
        self.faults
    }
}

/// From here on, a float does not hold every whole number.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

/// The value as a whole number from 0 on. `1e7` and `1.0` are whole numbers in JSON, too.
pub fn whole_of(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|float| float.fract() == 0.0);
    let float = || float().filter(|float| (0.0..=EXACT_MAX).contains(float));
    value.as_u64().or_else(|| float().map(|float| float as u64))
}

/// The variant of `known` with the value's name.
pub fn named<T: Copy>(value: &Value, choices: &[(&str, T)]) -> Option<T> {
    let text = value.as_str()?;
    choices.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
}

/// "one of cuda, cpu".
pub fn one_of<T>(choices: &[(&str, T)]) -> String {
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

/// Whether the value has at most so many levels of lists and objects.
fn has_levels(value: &Value, most: usize) -> bool {
    let left = most.checked_sub(1);
    let fits = |item: &Value| left.is_some_and(|left| has_levels(item, left));
    match value {
        Value::Array(items) => left.is_some() && items.iter().all(fits),
        Value::Object(keys) => left.is_some() && keys.values().all(fits),
        _ => true,
    }
}

/// The value, as it is quoted in a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "an object".into(),
        plain => cut(plain.to_string()),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > VALUE_BYTES_MAX {
        text.truncate(text.floor_char_boundary(VALUE_BYTES_MAX));
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests;
