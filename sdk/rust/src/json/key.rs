//! The keys of objects.

use std::borrow::Cow;

use serde::de::{Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{Declined, declined};

/// A key, borrowed if it has no escapes. Only text is read from it: serde_json reads keys that are
/// numbers.
pub(super) struct Key<'de>(pub(super) Cow<'de, str>);

/// Types that serde_json does not read from a key as it is.
macro_rules! declined {
    ($($method:ident)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Declined> {
                Err(declined())
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Key<'de> {
    type Error = Declined;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_str(&text),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Declined> {
        Err(declined())
    }

    declined! {
        deserialize_bool deserialize_option deserialize_bytes deserialize_byte_buf deserialize_i8
        deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32
        deserialize_f64
    }

    forward_to_deserialize_any! {
        char str string unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}
