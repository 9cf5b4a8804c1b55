//! A `config.pbtxt` while it is read: the configuration that comes of it, what is wrong, and what
//! is ignored, each with its line.
//!
//! Invariant: each key is named once, and at most [`NOTES_MAX`] are, whatever the file has.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use super::text_format::{Field, FieldValue, Message, SHOWN_CHARS_MAX};
use crate::output::cut;

/// Maximum faults, and maximum ignored keys. More would not help a reader.
const NOTES_MAX: usize = 100;

/// The longest list of Gristmill's configuration that is made.
const LIST_MAX: usize = 1024;

pub(super) const NO_COUNTERPART: &str = "it has no counterpart here";

/// What is said of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    line: usize,
    key: String,
    text: String,
}

/// An input or an output, as the file names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorName {
    pub(super) line: usize,
    pub(super) is_input: bool,
    pub(super) name: String,
}

/// What has been read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Gristmill's configuration.
    pub(super) document: Map<String, Value>,
    /// The lines from which its keys are.
    lines: BTreeMap<&'static str, usize>,
    /// Why the model cannot be imported.
    pub(super) faults: Vec<Note>,
    pub(super) ignored: Vec<Note>,
    /// The inputs and the outputs, at most [`LIST_MAX`].
    pub(super) tensors: Vec<TensorName>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.line, self.key, self.text)
    }
}

impl Reading {
    /// Set a key of the configuration.
    pub(super) fn set(&mut self, key: &'static str, line: usize, value: impl Into<Value>) {
        self.lines.entry(key).or_insert(line);
        self.document.insert(key.to_owned(), value.into());
    }

    /// Add an item to a list of the configuration.
    pub(super) fn push(&mut self, key: &'static str, line: usize, item: impl Into<Value>) {
        self.lines.entry(key).or_insert(line);
        let list = self.document.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(items) = list
            && items.len() < LIST_MAX
        {
            items.push(item.into());
        }
    }

    /// Keep the name of an input or an output, whose field is `field`.
    pub(super) fn tensor(&mut self, field: &Field, name: &str) {
        if self.tensors.len() < LIST_MAX {
            let (line, is_input) = (field.line, &*field.name == "input");
            self.tensors.push(TensorName { line, is_input, name: name.to_owned() });
        }
    }

    /// The line from which a key of the configuration is.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// The model cannot be imported because of this field of the message `at`, which is empty or
    /// ends with a dot.
    pub(super) fn fault(&mut self, at: &str, field: &Field, text: impl Into<String>) {
        add(&mut self.faults, field.line, key_of(at, field), text.into());
    }

    /// This field of the message `at` changes nothing.
    pub(super) fn ignore(&mut self, at: &str, field: &Field, why: &str) {
        self.ignore_key(field.line, key_of(at, field), why);
    }

    /// This key changes nothing.
    pub(super) fn ignore_key(&mut self, line: usize, key: String, why: &str) {
        add(&mut self.ignored, line, key, format!(": {why}"));
    }

    /// A field that this command does not know.
    pub(super) fn ignore_unknown(&mut self, at: &str, field: &Field) {
        self.ignore(at, field, NO_COUNTERPART);
    }

    /// A whole number from 0 on.
    pub(super) fn whole(&mut self, at: &str, field: &Field) -> Option<u64> {
        let number = match &field.value {
            FieldValue::Integer(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        self.known(at, field, number, "a whole number from 0 on")
    }

    /// Set a key of the configuration to the whole number of a field.
    pub(super) fn set_whole(&mut self, at: &str, field: &Field, key: &'static str) {
        if let Some(number) = self.whole(at, field) {
            self.set(key, field.line, number);
        }
    }

    /// A field that turns something on that is not there: it changes nothing, because of `why`.
    pub(super) fn ignore_if_on(&mut self, at: &str, field: &Field, why: &str) {
        if self.flag(at, field) == Some(true) {
            self.ignore(at, field, why);
        }
    }

    pub(super) fn flag(&mut self, at: &str, field: &Field) -> Option<bool> {
        let flag = match &field.value {
            FieldValue::Word(word) => match &**word {
                "true" | "True" | "t" => Some(true),
                "false" | "False" | "f" => Some(false),
                _ => None,
            },
            FieldValue::Integer(0) => Some(false),
            FieldValue::Integer(1) => Some(true),
            _ => None,
        };
        self.known(at, field, flag, "true or false")
    }

    pub(super) fn text<'a>(&mut self, at: &str, field: &'a Field) -> Option<&'a str> {
        let text = match &field.value {
            FieldValue::Text(text) => Some(&**text),
            _ => None,
        };
        self.known(at, field, text, "a text in quotes")
    }

    pub(super) fn message<'a>(&mut self, at: &str, field: &'a Field) -> Option<&'a Message> {
        let message = match &field.value {
            FieldValue::Message(message) => Some(message),
            _ => None,
        };
        self.known(at, field, message, "a message in braces")
    }

    /// One of the names of an enumeration, in the order of their numbers, which stand for them.
    pub(super) fn one_of<T: Copy>(
        &mut self,
        at: &str,
        field: &Field,
        choices: &[(&str, T)],
    ) -> Option<T> {
        let choice = match &field.value {
            FieldValue::Word(word) => choices.iter().find(|(name, _)| name == word),
            FieldValue::Integer(number) => {
                usize::try_from(*number).ok().and_then(|number| choices.get(number))
            }
            _ => None,
        };
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let must = format!("one of {}", names.join(", "));
        self.known(at, field, choice.map(|(_, value)| *value), &must)
    }

    /// The key and the value of an entry of a map.
    pub(super) fn entry<'a>(
        &mut self,
        at: &str,
        field: &'a Field,
    ) -> (Option<&'a Field>, Option<&'a Field>) {
        let fields = self.message(at, field).map(|entry| &entry.fields);
        let last = |name: &str| {
            let mut fields = fields.into_iter().flatten().rev();
            fields.find(|field| &*field.name == name)
        };
        (last("key"), last("value"))
    }

    /// The value, or a fault that says what it must be.
    fn known<T>(&mut self, at: &str, field: &Field, value: Option<T>, must: &str) -> Option<T> {
        if value.is_none() {
            self.fault(at, field, format!(" is {}: must be {must}", field.value));
        }
        value
    }
}

fn key_of(at: &str, field: &Field) -> String {
    format!("{at}{}", cut(&field.name, SHOWN_CHARS_MAX))
}

/// Add a note, unless there is one of this key.
fn add(notes: &mut Vec<Note>, line: usize, key: String, text: String) {
    if notes.len() < NOTES_MAX && notes.iter().all(|note| note.key != key) {
        notes.push(Note { line, key, text });
    }
}
