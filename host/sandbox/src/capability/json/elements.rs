//! The elements of a tensor, read from JSON: a value, or lists of lists of values. `rows` reads
//! objects.
//!
//! Refuses to know calls and limits; it asks whether it may go on.

use std::borrow::Cow;
use std::fmt;

use gristmill_core::{Dtype, Shape, TEXT_LENGTH_BYTES, push_text};
use half::{bf16, f16};
use serde::de::{Error, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::pointer::{Place, Shown, kind};
use crate::capability::tensors::DIMENSIONS_MAX;
use crate::meter::CpuExhausted;

/// The values that are read between two questions whether the work may go on.
const VALUES_PER_PART: u32 = 4096;

/// A list of more bytes is asked for by itself: to find its end takes long.
const ASKED_BYTES: usize = 256 << 10;

/// Elements, and their tensor's shape.
#[derive(Debug, PartialEq)]
pub(super) struct Elements {
    pub(super) shape: Shape,
    pub(super) bytes: Vec<u8>,
}

/// Why there are no elements.
#[derive(Debug)]
pub(super) enum Fault {
    /// The value is not what was asked for. Says why, in words for the client.
    Value(String),
    Exhausted(CpuExhausted),
}

/// What is read into.
pub(super) struct ElementsTarget<'a> {
    pub(super) dtype: Dtype,
    /// Maximum bytes of the elements.
    pub(super) limit: usize,
    /// The bytes that are taken for them at once: their [`bytes_max`].
    pub(super) capacity: usize,
    /// Where the value stands.
    pub(super) place: &'a Place,
    pub(super) may_go_on: &'a dyn Fn() -> Result<(), CpuExhausted>,
}

/// The bytes that the elements of `value` take at most, if `limit` bytes are allowed.
pub(super) fn bytes_max(value: &RawValue, dtype: Dtype, limit: usize) -> usize {
    let text = value.get().as_bytes();
    let elements = memchr::memchr_iter(b',', text).count() + 1;
    let bytes = match dtype.size_bytes() {
        Some(size) => elements * size,
        // A text is not longer than in JSON. Its length takes four bytes. Its quotes and a comma
        // are three.
        None => text.len() + 1 + elements,
    };
    bytes.min(limit)
}

impl ElementsTarget<'_> {
    /// The elements of a value, or of lists of values.
    pub(super) fn values(&self, value: &RawValue) -> Result<Elements, Fault> {
        let mut reading = Reading::new(self);
        reading.read(value, || self.place.clone())?;
        let shape = reading.lengths.iter().map(|length| length.unwrap_or(0)).collect();
        Ok(Elements { shape, bytes: reading.bytes })
    }
}

/// The elements that were read.
pub(super) struct Reading<'a> {
    dtype: Dtype,
    pub(super) bytes: Vec<u8>,
    /// The number of elements.
    pub(super) count: usize,
    /// The lengths of the lists at each depth of the value under way. None while the first list is
    /// being read.
    pub(super) lengths: Vec<Option<usize>>,
    /// Whether the value under way has an element.
    has_element: bool,
    /// The index of the value under way in each of the lists that it is in.
    indices: Vec<usize>,
    limit: usize,
    may_go_on: &'a dyn Fn() -> Result<(), CpuExhausted>,
    /// The values that may be read before the question whether to go on.
    left: u32,
    misfit: Option<Misfit>,
}

/// What is wrong with a value.
enum Misfit {
    /// It is this in place of an element, or of a list if there is one at its depth elsewhere.
    Kind {
        found: &'static str,
        wants_list: bool,
    },
    Length {
        found: usize,
        wanted: usize,
    },
    /// A number as it was sent.
    NotInteger(String),
    /// A number as it was sent.
    Range(String),
    Depth,
    TooLarge(usize),
    /// Half of a surrogate pair.
    Text(String),
    Exhausted(CpuExhausted),
}

/// Reading ends. What is wrong stands in `Reading::misfit`.
pub(super) struct Stopped;

/// The error that stops serde_json.
pub(super) fn stopped<E: Error>() -> E {
    E::custom("stopped")
}

