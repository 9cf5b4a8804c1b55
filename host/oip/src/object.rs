//! Objects and whole numbers of a request's JSON. Their errors name no type of Rust, and a list is
//! not taken for an object, as it would be by serde's structs.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use crate::bounded::cut;
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
    /// An error has the value as it was sent: as a float it would be another number.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = <&RawValue>::deserialize(deserializer)?.get();
        whole(sent).map(Self).ok_or_else(|| {
            let sent = cut(&sent);
            D::Error::custom(format_args!("invalid value: {sent}, expected a whole number"))
        })
    }
}

/// The whole number that a value of JSON is.
fn whole(sent: &str) -> Option<i128> {
    if let Ok(value) = sent.parse() {
        return Some(value);
    }
    // Rust reads words as floats, too, but no text of JSON.
    let value: f64 = sent.parse().ok()?;
    let is_exact = value.fract() == 0.0 && value.abs() < EXACT_MAX;
    is_exact.then_some(value as i128)
}

#[cfg(test)]
mod tests {
    use super::Whole;

    #[test]
    fn whole_numbers_in_any_form_are_read() {
        for (sent, expected) in
            [("7", 7), ("-0", 0), ("-4", -4), ("1e3", 1000), ("1000.0", 1000), ("2E+2", 200)]
        {
            let read = serde_json::from_str::<Whole>(sent).unwrap();
            assert_eq!(read.0, expected, "{sent}");
        }
    }

    #[test]
    fn another_value_is_printed_as_it_was_sent() {
        let (large, text) = ("9".repeat(39), format!("\"{}\"", "x".repeat(5000)));
        for sent in ["9007199254740993.0", "1.5", "1e999", "\"1\"", "true", "[1]", &large] {
            let error = serde_json::from_str::<Whole>(sent).err().unwrap().to_string();
            let expected = format!("invalid value: {sent}, expected a whole number");
            assert!(error.starts_with(&expected), "{error}");
        }
        let error = serde_json::from_str::<Whole>(&text).err().unwrap().to_string();
        assert!(error.len() < 1500 && error.ends_with("expected a whole number"), "{error}");
    }
}
