//! Finding the values at JSON Pointers (RFC 6901).
//!
//! The whole document is read, so that a client with a broken one is told so. What is not on the
//! way to a value is skipped: of its texts and numbers only the ends are looked for. Several
//! pointers are followed at once; a part is read again only if a pointer ends there and another one
//! leads on. Refuses to know calls and limits.

use std::borrow::Cow;
use std::fmt::{self, Write};
use std::slice;

use gristmill_core::NotJson;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

/// Maximum names in a pointer. serde_json reads 127 levels.
pub const POINTER_NAMES_MAX: usize = 100;

/// The characters of a name that a message shows.
const SHOWN_MAX: usize = 60;

/// The names on the way to a value, and the place of the value among those that are looked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way<'a> {
    names: Vec<Cow<'a, str>>,
    place: usize,
}

/// A pointer that was read.
#[derive(Debug)]
pub(super) struct Pointer<'a>(Way<'a>);

/// Pointers that are followed together in each document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointers {
    /// Sorted, so that those with the same first names stand together.
    ways: Vec<Way<'static>>,
    count: usize,
}

impl<'a> Pointer<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(Way { names: Vec::new(), place: 0 }));
        }
        let Some(names) = text.strip_prefix('/') else {
            let shown = Shown(text);
            return Err(format!("the JSON Pointer {shown:?} does not begin with /, as /instances"));
        };
        let names: Vec<_> = names.split('/').take(POINTER_NAMES_MAX + 1).map(unescaped).collect();
        if names.len() > POINTER_NAMES_MAX {
            return Err(format!("a JSON Pointer has more than {POINTER_NAMES_MAX} names"));
        }
        Ok(Self(Way { names, place: 0 }))
    }
}

impl Pointers {
    /// These pointers. A text that is no pointer leads nowhere.
    pub fn of(texts: &[&str]) -> Self {
        let way = |(place, text): (usize, &&str)| {
            let Pointer(Way { names, .. }) = Pointer::parse(text).ok()?;
            let names = names.into_iter().map(|name| Cow::Owned(name.into_owned()));
            Some(Way { names: names.collect(), place })
        };
        let mut ways: Vec<_> = texts.iter().enumerate().filter_map(way).collect();
        ways.sort();
        Self { ways, count: texts.len() }
    }

    /// The value at each pointer, as it stands in the document, in the order of the pointers. None
    /// where there is no value.
    ///
    /// # Errors
    /// The document cannot be read.
    pub fn values<'de>(&self, document: &'de [u8]) -> Result<Vec<Option<&'de RawValue>>, String> {
        let mut found = vec![None; self.count];
        read(document, &self.ways, &mut found)?;
        Ok(found)
    }
}

fn unescaped(name: &str) -> Cow<'_, str> {
    match name.contains('~') {
        false => name.into(),
        true => name.replace("~1", "/").replace("~0", "~").into(),
    }
}

/// The value that the pointer leads to, as it stands in the document. None if there is no value.
pub(super) fn find<'de>(
    document: &'de [u8],
    Pointer(way): &Pointer<'_>,
) -> Result<Option<&'de RawValue>, String> {
    let mut found = [None];
    read(document, slice::from_ref(way), &mut found)?;
    let [found] = found;
    Ok(found)
}

/// Read the document, and put what the ways lead to in its places.
fn read<'de>(
    document: &'de [u8],
    ways: &[Way<'_>],
    found: &mut [Option<&'de RawValue>],
) -> Result<(), String> {
    let mut reader = Deserializer::from_slice(document);
    let read = At { ways, depth: 0, found }.deserialize(&mut reader);
    read.and_then(|()| reader.end()).map_err(|error| match document {
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

/// Reads a value to which the first `depth` names of all these ways lead.
struct At<'a, 'de> {
    ways: &'a [Way<'a>],
    depth: usize,
    found: &'a mut [Option<&'de RawValue>],
}

impl<'de> DeserializeSeed<'de> for At<'_, 'de> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Self { ways, depth, found } = self;
        // The shortest come first.
        let (here, onward) = ways.split_at(ways.partition_point(|way| way.names.len() == depth));
        if here.is_empty() {
            return deserializer.deserialize_any(Step { ways: onward, depth, found });
        }
        let value: &'de RawValue = serde::Deserialize::deserialize(deserializer)?;
        for way in here {
            found[way.place] = Some(value);
        }
        if onward.is_empty() || !value.get().starts_with(['[', '{']) {
            return Ok(());
        }
        let mut reader = Deserializer::from_str(value.get());
        let step = Step { ways: onward, depth, found };
        serde::Deserializer::deserialize_any(&mut reader, step).map_err(D::Error::custom)
    }
}

/// Reads a list or an object, and finds what the ways lead to in its values.
struct Step<'a, 'de> {
    ways: &'a [Way<'a>],
    depth: usize,
    found: &'a mut [Option<&'de RawValue>],
}

impl<'de> Visitor<'de> for Step<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { ways, depth, found } = self;
        while let Some(through) = map.next_key_seed(Through { ways, depth })? {
            if through.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            // The last of equal names counts.
            for way in through {
                found[way.place] = None;
            }
            map.next_value_seed(At { ways: through, depth: depth + 1, found: &mut *found })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { ways, depth, found } = self;
        let groups = ways.chunk_by(|way, next| way.names[depth] == next.names[depth]);
        let indexed = groups.filter_map(|group| Some((index_of(&group[0].names[depth])?, group)));
        let mut indexed: Vec<_> = indexed.collect();
        indexed.sort_unstable_by_key(|(index, _)| *index);
        let mut at = 0;
        for (index, through) in indexed {
            while at < index {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
                at += 1;
            }
            let next = At { ways: through, depth: depth + 1, found: &mut *found };
            if seq.next_element_seed(next)?.is_none() {
                return Ok(());
            }
            at += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// The index that a name is. RFC 6901: no leading zeros.
fn index_of(name: &str) -> Option<usize> {
    match name {
        "0" => Some(0),
        name if name.starts_with(|first: char| matches!(first, '1'..='9')) => name.parse().ok(),
        _ => None,
    }
}

/// Reads a name, and finds the ways that go through its value.
struct Through<'a> {
    ways: &'a [Way<'a>],
    depth: usize,
}

impl<'a, 'de> DeserializeSeed<'de> for Through<'a> {
    type Value = &'a [Way<'a>];

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'_> for Through<'a> {
    type Value = &'a [Way<'a>];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let Self { ways, depth } = self;
        let (_, rest) = ways.split_at(ways.partition_point(|way| *way.names[depth] < *name));
        let (through, _) = rest.split_at(rest.partition_point(|way| way.names[depth] == name));
        Ok(through)
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
mod tests;
