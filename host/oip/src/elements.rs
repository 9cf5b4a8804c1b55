//! A tensor's elements in JSON: an array, flat or nested, of numbers, booleans or strings.

use std::fmt;

use bytes::Bytes;
use gristmill_core::{Dtype, TEXT_LENGTH_BYTES, Texts, push_text};
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::bounded::cut;
use crate::error::ParseError;
use crate::out::{Out, json};
use crate::room::Room;

/// The deepest nesting of arrays.
const DEPTH_MAX: usize = 32;

/// The input whose elements are read.
pub(crate) struct Expected<'a> {
    /// The input's name.
    pub(crate) name: &'a str,
    pub(crate) datatype: Dtype,
    pub(crate) shape: &'a [usize],
}

/// Read the elements of `data` into the bytes of a binary tensor. The memory is taken from `room`
/// before they are read.
///
/// # Errors
/// There are more elements than the shape needs, one is not of the datatype, JSON cannot hold the
/// datatype, or the elements do not fit into the room.
pub(crate) fn read(
    input: &Expected<'_>,
    data: &RawValue,
    room: &Room<'_>,
) -> Result<Bytes, ParseError> {
    let &Expected { name, datatype, shape } = input;
    if matches!(datatype, Dtype::Float16 | Dtype::Bfloat16) {
        return Err(ParseError::BinaryOnly { name: name.into(), datatype });
    }
    let expected = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    // An element takes at least two characters.
    let len = data.get().len();
    let most = expected.unwrap_or(usize::MAX).min(len / 2 + 1);
    let bytes = match datatype.size_bytes() {
        Some(size) => most.saturating_mul(size),
        // A text is not longer than in JSON. Its length takes four bytes, of which two are there
        // already: the quotes.
        None => len + 2 * most,
    };
    let mut reserved = room.reserve(name, bytes)?;
    let mut reader = Deserializer::from_str(data.get());
    let (mut left, bytes) = (most, &mut reserved.bytes);
    let elements = Elements { datatype, bytes, left: &mut left, depth: DEPTH_MAX };
    match elements.deserialize(&mut reader) {
        Ok(()) => Ok(reserved.into_bytes()),
        Err(error) => Err(ParseError::Data { name: name.into(), why: cut(&error) }),
    }
}

/// The bytes of a BYTES tensor with these texts.
pub fn from_texts<T: AsRef<[u8]>>(texts: &[T]) -> Vec<u8> {
    let mut bytes =
        Vec::with_capacity(texts.iter().map(|text| TEXT_LENGTH_BYTES + text.as_ref().len()).sum());
    texts.iter().for_each(|text| push_text(&mut bytes, text.as_ref()));
    bytes
}

/// Reads elements and appends them to `bytes`.
struct Elements<'a> {
    datatype: Dtype,
    bytes: &'a mut Vec<u8>,
    /// The number of elements that may still come.
    left: &'a mut usize,
    /// The number of arrays that may still be nested.
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Elements<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements, or arrays of them", self.datatype)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { datatype, bytes, left, depth } = self;
        if depth == 0 {
            return Err(A::Error::custom(format!("arrays are nested deeper than {DEPTH_MAX}")));
        }
        loop {
            let (bytes, left) = (&mut *bytes, &mut *left);
            let elements = Elements { datatype, bytes, left, depth: depth - 1 };
            if seq.next_element_seed(elements)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.count()?;
        if self.datatype != Dtype::Bool {
            return Err(E::custom(format!("{value} is not of datatype {}", self.datatype)));
        }
        self.bytes.push(value.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.integer(i128::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.integer(i128::from(value))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.count()?;
        match self.datatype {
            Dtype::Float32 if (value as f32).is_infinite() => {
                return Err(E::custom(format!("{value} is out of FP32's range")));
            }
            Dtype::Float32 => self.bytes.extend((value as f32).to_le_bytes()),
            Dtype::Float64 => self.bytes.extend(value.to_le_bytes()),
            other => return Err(E::custom(format!("{value} is not of datatype {other}"))),
        }
        Ok(())
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        self.count()?;
        if self.datatype != Dtype::String {
            let value: String = value.chars().take(80).collect();
            return Err(E::custom(format!("{value:?} is not of datatype {}", self.datatype)));
        }
        push_text(self.bytes, value.as_bytes());
        Ok(())
    }
}

impl Elements<'_> {
    /// Count one more element.
    fn count<E: Error>(&mut self) -> Result<(), E> {
        let more = || E::custom("more elements than the shape needs");
        *self.left = self.left.checked_sub(1).ok_or_else(more)?;
        Ok(())
    }

    fn integer<E: Error>(mut self, value: i128) -> Result<(), E> {
        self.count()?;
        let out_of_range =
            |datatype: Dtype| E::custom(format!("{value} is not of datatype {datatype}"));
        macro_rules! push {
            ($type:ty) => {
                match <$type>::try_from(value) {
                    Ok(value) => self.bytes.extend(value.to_le_bytes()),
                    Err(_) => return Err(out_of_range(self.datatype)),
                }
            };
        }
        match self.datatype {
            // Some clients write booleans as numbers.
            Dtype::Bool if (0..=1).contains(&value) => self.bytes.push(value as u8),
            Dtype::Uint8 => push!(u8),
            Dtype::Int8 => push!(i8),
            Dtype::Uint16 => push!(u16),
            Dtype::Int16 => push!(i16),
            Dtype::Uint32 => push!(u32),
            Dtype::Int32 => push!(i32),
            Dtype::Uint64 => push!(u64),
            Dtype::Int64 => push!(i64),
            Dtype::Float32 => self.bytes.extend((value as f32).to_le_bytes()),
            Dtype::Float64 => self.bytes.extend((value as f64).to_le_bytes()),
            Dtype::Bool | Dtype::Float16 | Dtype::Bfloat16 | Dtype::String => {
                return Err(out_of_range(self.datatype));
            }
        }
        Ok(())
    }
}

