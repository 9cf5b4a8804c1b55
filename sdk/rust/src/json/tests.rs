#![allow(dead_code, reason = "fields are only compared as text")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{from_slice, quickly};

#[derive(Debug, Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    features: Vec<f32>,
    #[serde(default)]
    weight: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    name: String,
    kind: Kind,
    size: Size,
    pair: (i8, u64),
}

#[derive(Debug, Deserialize)]
enum Kind {
    Plain,
    Number(f32),
    Both(i32, String),
    Named { value: u16 },
}

#[derive(Debug, Deserialize)]
struct Size(f64);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Any {
    Count(u64),
    Text(String),
    List(Vec<Any>),
    Map(BTreeMap<String, Any>),
    Else(Option<f64>),
}

#[derive(Debug, Deserialize)]
struct Flat {
    a: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// Both readers give the same value or the same error.
fn same<'a, T: Deserialize<'a> + Debug>(json: &'a [u8]) {
    let words = |read: serde_json::Result<T>| format!("{read:?}");
    let (ours, theirs) = (words(from_slice(json)), words(serde_json::from_slice(json)));
    assert_eq!(ours, theirs, "{}", String::from_utf8_lossy(json));
}

fn same_in_all_types(json: &[u8]) {
    same::<Value>(json);
    same::<Vec<Item<'_>>>(json);
    same::<Item<'_>>(json);
    same::<Strict>(json);
    same::<Kind>(json);
    same::<Any>(json);
    same::<Flat>(json);
    same::<Vec<f32>>(json);
    same::<[f64; 2]>(json);
    same::<(u8, i64)>(json);
    same::<BTreeMap<u32, bool>>(json);
    same::<BTreeMap<char, ()>>(json);
    same::<BTreeMap<Option<String>, Size>>(json);
    same::<i128>(json);
    same::<f64>(json);
    same::<u64>(json);
    same::<i64>(json);
    same::<char>(json);
    same::<&str>(json);
    same::<&[u8]>(json);
    same::<Option<String>>(json);
    same::<serde::de::IgnoredAny>(json);
    for hint in HINTS {
        same_seed(json, hint);
    }
    same::<Vec<Lenient<u8>>>(json);
    same::<Vec<Lenient<Vec<u8>>>>(json);
    same::<BTreeMap<Lenient<u32>, Lenient<Kind>>>(json);
    same::<BTreeMap<Lenient<Option<String>>, Lenient<&[u8]>>>(json);
    same::<Vec<Nothing>>(json);
    same::<Skipping>(json);
}

/// Goes on if its value does not fit.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Lenient<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(T::deserialize(from).ok()))
    }
}

/// Reads nothing.
#[derive(Debug)]
struct Nothing;

impl<'de> Deserialize<'de> for Nothing {
    fn deserialize<D: Deserializer<'de>>(_from: D) -> Result<Self, D::Error> {
        Ok(Self)
    }
}

/// The numbers of a list, without what is not one. It gives up after a while.
#[derive(Debug)]
struct Skipping(Vec<u8>);

impl<'de> Deserialize<'de> for Skipping {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(SkippingVisitor)
    }
}

struct SkippingVisitor;

impl<'de> Visitor<'de> for SkippingVisitor {
    type Value = Skipping;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Skipping, A::Error> {
        let mut numbers = Vec::new();
        for _ in 0..100 {
            match list.next_element() {
                Ok(Some(number)) => numbers.push(number),
                Ok(None) => break,
                Err(_) => {}
            }
        }
        Ok(Skipping(numbers))
    }
}