impl<'a> Reading<'a> {
    pub(super) fn new(target: &ElementsTarget<'a>) -> Self {
        let ElementsTarget { dtype, limit, capacity, may_go_on, .. } = *target;
        Self {
            dtype,
            bytes: Vec::with_capacity(capacity),
            count: 0,
            lengths: Vec::new(),
            has_element: false,
            indices: Vec::new(),
            limit,
            may_go_on,
            left: VALUES_PER_PART,
            misfit: None,
        }
    }

    /// Append the elements of one value, which stands at `place`.
    pub(super) fn read(
        &mut self,
        value: &RawValue,
        place: impl FnOnce() -> Place,
    ) -> Result<(), Fault> {
        self.lengths.clear();
        self.indices.clear();
        self.has_element = false;
        self.value(value, 0).map_err(|Stopped| self.fault(place()))
    }

    pub(super) fn fault(&mut self, place: Place) -> Fault {
        let place = self.indices.iter().fold(place, |place, index| place.index(*index));
        let dtype = self.dtype;
        Fault::Value(match self.misfit.take() {
            Some(Misfit::Exhausted(exhausted)) => return Fault::Exhausted(exhausted),
            Some(Misfit::Kind { found, wants_list: true }) => {
                format!("{place} is {found}, not a list as the values before it")
            }
            Some(Misfit::Kind { found, .. }) => {
                format!("{place} is {found}, not {}", element(dtype))
            }
            Some(Misfit::Length { found, wanted }) => {
                format!("{place} has {found} values, not {wanted} as the lists before it")
            }
            Some(Misfit::NotInteger(sent)) => format!("{place} is {sent}, not an integer"),
            Some(Misfit::Depth) => format!("{place} is over {DIMENSIONS_MAX} lists deep"),
            Some(Misfit::Range(sent)) => format!("{place} is out of {dtype}'s range: {sent}"),
            Some(Misfit::TooLarge(limit)) => {
                format!("the values are over the limit of {limit} bytes for one tensor")
            }
            Some(Misfit::Text(why)) => format!("{place}: {why}"),
            None => format!("{place} cannot be read"),
        })
    }

    /// Count one more value.
    pub(super) fn tick(&mut self) -> Result<(), Stopped> {
        self.left -= 1;
        if self.left == 0 {
            self.left = VALUES_PER_PART;
            self.ask()?;
        }
        Ok(())
    }

    /// Ask whether the work may go on.
    fn ask(&mut self) -> Result<(), Stopped> {
        (self.may_go_on)().map_err(|exhausted| self.stop(Misfit::Exhausted(exhausted)))
    }

    fn stop(&mut self, misfit: Misfit) -> Stopped {
        self.misfit = Some(misfit);
        Stopped
    }

    /// The value is not an element.
    fn other(&mut self, found: &'static str) -> Stopped {
        self.stop(Misfit::Kind { found, wants_list: false })
    }

    /// Append a value that stands in `depth` lists.
    fn value(&mut self, value: &RawValue, depth: usize) -> Result<(), Stopped> {
        let (value, found) = (value.get(), kind(value.get()));
        match value.as_bytes().first() {
            Some(b'[') => return self.list(value, depth),
            Some(b'{' | b'n') => return Err(self.other(found)),
            _ => self.tick()?,
        }
        if depth != self.lengths.len() {
            return Err(self.stop(Misfit::Kind { found, wants_list: true }));
        }
        self.has_element = true;
        self.count += 1;
        match (value.as_bytes().first(), self.dtype) {
            (Some(b't' | b'f'), Dtype::Bool) => self.push([u8::from(value == "true")]),
            (Some(b'"'), Dtype::String) => self.text(value),
            (Some(b't' | b'f' | b'"'), _) | (_, Dtype::Bool | Dtype::String) => {
                Err(self.other(found))
            }
            _ => self.number(value),
        }
    }