/// The number of elements that are written before their bytes are counted.
const COUNTED_ELEMENTS: usize = 4096;

/// The bytes of a text that are written before they are counted.
const COUNTED_TEXT_BYTES: usize = 64 << 10;

/// Write the elements in `bytes` as a flat JSON array.
///
/// # Errors
/// [`ParseError::NotJson`] for elements that JSON cannot hold, [`ParseError::OverBudget`] if the
/// budget has no room for the JSON.
pub(crate) fn write(
    out: &mut Out<'_>,
    name: &str,
    datatype: Dtype,
    bytes: &[u8],
) -> Result<(), ParseError> {
    let lost = |what: &'static str| ParseError::NotJson { name: name.into(), what };
    let mut separator = b'[';
    macro_rules! numbers {
        ($type:ty, $size:literal) => {
            for elements in bytes.as_chunks::<$size>().0.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    out.bytes.push(separator);
                    separator = b',';
                    json(&mut out.bytes, &<$type>::from_le_bytes(*element));
                }
                out.count()?;
            }
        };
    }
    macro_rules! floats {
        ($type:ty, $size:literal) => {
            for elements in bytes.as_chunks::<$size>().0.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    let value = <$type>::from_le_bytes(*element);
                    if !value.is_finite() {
                        return Err(lost("NaN or infinity"));
                    }
                    out.bytes.push(separator);
                    separator = b',';
                    json(&mut out.bytes, &value);
                }
                out.count()?;
            }
        };
    }
    match datatype {
        Dtype::Bool => {
            for elements in bytes.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    out.bytes.push(separator);
                    separator = b',';
                    json(&mut out.bytes, &(*element != 0));
                }
                out.count()?;
            }
        }
        Dtype::Uint8 => numbers!(u8, 1),
        Dtype::Int8 => numbers!(i8, 1),
        Dtype::Uint16 => numbers!(u16, 2),
        Dtype::Int16 => numbers!(i16, 2),
        Dtype::Uint32 => numbers!(u32, 4),
        Dtype::Int32 => numbers!(i32, 4),
        Dtype::Uint64 => numbers!(u64, 8),
        Dtype::Int64 => numbers!(i64, 8),
        Dtype::Float32 => floats!(f32, 4),
        Dtype::Float64 => floats!(f64, 8),
        Dtype::Float16 | Dtype::Bfloat16 => return Err(lost("16-bit floats")),
        Dtype::String => {
            for text in Texts::of(bytes) {
                let text = text.map_err(|_| lost("a cut text"))?;
                let text =
                    std::str::from_utf8(text).map_err(|_| lost("bytes that are not UTF-8"))?;
                out.bytes.push(separator);
                separator = b',';
                write_text(out, text)?;
            }
        }
    }
    if separator == b'[' {
        out.bytes.push(b'[');
    }
    out.bytes.push(b']');
    out.count()
}

/// Write a text. A long one is written in pieces, because JSON may make it six times as long.
fn write_text(out: &mut Out<'_>, text: &str) -> Result<(), ParseError> {
    if text.len() <= COUNTED_TEXT_BYTES {
        json(&mut out.bytes, &text);
        return out.count();
    }
    let (mut rest, mut quoted) = (text, Vec::new());
    out.bytes.push(b'"');
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(COUNTED_TEXT_BYTES));
        quoted.clear();
        json(&mut quoted, &piece);
        out.bytes.extend_from_slice(&quoted[1..quoted.len() - 1]);
        out.count()?;
        rest = after;
    }
    out.bytes.push(b'"');
    Ok(())
}
