//! The elements of a tensor, read from JSON: a value, lists of lists of values, or the values that
//! objects have at some keys.
//!
//! Refuses to know calls and limits; it asks whether it may go on.

use std::collections::HashMap;
use std::fmt;

use gristmill_core::{Dtype, Shape, push_text};
use half::{bf16, f16};
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::pointer::{Place, kind};
use crate::capability::tensors::DIMENSIONS_MAX;
use crate::meter::CpuExhausted;

/// The values that are read between two questions whether the work may go on.
const VALUES_PER_PART: u32 = 4096;

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

/// The bytes that the elements of `value` take at most.
pub(super) fn bytes_max(value: &RawValue, dtype: Dtype) -> usize {
    let text = value.get().as_bytes();
    let elements = memchr::memchr_iter(b',', text).count() + 1;
    match dtype.size_bytes() {
        Some(size) => elements * size,
        // A text is not longer than in JSON. Its length takes four bytes. Its quotes and a comma
        // are three.
        None => text.len() + 1 + elements,
    }
}

/// The elements of a value, or of lists of values.
pub(super) fn values(
    value: &RawValue,
    dtype: Dtype,
    place: &Place,
    may_go_on: &dyn Fn() -> Result<(), CpuExhausted>,
) -> Result<Elements, Fault> {
    let mut reading = Reading::new(dtype, bytes_max(value, dtype), may_go_on);
    reading.read(value, || place.clone())?;
    let shape = reading.lengths.iter().map(|length| length.unwrap_or(0)).collect();
    Ok(Elements { shape, bytes: reading.bytes })
}

/// The values of a list of objects at `keys`: a row for each object.
pub(super) fn rows(
    value: &RawValue,
    keys: &[String],
    dtype: Dtype,
    place: &Place,
    may_go_on: &dyn Fn() -> Result<(), CpuExhausted>,
) -> Result<Elements, Fault> {
    let mut rows = Rows {
        keys,
        numbers: keys.iter().enumerate().map(|(number, key)| (key.as_str(), number)).collect(),
        place,
        reading: Reading::new(dtype, bytes_max(value, dtype), may_go_on),
        widths: Vec::with_capacity(keys.len()),
        count: 0,
        fault: None,
    };
    let read = serde::Deserializer::deserialize_seq(
        &mut Deserializer::from_str(value.get()),
        RowsVisitor(&mut rows),
    );
    if read.is_err() {
        let why = || Fault::Value(format!("{place} is {}, not a list", kind(value.get())));
        return Err(rows.fault.unwrap_or_else(why));
    }
    // Without rows, a key counts as one number.
    let width = if rows.count == 0 { keys.len() } else { rows.widths.iter().sum() };
    Ok(Elements { shape: Shape::from_slice(&[rows.count, width]), bytes: rows.reading.bytes })
}

/// The elements that were read.
struct Reading<'a> {
    dtype: Dtype,
    bytes: Vec<u8>,
    /// The number of elements.
    count: usize,
    /// The lengths of the lists at each depth of the value under way. None while the first list is
    /// being read.
    lengths: Vec<Option<usize>>,
    /// Whether the value under way has an element.
    has_element: bool,
    /// The index of the value under way in each of the lists that it is in.
    indices: Vec<usize>,
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
    Range,
    NotInteger(f64),
    Depth,
    Exhausted(CpuExhausted),
}

/// The error that stops serde_json. What is wrong stands in `Reading::misfit`.
fn stopped<E: Error>() -> E {
    E::custom("stopped")
}

impl<'a> Reading<'a> {
    fn new(
        dtype: Dtype,
        bytes: usize,
        may_go_on: &'a dyn Fn() -> Result<(), CpuExhausted>,
    ) -> Self {
        Self {
            dtype,
            bytes: Vec::with_capacity(bytes),
            count: 0,
            lengths: Vec::new(),
            has_element: false,
            indices: Vec::new(),
            may_go_on,
            left: VALUES_PER_PART,
            misfit: None,
        }
    }

