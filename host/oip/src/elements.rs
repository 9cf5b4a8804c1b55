//! A tensor's elements in JSON: an array, flat or nested, of numbers, booleans or strings. `write`
//! writes them.

mod write;

use std::fmt;

use bytes::Bytes;
use gristmill_core::{Dtype, TEXT_LENGTH_BYTES, json_token, push_text};
use serde::de::{DeserializeSeed, Error, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::bounded::cut;
use crate::error::ParseError;
use crate::room::Room;

pub(crate) use self::write::write;

/// The deepest nesting of arrays. serde_json reads 127 levels.
const DEPTH_MAX: usize = 100;

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
    let mut reading = Reading { datatype, bytes: &mut reserved.bytes, left: most, misfit: None };
    let elements = Elements { reading: &mut reading, depth: DEPTH_MAX };
    let read = elements.deserialize(&mut reader);
    let misfit = reading.misfit;
    match read {
        Ok(()) => Ok(reserved.into_bytes()),
        Err(error) => {
            let why = why(datatype, data.get(), misfit, &error);
            Err(ParseError::Data { name: name.into(), why })
        }
    }
}

/// Why a number does not fit a datatype.
#[derive(Clone, Copy)]
enum Misfit {
    Kind,
    Range,
}

/// The fault of the elements in `data`. A number that does not fit is named as it was sent, because
/// its value may be another one.
fn why(datatype: Dtype, data: &str, misfit: Option<Misfit>, error: &serde_json::Error) -> String {
    let sent = json_token(data.as_bytes(), error.line(), error.column());
    let is_number = sent.starts_with(|char: char| char == '-' || char.is_ascii_digit());
    match misfit {
        Some(Misfit::Kind) => format!("{} is not of datatype {datatype}", cut(&sent)),
        Some(Misfit::Range) => format!("{} is out of {datatype}'s range", cut(&sent)),
        // The reader knows no larger number than FP64 has.
        None if error.is_syntax() && is_number => {
            format!("{} is out of FP64's range", cut(&sent))
        }
        None => cut(error),
    }
}

/// The bytes of a BYTES tensor with these texts.
pub fn from_texts<T: AsRef<[u8]>>(texts: &[T]) -> Vec<u8> {
    let mut bytes =
        Vec::with_capacity(texts.iter().map(|text| TEXT_LENGTH_BYTES + text.as_ref().len()).sum());
    texts.iter().for_each(|text| push_text(&mut bytes, text.as_ref()));
    bytes
}

/// The elements that were read, and their end.
struct Reading<'a> {
    datatype: Dtype,
    bytes: &'a mut Vec<u8>,
    /// The number of elements that may still come.
    left: usize,
    /// Set if a number did not fit.
    misfit: Option<Misfit>,
}

/// Reads elements and appends them to the bytes.
struct Elements<'a, 'b> {
    reading: &'a mut Reading<'b>,
    /// The number of arrays that may still be nested.
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Elements<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Elements<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements, or arrays of them", self.reading.datatype)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { reading, depth } = self;
        if depth == 0 {
            return Err(A::Error::custom(format!("arrays are nested deeper than {DEPTH_MAX}")));
        }
        loop {
            let elements = Elements { reading: &mut *reading, depth: depth - 1 };
            if seq.next_element_seed(elements)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.reading.count()?;
        let datatype = self.reading.datatype;
        if datatype != Dtype::Bool {
            return Err(E::custom(format!("{value} is not of datatype {datatype}")));
        }
        self.reading.bytes.push(value.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.reading.integer(i128::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.reading.integer(i128::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let Self { reading, .. } = self;
        reading.count()?;
        match reading.datatype {
            Dtype::Float32 if (value as f32).is_infinite() => {
                return Err(reading.misfit(Misfit::Range));
            }
            Dtype::Float32 => reading.bytes.extend((value as f32).to_le_bytes()),
            Dtype::Float64 => reading.bytes.extend(value.to_le_bytes()),
            _ => return Err(reading.misfit(Misfit::Kind)),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.reading.count()?;
        let datatype = self.reading.datatype;
        if datatype != Dtype::String {
            let value: String = value.chars().take(80).collect();
            return Err(E::custom(format!("{value:?} is not of datatype {datatype}")));
        }
        push_text(self.reading.bytes, value.as_bytes());
        Ok(())
    }

    /// JavaScript writes a number that JSON does not have as null.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        let datatype = self.reading.datatype;
        let cure = match datatype {
            Dtype::Float32 | Dtype::Float64 => ": NaN and infinity can be sent as binary data only",
            _ => "",
        };
        Err(E::custom(format!("null is not of datatype {datatype}{cure}")))
    }
}

impl Reading<'_> {
    /// Count one more element.
    fn count<E: Error>(&mut self) -> Result<(), E> {
        let more = || E::custom("more elements than the shape needs");
        self.left = self.left.checked_sub(1).ok_or_else(more)?;
        Ok(())
    }

    /// The error of a number that does not fit.
    fn misfit<E: Error>(&mut self, misfit: Misfit) -> E {
        self.misfit = Some(misfit);
        E::custom("a number does not fit")
    }

    fn integer<E: Error>(&mut self, value: i128) -> Result<(), E> {
        self.count()?;
        macro_rules! push {
            ($type:ty) => {
                match <$type>::try_from(value) {
                    Ok(value) => self.bytes.extend(value.to_le_bytes()),
                    Err(_) => return Err(self.misfit(Misfit::Kind)),
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
                return Err(self.misfit(Misfit::Kind));
            }
        }
        Ok(())
    }
}
