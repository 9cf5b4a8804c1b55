//! The keys of objects.

use serde::de::{Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Declined;

/// A key without escapes. Only text is read from it: serde_json reads keys that are numbers.
pub(super) struct Key<'de>(pub(super) &'de str);

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Declined;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Declined> {
        Err(Declined)
    }

    fn deserialize_option<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Declined> {
        Err(Declined)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Declined> {
        Err(Declined)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Declined> {
        Err(Declined)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Declined> {
        Err(Declined)
    }

    // The visitor of a number refuses text, and so declines.
    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}
