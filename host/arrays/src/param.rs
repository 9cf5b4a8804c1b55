//! The parameters of a step, as a program's JSON has them.
//!
//! Refuses objects and deep lists, so that what is read takes a bounded multiple of its text.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

use crate::promote::Number;

/// The deepest list: a slice in an index in the parameters.
const DEPTH_MAX: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Param {
    Null,
    Number(Number),
    Text(String),
    List(Vec<Self>),
}

impl Param {
    /// A number. NaN and infinities are texts, which JSON has no numbers for.
    pub(crate) fn number(&self) -> Option<Number> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(text) => Some(Number::Float(match &**text {
                "nan" => f64::NAN,
                "inf" => f64::INFINITY,
                "-inf" => f64::NEG_INFINITY,
                _ => return None,
            })),
            _ => None,
        }
    }

    /// An integer of 64 bits.
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Self::Number(Number::Int(int)) => i64::try_from(*int).ok(),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Depth(1).deserialize(deserializer)
    }
}

/// How deep a value may lie.
#[derive(Clone, Copy)]
struct Depth(usize);

impl<'de> DeserializeSeed<'de> for Depth {
    type Value = Param;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Param, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Depth {
    type Value = Param;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number, a text, null, or lists of them")
    }

    fn visit_unit<E: Error>(self) -> Result<Param, E> {
        Ok(Param::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Param, E> {
        Ok(Param::Number(Number::Bool(flag)))
    }

    fn visit_i64<E: Error>(self, int: i64) -> Result<Param, E> {
        Ok(Param::Number(Number::Int(int.into())))
    }

    fn visit_u64<E: Error>(self, int: u64) -> Result<Param, E> {
        Ok(Param::Number(Number::Int(int.into())))
    }

    fn visit_f64<E: Error>(self, float: f64) -> Result<Param, E> {
        Ok(Param::Number(Number::Float(float)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Param, E> {
        Ok(Param::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Param, A::Error> {
        if self.0 > DEPTH_MAX {
            return Err(Error::custom("lists are nested too deeply"));
        }
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self(self.0 + 1))? {
            list.push(item);
        }
        Ok(Param::List(list))
    }
}
