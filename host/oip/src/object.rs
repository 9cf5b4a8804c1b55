//! Objects and whole numbers of a request's JSON. Their errors name no type of Rust, and a list is
//! not taken for an object, as it would be by serde's structs.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::ParseError;

/// A value that is read from an object only.
#[derive(Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(Objects(deserializer)).map(Self)
    }
}

/// Gives a struct nothing but an object.
struct Objects<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Objects<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// A whole number. `1e3` and `1000.0` are the number 1000.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) i128);

impl Whole {
    /// Its value as the parameter called `name`.
    ///
    /// # Errors
    /// [`ParseError::Parameter`] if it is negative, or too large.
    pub(crate) fn parameter(self, name: &str) -> Result<u64, ParseError> {
        let wrong = |_| ParseError::Parameter { name: name.into(), value: self.0.to_string() };
        u64::try_from(self.0).map_err(wrong)
    }
}

/// From here on, a float does not hold every whole number.
const EXACT_MAX: f64 = (1_u64 << 53) as f64;

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Whole, E> {
        Ok(Whole(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Whole, E> {
        Ok(Whole(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Whole, E> {
        if value.fract() == 0.0 && value.abs() <= EXACT_MAX {
            return Ok(Whole(value as i128));
        }
        Err(E::invalid_value(serde::de::Unexpected::Float(value), &self))
    }
}
