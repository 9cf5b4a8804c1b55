//! A place in a JSON text, from which serde reads values.

use std::borrow::Cow;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::key::Key;
use super::number::{Number, leading, short_float};
use super::{Declined, declined, has_declined};

type SerdeJson<'de> = serde_json::Deserializer<serde_json::de::SliceRead<'de>>;

/// Lists and objects within each other: as many as serde_json reads.
const DEPTH_MAX: usize = 127;

/// serde_json's own types have names like this, and a way of reading of their own.
const SERDE_JSONS_OWN: &str = "$serde_json::private::";

/// The first bytes of numbers.
const NUMBER: &[u8] = b"-0123456789";

/// Types that serde_json reads only from JSON with these first bytes, also if their visitor would
/// take more.
macro_rules! only_from {
    ($($method:ident $first:expr),* $(,)?) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
                self.begins($first, visitor)
            }
        )*
    };
}

/// What a string needs.
enum Text<'de> {
    /// Its characters are those of the JSON.
    Plain(&'de str),
    /// It has escapes, or is wrong. This is the JSON, with its quotes.
    Escaped(&'de [u8]),
}

pub(super) struct Reader<'de> {
    json: &'de [u8],
    at: usize,
    depth: usize,
}

impl<'de> Reader<'de> {
    pub(super) fn new(json: &'de [u8]) -> Self {
        Self { json, at: 0, depth: 0 }
    }

    /// Whether only white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next byte that is not white space. It is not consumed.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.json.get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    #[inline]
    fn next_byte(&mut self) -> Result<u8, Declined> {
        self.peek().ok_or_else(declined)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Declined> {
        if self.next_byte()? != byte {
            return Err(declined());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Declined> {
        let rest = self.json.get(self.at..).ok_or_else(declined)?;
        if !rest.starts_with(word.as_bytes()) {
            return Err(declined());
        }
        self.at += word.len();
        Ok(())
    }

    /// The string whose first quote is here.
    fn text(&mut self) -> Result<Text<'de>, Declined> {
        let begin = self.at + 1;
        let rest = self.json.get(begin..).ok_or_else(declined)?;
        let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
        let length = rest.iter().position(special).ok_or_else(declined)?;
        if rest[length] == b'"' {
            self.at = begin + length + 1;
            let text = std::str::from_utf8(&rest[..length]).map_err(|_| declined())?;
            return Ok(Text::Plain(text));
        }
        // The quote that ends the string has no backslash before it that belongs to it.
        let mut at = begin + length;
        loop {
            match self.json.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err(declined()),
            }
        }
        let escaped = &self.json[self.at..=at];
        self.at = at + 1;
        Ok(Text::Escaped(escaped))
    }

    /// A number for a type that is a float. Lists of them are long, and most have a short form.
    #[inline]
    fn float<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Declined> {
        self.next_byte()?;
        match short_float(self.json, &mut self.at) {
            Some(value) => visitor.visit_f64(value),
            None => self.number(visitor),
        }
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Declined> {
        let rest = self.json.get(self.at..).ok_or_else(declined)?;
        if let Some((number, length)) = leading(rest) {
            self.at += length;
            return match number {
                Number::Unsigned(value) => visitor.visit_u64(value),
                Number::Negative(value) => visitor.visit_i64(value),
                Number::Float(value) => visitor.visit_f64(value),
            };
        }
        let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        slow(&rest[..length], |reader| reader.deserialize_any(visitor))
    }

    /// Read a value whose first byte is one of these.
    #[inline]
    fn begins<V: Visitor<'de>>(&mut self, first: &[u8], visitor: V) -> Result<V::Value, Declined> {
        if !first.contains(&self.next_byte()?) {
            return Err(declined());
        }
        self.deserialize_any(visitor)
    }

    /// The JSON of the next value, which is valid.
    fn value(&mut self) -> Result<&'de [u8], Declined> {
        self.next_byte()?;
        let begin = self.at;
        IgnoredAny::deserialize(&mut *self)?;
        Ok(&self.json[begin..self.at])
    }