    /// Append the elements of one value, which stands at `place`.
    fn read(&mut self, value: &RawValue, place: impl FnOnce() -> Place) -> Result<(), Fault> {
        self.lengths.clear();
        self.indices.clear();
        self.has_element = false;
        let mut reader = Deserializer::from_str(value.get());
        let read = Values { reading: self, depth: 0 }.deserialize(&mut reader);
        read.map_err(|error| self.fault(place(), &error))
    }

    fn fault(&mut self, place: Place, error: &serde_json::Error) -> Fault {
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
            Some(Misfit::NotInteger(value)) => format!("{place} is {value:?}, not an integer"),
            Some(Misfit::Depth) => format!("{place} is over {DIMENSIONS_MAX} lists deep"),
            Some(Misfit::Range) => format!("{place} is out of {dtype}'s range"),
            // Its syntax was checked before. What is left are numbers that no float64 holds, and
            // halves of surrogate pairs.
            None => format!("{place}: {error}"),
        })
    }

    /// Count one more value.
    fn tick<E: Error>(&mut self) -> Result<(), E> {
        self.left -= 1;
        if self.left == 0 {
            self.left = VALUES_PER_PART;
            if let Err(exhausted) = (self.may_go_on)() {
                return Err(self.stop(Misfit::Exhausted(exhausted)));
            }
        }
        Ok(())
    }

    fn stop<E: Error>(&mut self, misfit: Misfit) -> E {
        self.misfit = Some(misfit);
        stopped()
    }

    /// An element at `depth` follows.
    fn element<E: Error>(&mut self, depth: usize, found: &'static str) -> Result<(), E> {
        self.tick()?;
        if depth != self.lengths.len() {
            return Err(self.stop(Misfit::Kind { found, wants_list: true }));
        }
        self.has_element = true;
        self.count += 1;
        Ok(())
    }

    fn integer<E: Error>(&mut self, value: i128) -> Result<(), E> {
        macro_rules! push {
            ($type:ty) => {
                match <$type>::try_from(value) {
                    Ok(value) => self.bytes.extend(value.to_le_bytes()),
                    Err(_) => return Err(self.stop(Misfit::Range)),
                }
            };
        }
        match self.dtype {
            Dtype::Uint8 => push!(u8),
            Dtype::Int8 => push!(i8),
            Dtype::Uint16 => push!(u16),
            Dtype::Int16 => push!(i16),
            Dtype::Uint32 => push!(u32),
            Dtype::Int32 => push!(i32),
            Dtype::Uint64 => push!(u64),
            Dtype::Int64 => push!(i64),
            _ => return self.float(value as f64),
        }
        Ok(())
    }

    fn float<E: Error>(&mut self, value: f64) -> Result<(), E> {
        macro_rules! push {
            ($value:expr) => {{
                let value = $value;
                if value.is_infinite() {
                    return Err(self.stop(Misfit::Range));
                }
                self.bytes.extend(value.to_le_bytes());
            }};
        }
        match self.dtype {
            Dtype::Float32 => push!(value as f32),
            Dtype::Float64 => push!(value),
            Dtype::Float16 => push!(f16::from_f64(value)),
            Dtype::Bfloat16 => push!(bf16::from_f64(value)),
            Dtype::Bool | Dtype::String => {
                return Err(self.stop(Misfit::Kind { found: "a number", wants_list: false }));
            }
            _ => return Err(self.stop(Misfit::NotInteger(value))),
        }
        Ok(())
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

/// Reads a value that stands in `depth` lists.
struct Values<'a, 'b> {
    reading: &'a mut Reading<'b>,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Values<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(element(self.reading.dtype))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { reading, depth } = self;
        reading.tick()?;
        if depth == reading.lengths.len() {
            if reading.has_element {
                return Err(reading.stop(Misfit::Kind { found: "a list", wants_list: false }));
            }
            if depth == DIMENSIONS_MAX {
                return Err(reading.stop(Misfit::Depth));
            }
            reading.lengths.push(None);
        }
        reading.indices.push(0);
        while seq.next_element_seed(Values { reading, depth: depth + 1 })?.is_some() {
            reading.indices[depth] += 1;
        }
        let found = reading.indices.pop().unwrap_or_default();
        match reading.lengths[depth] {
            None => reading.lengths[depth] = Some(found),
            Some(wanted) if wanted != found => {
                return Err(reading.stop(Misfit::Length { found, wanted }));
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.reading.element(self.depth, "a number")?;
        self.reading.integer(i128::from(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.reading.element(self.depth, "a number")?;
        self.reading.integer(i128::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.reading.element(self.depth, "a number")?;
        self.reading.float(value)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.reading.element(self.depth, "a boolean")?;
        if self.reading.dtype != Dtype::Bool {
            return Err(self.reading.stop(Misfit::Kind { found: "a boolean", wants_list: false }));
        }
        self.reading.bytes.push(value.into());
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.reading.element(self.depth, "a text")?;
        if self.reading.dtype != Dtype::String {
            return Err(self.reading.stop(Misfit::Kind { found: "a text", wants_list: false }));
        }
        push_text(&mut self.reading.bytes, value.as_bytes());
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Err(self.reading.stop(Misfit::Kind { found: "null", wants_list: false }))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.reading.stop(Misfit::Kind { found: "an object", wants_list: false }))
    }
}

/// The rows that were read.
struct Rows<'a> {
    keys: &'a [String],
    /// The place of each key among the keys.
    numbers: HashMap<&'a str, usize>,
    place: &'a Place,
    reading: Reading<'a>,
    /// The number of values at each key.
    widths: Vec<usize>,
    count: usize,
    fault: Option<Fault>,
}

impl Rows<'_> {
    /// Append a row of these values, which stand at the keys.
    fn append(&mut self, row: &[Option<&RawValue>]) -> Result<(), Fault> {
        for (number, (value, key)) in row.iter().zip(self.keys).enumerate() {
            let place = || self.place.clone().index(self.count).name(key);
            let Some(value) = value else {
                return Err(Fault::Value(format!("{} is missing", place())));
            };
            let before = self.reading.count;
            self.reading.read(value, place)?;
            if self.reading.lengths.len() > 1 {
                let place = place();
                return Err(Fault::Value(format!("{place} is a list of lists, not of values")));
            }
            let width = self.reading.count - before;
            match self.widths.get(number) {
                None => self.widths.push(width),
                Some(wanted) if *wanted != width => {
                    let place = place();
                    return Err(Fault::Value(format!(
                        "{place} has {width} values, not {wanted} as in the objects before it"
                    )));
                }
                Some(_) => {}
            }
        }
        self.count += 1;
        Ok(())
    }

    fn stop<E: Error>(&mut self, fault: Fault) -> E {
        self.fault = Some(fault);
        stopped()
    }

    /// Count one more value.
    fn tick<E: Error>(&mut self) -> Result<(), E> {
        self.reading.tick().map_err(|error| {
            self.fault = match self.reading.misfit.take() {
                Some(Misfit::Exhausted(exhausted)) => Some(Fault::Exhausted(exhausted)),
                _ => None,
            };
            error
        })
    }
}

struct RowsVisitor<'a, 'b>(&'a mut Rows<'b>);

impl<'de> Visitor<'de> for RowsVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(value) = seq.next_element::<&RawValue>()? {
            self.0.tick()?;
            if !value.get().starts_with('{') {
                let place = self.0.place.clone().index(self.0.count);
                let why = format!("{place} is {}, not an object", kind(value.get()));
                return Err(self.0.stop(Fault::Value(why)));
            }
            let object = serde::Deserializer::deserialize_map(
                &mut Deserializer::from_str(value.get()),
                Object(self.0),
            );
            object.map_err(|_| stopped::<A::Error>())?;
        }
        Ok(())
    }
}

/// Reads one object.
struct Object<'a, 'b>(&'a mut Rows<'b>);

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(rows) = self;
        let mut row = vec![None; rows.keys.len()];
        while let Some(number) = map.next_key_seed(NumberOf(&rows.numbers))? {
            let value = map.next_value::<&RawValue>()?;
            rows.tick()?;
            if let Some(number) = number {
                row[number] = Some(value);
            }
        }
        rows.append(&row).map_err(|fault| rows.stop(fault))
    }
}

/// Reads a name and finds its place among the keys.
struct NumberOf<'a>(&'a HashMap<&'a str, usize>);

impl<'de> DeserializeSeed<'de> for NumberOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NumberOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.get(name).copied())
    }
}

#[cfg(test)]
mod tests;
