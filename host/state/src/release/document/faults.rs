//! The faults of a document, with the keys that are faulty and the places of their values.

use std::fmt;
use std::ops::RangeInclusive;

use gristmill_core::DocumentFault;

use super::pointer;

/// Maximum faults that are kept. More would not help a reader.
pub(super) const FAULTS_MAX: usize = 100;

/// Maximum characters of a member's name that a text repeats.
const NAME_CHARS_MAX: usize = 60;

/// The faults of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    list: Vec<Fault>,
    /// Whether one of them tells that a secret is somebody else's.
    meets_secret: bool,
}

/// A fault of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// As texts name it: `limits.cpu_ms`, `api_keys[0].name`.
    pub(super) key: String,
    /// The place of the value, or of the nearest object or list around it.
    pub(super) pointer: String,
    pub(super) text: String,
}

impl Faults {
    /// Add a fault of `key`; the whole document has the empty key. `text` must name the key.
    pub fn add(&mut self, key: impl Into<String>, text: impl Into<String>) {
        let key = key.into();
        let pointer = pointer::of_key(&key);
        self.push(Fault { key, pointer, text: text.into() });
    }

    /// Add a fault of the member `name`, which can be any text, of the object under `key`. `text`
    /// must name both.
    pub fn add_member(&mut self, key: &str, name: &str, text: impl Into<String>) {
        let pointer = pointer::child(pointer::of_key(key), name);
        self.push(Fault { key: format!("{key}.{name}"), pointer, text: text.into() });
    }

    /// Add the faults of the member `name`, which can be any text, of the object under `key`.
    pub fn add_member_all(&mut self, key: &str, name: &str, inner: Self) {
        self.meets_secret |= inner.meets_secret;
        let at = pointer::child(pointer::of_key(key), name);
        let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
        for Fault { key: inner_key, pointer, text } in inner.list {
            let (key, text) =
                (format!("{key}.{shown}.{inner_key}"), format!("{key}.{shown}: {text}"));
            self.push(Fault { key, pointer: format!("{at}{pointer}"), text });
        }
    }

    /// Add a fault that tells that a secret is somebody else's.
    pub fn add_secret(&mut self, key: impl Into<String>, text: impl Into<String>) {
        self.meets_secret = true;
        self.add(key, text);
    }

    /// Whether one of them tells that a secret is somebody else's.
    pub fn meets_secret(&self) -> bool {
        self.meets_secret
    }

    pub(super) fn push(&mut self, fault: Fault) {
        if self.list.len() < FAULTS_MAX {
            self.list.push(fault);
        }
    }

    /// Add the faults of the object under `key`.
    pub fn add_all(&mut self, key: &str, inner: Self) {
        self.meets_secret |= inner.meets_secret;
        let at = pointer::of_key(key);
        for Fault { key: inner_key, pointer, text } in inner.list {
            let (key, text) = (format!("{key}.{inner_key}"), format!("{key}: {text}"));
            self.push(Fault { key, pointer: format!("{at}{pointer}"), text });
        }
    }

    /// Whether the key, or a key in its value, has a fault.
    pub fn has(&self, key: &str) -> bool {
        let of = |fault: &str| {
            let rest = fault.strip_prefix(key);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.list.iter().any(|fault| of(&fault.key))
    }

    /// Check that a value is in its range.
    pub fn within(&mut self, key: &str, value: u64, range: RangeInclusive<u64>) {
        self.within_set_by(key, value, range, "");
    }

    /// Check that a value is in its range. `set_by` follows the range in the text.
    pub(crate) fn within_set_by(
        &mut self,
        key: &str,
        value: u64,
        range: RangeInclusive<u64>,
        set_by: &str,
    ) {
        if !range.contains(&value) {
            let (min, max) = range.into_inner();
            self.add(key, format!("{key} is {value}: must be {min} to {max}{set_by}"));
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All of them.
    pub(super) fn into_list(self) -> Vec<Fault> {
        self.list
    }

    /// Their texts, in the order in which they were found.
    pub fn into_texts(self) -> Vec<String> {
        self.list.into_iter().map(|fault| fault.text).collect()
    }

    /// The faults with their places, as clients see them. `at` is the place of the document.
    pub fn placed(&self, at: &str) -> Vec<DocumentFault> {
        let placed = |fault: &Fault| DocumentFault {
            pointer: format!("{at}{}", fault.pointer),
            detail: fault.text.clone(),
        };
        self.list.iter().map(placed).collect()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { "; " })?;
            f.write_str(&fault.text)?;
        }
        Ok(())
    }
}