    fn list(&mut self, value: &str, depth: usize) -> Result<(), Stopped> {
        self.tick()?;
        if value.len() > ASKED_BYTES {
            self.ask()?;
        }
        if depth == self.lengths.len() {
            if self.has_element {
                return Err(self.other("a list"));
            }
            if depth == DIMENSIONS_MAX {
                return Err(self.stop(Misfit::Depth));
            }
            self.lengths.push(None);
        }
        self.indices.push(0);
        let values = Values { reading: self, depth };
        let reader = &mut Deserializer::from_str(value);
        serde::Deserializer::deserialize_seq(reader, values).map_err(|_| Stopped)?;
        let found = self.indices.pop().unwrap_or_default();
        match self.lengths[depth] {
            None => self.lengths[depth] = Some(found),
            Some(wanted) if wanted != found => {
                return Err(self.stop(Misfit::Length { found, wanted }));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn room(&mut self, bytes: usize) -> Result<(), Stopped> {
        if self.bytes.len() + bytes > self.limit {
            return Err(self.stop(Misfit::TooLarge(self.limit)));
        }
        Ok(())
    }

    fn push<const N: usize>(&mut self, element: [u8; N]) -> Result<(), Stopped> {
        self.room(N)?;
        self.bytes.extend(element);
        Ok(())
    }

    fn text(&mut self, value: &str) -> Result<(), Stopped> {
        let text = match serde_json::from_str::<Text<'_>>(value) {
            Ok(Text(text)) => text,
            Err(error) => return Err(self.stop(Misfit::Text(error.to_string()))),
        };
        self.room(TEXT_LENGTH_BYTES + text.len())?;
        push_text(&mut self.bytes, text.as_bytes());
        Ok(())
    }

    /// A number as it was sent. Rust reads it as exactly as its type can; serde_json would read
    /// floats to a last digit that may differ, and large integers as floats.
    fn number(&mut self, sent: &str) -> Result<(), Stopped> {
        let shown = || Shown(sent).to_string();
        macro_rules! integer {
            ($type:ty) => {
                match sent.parse::<$type>() {
                    Ok(value) => self.push(value.to_le_bytes()),
                    Err(_) if sent == "-0" => self.push([0; size_of::<$type>()]),
                    Err(_) if sent.contains(['.', 'e', 'E']) => {
                        Err(self.stop(Misfit::NotInteger(shown())))
                    }
                    Err(_) => Err(self.stop(Misfit::Range(shown()))),
                }
            };
        }
        // A number of JSON is one of Rust's.
        macro_rules! float {
            ($type:ty, $value:expr) => {{
                let value: $type = ($value)(sent.parse().unwrap_or(f64::INFINITY as _));
                match value.is_finite() {
                    true => self.push(value.to_le_bytes()),
                    false => Err(self.stop(Misfit::Range(shown()))),
                }
            }};
        }
        match self.dtype {
            Dtype::Uint8 => integer!(u8),
            Dtype::Int8 => integer!(i8),
            Dtype::Uint16 => integer!(u16),
            Dtype::Int16 => integer!(i16),
            Dtype::Uint32 => integer!(u32),
            Dtype::Int32 => integer!(i32),
            Dtype::Uint64 => integer!(u64),
            Dtype::Int64 => integer!(i64),
            Dtype::Float16 => float!(f16, f16::from_f64),
            Dtype::Bfloat16 => float!(bf16, bf16::from_f64),
            Dtype::Float32 => float!(f32, |value: f32| value),
            Dtype::Float64 => float!(f64, |value: f64| value),
            Dtype::Bool | Dtype::String => Err(self.other("a number")),
        }
    }
}

/// What an element of the dtype is, in words.
fn element(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::Bool => "true or false",
        Dtype::String => "a text",
        _ => "a number",
    }
}

/// Reads the values of a list that stands in `depth` lists.
struct Values<'a, 'b> {
    reading: &'a mut Reading<'b>,
    depth: usize,
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { reading, depth } = self;
        while let Some(value) = seq.next_element::<&RawValue>()? {
            reading.value(value, depth + 1).map_err(|Stopped| stopped::<A::Error>())?;
            reading.indices[depth] += 1;
        }
        Ok(())
    }
}

/// A text, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests;