/// Asks for one type, and takes every value.
#[derive(Clone, Copy, Debug)]
enum Hint {
    Bool,
    I32,
    U64,
    F64,
    Char,
    Str,
    Unit,
    UnitStruct,
    Seq,
    Tuple,
    TupleStruct,
    Map,
    Struct,
    Identifier,
    Ignored,
    /// The keys of an object.
    Keys(&'static Hint),
}

const HINTS: [Hint; 20] = [
    Hint::Bool,
    Hint::I32,
    Hint::U64,
    Hint::F64,
    Hint::Char,
    Hint::Str,
    Hint::Unit,
    Hint::UnitStruct,
    Hint::Seq,
    Hint::Tuple,
    Hint::TupleStruct,
    Hint::Map,
    Hint::Struct,
    Hint::Identifier,
    Hint::Ignored,
    Hint::Keys(&Hint::U64),
    Hint::Keys(&Hint::F64),
    Hint::Keys(&Hint::Bool),
    Hint::Keys(&Hint::Str),
    Hint::Keys(&Hint::Ignored),
];

impl<'de> DeserializeSeed<'de> for Hint {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        match self {
            Self::Bool => from.deserialize_bool(self),
            Self::I32 => from.deserialize_i32(self),
            Self::U64 => from.deserialize_u64(self),
            Self::F64 => from.deserialize_f64(self),
            Self::Char => from.deserialize_char(self),
            Self::Str => from.deserialize_str(self),
            Self::Unit => from.deserialize_unit(self),
            Self::UnitStruct => from.deserialize_unit_struct("Name", self),
            Self::Seq => from.deserialize_seq(self),
            Self::Tuple => from.deserialize_tuple(2, self),
            Self::TupleStruct => from.deserialize_tuple_struct("Name", 2, self),
            Self::Map | Self::Keys(_) => from.deserialize_map(self),
            Self::Struct => from.deserialize_struct("Name", &["a"], self),
            Self::Identifier => from.deserialize_identifier(self),
            Self::Ignored => from.deserialize_ignored_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Hint {
    type Value = String;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self:?}")
    }

    fn visit_bool<E>(self, value: bool) -> Result<String, E> {
        Ok(format!("bool {value}"))
    }

    fn visit_i64<E>(self, value: i64) -> Result<String, E> {
        Ok(format!("i64 {value}"))
    }

    fn visit_u64<E>(self, value: u64) -> Result<String, E> {
        Ok(format!("u64 {value}"))
    }

    fn visit_f64<E>(self, value: f64) -> Result<String, E> {
        Ok(format!("f64 {value}"))
    }

