//! Finding the value at a JSON Pointer (RFC 6901).
//!
//! The whole document is read, so that a client with a broken one is told so. What is not on the
//! way to the value is skipped: of its texts and numbers only the ends are looked for. Refuses to
//! know calls and limits.

use std::borrow::Cow;
use std::fmt::{self, Write};

use gristmill_core::NotJson;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// Maximum names in a pointer. serde_json reads 127 levels.
const DEPTH_MAX: usize = 100;

/// The characters of a name that a message shows.
const SHOWN_MAX: usize = 60;

/// The names on the way to a value.
#[derive(Debug)]
pub(super) struct Pointer<'a>(Vec<Cow<'a, str>>);

impl<'a> Pointer<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Vec::new()));
        }
        let Some(names) = text.strip_prefix('/') else {
            let shown = Shown(text);
            return Err(format!("the JSON Pointer {shown:?} does not begin with /, as /instances"));
        };
        let names: Vec<_> = names.split('/').take(DEPTH_MAX + 1).map(unescaped).collect();
        if names.len() > DEPTH_MAX {
            return Err(format!("a JSON Pointer has more than {DEPTH_MAX} names"));
        }
        Ok(Self(names))
    }
}

fn unescaped(name: &str) -> Cow<'_, str> {
    match name.contains('~') {
        false => name.into(),
        true => name.replace("~1", "/").replace("~0", "~").into(),
    }
}

/// The value at a pointer, as it stands in the document. None if there is no value.
///
/// # Errors
/// The pointer or the document cannot be read.
pub fn value_at<'de>(document: &'de [u8], pointer: &str) -> Result<Option<&'de RawValue>, String> {
    find(document, &Pointer::parse(pointer)?)
}

/// The value that the pointer leads to, as it stands in the document. None if there is no value.
pub(super) fn find<'de>(
    document: &'de [u8],
    pointer: &Pointer<'_>,
) -> Result<Option<&'de RawValue>, String> {
    let mut reader = Deserializer::from_slice(document);
    let found = At(&pointer.0).deserialize(&mut reader);
    let found = found.and_then(|found| reader.end().map(|()| found));
    found.map_err(|error| match document {
        [] => "the body is empty".into(),
        _ => fault(document, &error),
    })
}

fn fault(document: &[u8], error: &serde_json::Error) -> String {
    match NotJson::of(document, error.line(), error.column()) {
        Some(reason @ NotJson::Float { .. }) => {
            format!("{reason}: send null, or a text, in its place")
        }
        Some(reason) => reason.to_string(),
        None => error.to_string(),
    }
}

/// Reads a value and finds the one that these names lead to.
struct At<'a>(&'a [Cow<'a, str>]);

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => serde::Deserialize::deserialize(deserializer).map(Some),
            [name, rest @ ..] => deserializer.deserialize_any(Step { name, rest }),
        }
    }
}

/// Reads a list or an object, and finds what `rest` leads to in its value called `name`.
struct Step<'a> {
    name: &'a str,
    rest: &'a [Cow<'a, str>],
}

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_this) = map.next_key_seed(IsName(self.name))? {
            if is_this {
                found = map.next_value_seed(At(self.rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        // RFC 6901: no leading zeros.
        let index = match self.name {
            "0" => Some(0),
            name if name.starts_with(|first: char| matches!(first, '1'..='9')) => {
                name.parse::<usize>().ok()
            }
            _ => None,
        };
        for at in 0_usize.. {
            if Some(at) == index {
                let Some(found) = seq.next_element_seed(At(self.rest))? else { return Ok(None) };
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(found);
            }
            if seq.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Whether a name is this one.
struct IsName<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// The place of a value, for messages: the pointer, and names and indices after it.
#[derive(Clone)]
pub(super) struct Place(String);

impl Place {
    pub(super) fn of(pointer: &str) -> Self {
        Self(Shown(pointer).to_string())
    }

    pub(super) fn index(mut self, index: usize) -> Self {
        // Writing to a text cannot fail.
        let _ = write!(self.0, "/{index}");
        self
    }

    pub(super) fn name(mut self, name: &str) -> Self {
        let name = name.replace('~', "~0").replace('/', "~1");
        let _ = write!(self.0, "/{}", Shown(&name));
        self
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "the body" } else { &self.0 })
    }
}

/// The beginning of a text.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(SHOWN_MAX) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}..", &self.0[..end]),
        }
    }
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &str) -> &'static str {
    match value.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(document: &str, pointer: &str) -> Result<Option<String>, String> {
        let found = find(document.as_bytes(), &Pointer::parse(pointer)?)?;
        Ok(found.map(|found| found.get().to_owned()))
    }

    /// The document and the pointers of RFC 6901, section 5.
    #[test]
    fn the_examples_of_the_rfc_are_found() {
        let document = r#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,
            "k\"l":6," ":7,"m~n":8}"#;
        for (pointer, value) in [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/e^f", "3"),
            ("/g|h", "4"),
            ("/i\\j", "5"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            assert_eq!(at(document, pointer).unwrap().as_deref(), Some(value), "{pointer}");
        }
        assert_eq!(at(document, "").unwrap().as_deref(), Some(document));
    }

    #[test]
    fn where_nothing_is_nothing_is_found() {
        for pointer in ["/b", "/a/2", "/a/-", "/a/00", "/a/x", "/a/0/x", "/n/0", "/t/0", "/o/0"] {
            let document = r#"{"a":[1,-2.5],"n":null,"t":"text","o":true}"#;
            assert_eq!(at(document, pointer).unwrap(), None, "{pointer}");
        }
    }

    #[test]
    fn the_last_of_equal_names_counts() {
        assert_eq!(at(r#"{"a":{"b":1},"a":{"b":2}}"#, "/a/b").unwrap().as_deref(), Some("2"));
        assert_eq!(at(r#"{"a":{"b":1},"a":7}"#, "/a/b").unwrap(), None);
    }

    #[test]
    fn a_document_is_read_to_its_end() {
        for broken in ["", "[1", r#"{"a":1"#, r#"{"a":1}x"#, r#"{"a":1,}"#, "nul", "[NaN]"] {
            assert!(at(broken, "/a").is_err(), "{broken}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert_eq!(at(&format!(r#"{{"b":{deep},"a":1}}"#), "/a").unwrap().as_deref(), Some("1"));
    }

    #[test]
    fn a_document_that_is_not_json_is_told_what_to_do() {
        let error = at("{\"a\":\n[1.5, -Infinity]}", "/b").unwrap_err();
        let expected =
            "-Infinity at line 2 column 8 is not JSON: send null, or a text, in its place";
        assert_eq!(error, expected);
        let error = at("\u{feff}{}", "").unwrap_err();
        assert_eq!(error, "it begins with a byte order mark: send UTF-8 without one");
        let error = find(b"\xff\xfe{\0", &Pointer(Vec::new())).unwrap_err();
        assert_eq!(error, "it is UTF-16: send UTF-8");
        // A text that is cut short.
        assert!(at("[\"NaN", "").unwrap_err().starts_with("EOF"));
    }

    #[test]
    fn a_pointer_that_is_none_is_refused() {
        let error = at("{}", "instances").unwrap_err();
        let text = r#"the JSON Pointer "instances" does not begin with /, as /instances"#;
        assert_eq!(error, text);
        assert!(at("{}", &"/a".repeat(101)).is_err());
        assert!(at("{}", &"/a".repeat(100)).is_ok());
    }
}
