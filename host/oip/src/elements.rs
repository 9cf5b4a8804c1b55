//! A tensor's elements in JSON: an array, flat or nested, of numbers, booleans or strings. `write`
//! writes them.

mod write;

use std::fmt;

use bytes::Bytes;
use gristmill_core::{Dtype, TEXT_LENGTH_BYTES, json_token, push_text};
use serde::de::{DeserializeSeed, Error, IgnoredAny, SeqAccess, Visitor};
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

/// The lists in which elements may stand.
#[derive(Clone, Copy)]
pub(crate) enum Lists<'a> {
    /// Any, at most so deep.
    Any(usize),
    /// Lists of exactly these sizes, each within the one before.
    Sizes(&'a [usize]),
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
    let mut reserved = room.reserve(name, bytes_max(datatype, shape, data))?;
    let (lists, most) = (Lists::Any(DEPTH_MAX), count_max(shape, data));
    match append(datatype, lists, most, data, &mut reserved.bytes) {
        Ok(()) => Ok(reserved.into_bytes()),
        Err(why) => Err(ParseError::Data { name: name.into(), why }),
    }
}

/// Maximum elements of this shape in `data`, where each takes at least two characters.
pub(crate) fn count_max(shape: &[usize], data: &RawValue) -> usize {
    let expected = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
    expected.unwrap_or(usize::MAX).min(data.get().len() / 2 + 1)
}

/// Maximum bytes of the elements of this shape in `data`.
pub(crate) fn bytes_max(datatype: Dtype, shape: &[usize], data: &RawValue) -> usize {
    let most = count_max(shape, data);
    match datatype.size_bytes() {
        Some(size) => most.saturating_mul(size),
        // A text is not longer than in JSON. Its length takes four bytes, of which two are there
        // already: the quotes.
        None => data.get().len() + 2 * most,
    }
}

/// Append the elements of `data` to `bytes`.
///
/// # Errors
/// What is wrong: there are more than `most`, the lists are others, or an element is not of the
/// datatype.
pub(crate) fn append(
    datatype: Dtype,
    lists: Lists<'_>,
    most: usize,
    data: &RawValue,
    bytes: &mut Vec<u8>,
) -> Result<(), String> {
    let mut reader = Deserializer::from_str(data.get());
    let mut reading = Reading { datatype, bytes, left: most, misfit: None };
    let read = Elements { reading: &mut reading, lists }.deserialize(&mut reader);
    let misfit = reading.misfit;
    read.map_err(|error| why(datatype, data.get(), misfit, &error))
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
    lists: Lists<'a>,
}

impl Lists<'_> {
    /// The size of a list that stands here, if it must have one, and the lists in it. The error
    /// says why none may stand here.
    fn inner(self) -> Result<(Option<usize>, Self), String> {
        match self {
            Self::Any(0) => Err(format!("arrays are nested deeper than {DEPTH_MAX}")),
            Self::Any(depth) => Ok((None, Self::Any(depth - 1))),
            Self::Sizes([]) => Err("a list stands in place of one value".into()),
            Self::Sizes([size, rest @ ..]) => Ok((Some(*size), Self::Sizes(rest))),
        }
    }
}

impl<'a, 'b> Elements<'a, 'b> {
    /// Count the element that stands here. Returns where it is read.
    fn element<E: Error>(self) -> Result<&'a mut Reading<'b>, E> {
        let Self { reading, lists } = self;
        if let Lists::Sizes([size, ..]) = lists {
            return Err(E::custom(format!("one value stands in place of a list of {size}")));
        }
        let more = || E::custom("more elements than the shape needs");
        reading.left = reading.left.checked_sub(1).ok_or_else(more)?;
        Ok(reading)
    }
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
        let Self { reading, lists } = self;
        let (size, inner) = lists.inner().map_err(A::Error::custom)?;
        let mut count = 0;
        loop {
            if size == Some(count) {
                let more = || A::Error::custom(format!("a list has more than {count} values"));
                return seq.next_element::<IgnoredAny>()?.map_or(Ok(()), |_| Err(more()));
            }
            let elements = Elements { reading: &mut *reading, lists: inner };
            if seq.next_element_seed(elements)?.is_none() {
                let fewer = |size| format!("a list has {count} values: it must have {size}");
                return size.map_or(Ok(()), |size| Err(A::Error::custom(fewer(size))));
            }
            count += 1;
        }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        let reading = self.element::<E>()?;
        let datatype = reading.datatype;
        if datatype != Dtype::Bool {
            return Err(E::custom(format!("{value} is not of datatype {datatype}")));
        }
        reading.bytes.push(value.into());
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.element::<E>()?.integer(i128::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.element::<E>()?.integer(i128::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let reading = self.element::<E>()?;
        match reading.datatype {
            Dtype::Float32 if (value as f32).is_infinite() => {
                return Err(reading.misfit(Misfit::Range));
            }
            Dtype::Float32 => reading.bytes.extend((value as f32).to_le_bytes()),
            Dtype::Float64 => reading.bytes.extend(value.to_le_bytes()),
            // serde_json reads -0 as a number with a fraction.
            _ if value == 0.0 && value.is_sign_negative() => return reading.integer(0),
            _ => return Err(reading.misfit(Misfit::Kind)),
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let reading = self.element::<E>()?;
        let datatype = reading.datatype;
        if datatype != Dtype::String {
            let value: String = value.chars().take(80).collect();
            return Err(E::custom(format!("{value:?} is not of datatype {datatype}")));
        }
        push_text(reading.bytes, value.as_bytes());
        Ok(())
    }

    /// JavaScript writes a number that JSON does not have as null.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        let datatype = self.reading.datatype;
        let cure = match (datatype, self.lists) {
            (Dtype::Float32 | Dtype::Float64, Lists::Any(_)) => {
                ": NaN and infinity can be sent as binary data only"
            }
            (Dtype::Float32 | Dtype::Float64, Lists::Sizes(_)) => {
                ": JSON has neither NaN nor infinity"
            }
            _ => "",
        };
        Err(E::custom(format!("null is not of datatype {datatype}{cure}")))
    }
}

impl Reading<'_> {
    /// The error of a number that does not fit.
    fn misfit<E: Error>(&mut self, misfit: Misfit) -> E {
        self.misfit = Some(misfit);
        E::custom("a number does not fit")
    }

    fn integer<E: Error>(&mut self, value: i128) -> Result<(), E> {
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