    /// Read a list or an object, from its first byte to its `last` one.
    fn nested<T>(
        &mut self,
        last: u8,
        read: impl FnOnce(Elements<'_, 'de>) -> Result<T, Declined>,
    ) -> Result<T, Declined> {
        if self.depth == DEPTH_MAX {
            return Err(declined());
        }
        self.at += 1;
        self.depth += 1;
        // After an error serde_json would still look for the end.
        let value =
            read(Elements { reader: self, last, is_first: true }).map_err(|_| declined())?;
        self.depth -= 1;
        self.expect(last)?;
        Ok(value)
    }
}

/// What serde_json reads from a part, all of it.
fn slow<'de, T>(
    part: &'de [u8],
    read: impl FnOnce(&mut SerdeJson<'de>) -> serde_json::Result<T>,
) -> Result<T, Declined> {
    let mut reader = SerdeJson::from_slice(part);
    let value = read(&mut reader).map_err(|_| declined())?;
    reader.end().map_err(|_| declined())?;
    Ok(value)
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = Declined;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        match self.next_byte()? {
            b'"' => match self.text()? {
                Text::Plain(text) => visitor.visit_borrowed_str(text),
                Text::Escaped(json) => slow(json, |reader| reader.deserialize_any(visitor)),
            },
            b'-' | b'0'..=b'9' => self.number(visitor),
            b'[' => self.nested(b']', |elements| visitor.visit_seq(elements)),
            b'{' => self.nested(b'}', |elements| visitor.visit_map(elements)),
            b't' => {
                self.word("true")?;
                visitor.visit_bool(true)
            }
            b'f' => {
                self.word("false")?;
                visitor.visit_bool(false)
            }
            b'n' => {
                self.word("null")?;
                visitor.visit_unit()
            }
            _ => Err(declined()),
        }
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        self.float(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        self.float(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        if self.next_byte()? == b'n' {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        if name.starts_with(SERDE_JSONS_OWN) {
            let json = self.value()?;
            return slow(json, |reader| reader.deserialize_newtype_struct(name, visitor));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Declined> {
        slow(self.value()?, |reader| reader.deserialize_enum(name, variants, visitor))
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        slow(self.value()?, |reader| reader.deserialize_bytes(visitor))
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        slow(self.value()?, |reader| reader.deserialize_i128(visitor))
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        slow(self.value()?, |reader| reader.deserialize_u128(visitor))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        self.begins(b"n", visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        self.begins(b"[", visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Declined> {
        self.begins(b"[", visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Declined> {
        self.begins(b"[{", visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Declined> {
        self.deserialize_any(IgnoredAny)?;
        visitor.visit_unit()
    }

    only_from! {
        deserialize_bool b"tf", deserialize_unit b"n", deserialize_seq b"[", deserialize_map b"{",
        deserialize_char b"\"", deserialize_str b"\"", deserialize_string b"\"",
        deserialize_identifier b"\"", deserialize_i8 NUMBER, deserialize_i16 NUMBER,
        deserialize_i32 NUMBER, deserialize_i64 NUMBER, deserialize_u8 NUMBER,
        deserialize_u16 NUMBER, deserialize_u32 NUMBER, deserialize_u64 NUMBER,
    }
}

/// The elements of a list, or the members of an object, that are not yet read.
struct Elements<'a, 'de> {
    reader: &'a mut Reader<'de>,
    last: u8,
    is_first: bool,
}

impl Elements<'_, '_> {
    /// Go on to the next element. Returns whether there is one.
    fn advance(&mut self) -> Result<bool, Declined> {
        // A visitor that goes on after an error comes to an end.
        if has_declined() || self.reader.next_byte()? == self.last {
            return Ok(false);
        }
        if !self.is_first {
            self.reader.expect(b',')?;
            if self.reader.next_byte()? == self.last {
                return Err(declined());
            }
        }
        self.is_first = false;
        Ok(true)
    }
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = Declined;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Declined> {
        if !self.advance()? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

impl<'de> MapAccess<'de> for Elements<'_, 'de> {
    type Error = Declined;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Declined> {
        if !self.advance()? {
            return Ok(None);
        }
        if self.reader.next_byte()? != b'"' {
            return Err(declined());
        }
        let key = match self.reader.text()? {
            Text::Plain(text) => Cow::Borrowed(text),
            Text::Escaped(json) => Cow::Owned(slow(json, |reader| String::deserialize(reader))?),
        };
        seed.deserialize(Key(key)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Declined> {
        self.reader.expect(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}