    fn visit_str<E>(self, value: &str) -> Result<String, E> {
        Ok(format!("str {value}"))
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("unit".into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<String, A::Error> {
        let mut said = "seq".to_owned();
        while let Some(value) = list.next_element::<Value>()? {
            said.push_str(&value.to_string());
        }
        Ok(said)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let keys = if let Self::Keys(hint) = self { *hint } else { Self::Str };
        let mut said = "map".to_owned();
        while let Some(key) = map.next_key_seed(keys)? {
            said.push_str(&format!("{key}={}", map.next_value::<Value>()?));
        }
        Ok(said)
    }
}

fn same_seed(json: &[u8], hint: Hint) {
    let theirs = || {
        let mut reader = serde_json::Deserializer::from_slice(json);
        let value = hint.deserialize(&mut reader)?;
        reader.end().map(|()| value)
    };
    let theirs: serde_json::Result<String> = theirs();
    // What the reader declines, serde_json reads.
    if let Some(value) = quickly(json, |reader| hint.deserialize(reader)) {
        let text = String::from_utf8_lossy(json);
        assert_eq!(Some(value), theirs.ok(), "{hint:?} from {text}");
    }
}

const TEXTS: [&str; 28] = [
    r#"[{"id":"a","features":[1,-2.5,0.125,1e3],"weight":null},{"id":"\u00e4\n","features":[]}]"#,
    r#" { "id" : "b" , "features" : [ 0.1 , 16777217 ] , "weight" : 12345678901234567890 , "x" : {} } "#,
    r#"{"name":"ü","kind":"Plain","size":2,"pair":[-1,18446744073709551615]}"#,
    r#"{"name":"n","kind":{"Number":1.5},"size":0.1,"pair":[1,2]}"#,
    r#"{"name":"n","kind":{"Both":[1,"x"]},"size":-0,"pair":[1,2]}"#,
    r#"{"name":"n","kind":{"Named":{"value":65536}},"size":1,"pair":[1,2,3]}"#,
    r#"{"Named":{"value":1}}"#,
    r#""Plain""#,
    r#"{"1":true,"23":false}"#,
    r#"{"a":1,"b":[true,false,null],"c":{"d":"e"}}"#,
    r#"{"\u0061":1,"z":"\ud83d\ude00"}"#,
    r#"[0.5,1.25]"#,
    r#"[3,-9223372036854775808]"#,
    "\"\u{10348}\"",
    r#""\\\"""#,
    r#""no end"#,
    "\"line\nfeed\"",
    "null",
    "true",
    "-",
    "",
    " ",
    "[1,]",
    "[1 2]",
    r#"[1,"x",2]"#,
    "[[300],[1]]",
    "[,]",
    "[,,]",
];

#[test]
fn values_and_errors_are_those_of_serde_json() {
    for text in TEXTS {
        same_in_all_types(text.as_bytes());
        // Cut anywhere, and with something behind.
        for end in 0..text.len() {
            same_in_all_types(&text.as_bytes()[..end]);
        }
        same_in_all_types(format!("{text} x").as_bytes());
    }
    for broken in [&b"\"\xff\""[..], b"{\"a\xc3\":1}", b"[1,\xf0]"] {
        same_in_all_types(broken);
    }
}

/// A number that only depends on the ones before it (xorshift).
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 16) as usize
}

#[test]
fn damaged_texts_have_the_errors_of_serde_json() {
    const PIECES: [&str; 16] =
        ["\"", "\\", "[", "]", "{", "}", ",", ":", "0", "-", ".", "e9", " ", "\u{1}", "ü", "null"];
    let state = &mut 1;
    for _ in 0..20_000 {
        let mut text = TEXTS[next(state) % TEXTS.len()].as_bytes().to_vec();
        for _ in 0..=next(state) % 3 {
            let at = next(state) % (text.len() + 1);
            let end = (at + next(state) % 3).min(text.len());
            let piece = PIECES[next(state) % PIECES.len()];
            text.splice(at..end, piece.bytes());
        }
        same::<Value>(&text);
        same::<Vec<Item<'_>>>(&text);
        same::<Strict>(&text);
        same::<Any>(&text);
    }
}

#[test]
fn numbers_of_every_length_are_those_of_serde_json() {
    let state = &mut 2;
    for _ in 0..50_000 {
        let mut number = String::new();
        let mut digits = |number: &mut String, most: usize| {
            (0..next(state) % most).for_each(|_| number.push_str(&(next(state) % 10).to_string()));
            next(state)
        };
        let form = digits(&mut String::new(), 1);
        if form % 2 == 0 {
            number.push('-');
        }
        digits(&mut number, 22);
        if form % 3 != 0 {
            number.push('.');
            digits(&mut number, 24);
        }
        if form % 11 == 0 {
            number.push_str("e-3");
        }
        for json in [number.clone(), format!("[{number}, {number}]"), format!("{number}         ")]
        {
            same::<f64>(json.as_bytes());
            same::<f32>(json.as_bytes());
            same::<Vec<f32>>(json.as_bytes());
            same::<Value>(json.as_bytes());
            same::<u64>(json.as_bytes());
            same::<i64>(json.as_bytes());
        }
    }
}

#[test]
fn nesting_ends_where_serde_json_ends_it() {
    for depth in [1, 126, 127, 128, 129, 100_000] {
        let lists = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        same::<Value>(lists.as_bytes());
        let objects = format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
        same::<Value>(objects.as_bytes());
    }
}

#[test]
fn the_usual_forms_are_not_left_to_serde_json() {
    fn reads<'a, T: Deserialize<'a>>(json: &'a str) -> bool {
        quickly(json.as_bytes(), |reader| T::deserialize(reader)).is_some()
    }
    for text in &TEXTS[..2] {
        assert!(reads::<Value>(text), "{text}");
    }
    assert!(reads::<Vec<Item<'_>>>(TEXTS[0]));
    assert!(reads::<Strict>(TEXTS[4]));
    assert!(!reads::<Strict>(TEXTS[5]));
    assert!(reads::<Any>(TEXTS[1]));
}
