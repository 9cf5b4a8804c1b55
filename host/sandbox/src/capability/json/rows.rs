//! The rows of a tensor: the values that the objects of a list have at some keys.

use std::collections::HashMap;
use std::fmt;

use gristmill_core::Shape;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use super::elements::{Elements, ElementsTarget, Fault, Reading, Stopped, stopped};
use super::pointer::{Place, kind};

/// The values of a list of objects at `keys`: a row for each object.
pub(super) fn read(
    target: &ElementsTarget<'_>,
    value: &RawValue,
    keys: &[String],
) -> Result<Elements, Fault> {
    let place = target.place;
    if !value.get().starts_with('[') {
        return Err(Fault::Value(format!("{place} is {}, not a list", kind(value.get()))));
    }
    let mut rows = Rows {
        keys,
        numbers: keys.iter().enumerate().map(|(number, key)| (key.as_str(), number)).collect(),
        place,
        reading: Reading::new(target),
        widths: Vec::with_capacity(keys.len()),
        count: 0,
        fault: None,
    };
    let reader = &mut Deserializer::from_str(value.get());
    if let Err(error) = serde::Deserializer::deserialize_seq(reader, RowsVisitor(&mut rows)) {
        let other = || Fault::Value(format!("{place}: {error}"));
        return Err(rows.fault.unwrap_or_else(other));
    }
    // Without rows, a key counts as one number.
    let width = if rows.count == 0 { keys.len() } else { rows.widths.iter().sum() };
    let shape = Shape::from_slice(&[rows.count, width]);
    Ok(Elements { shape, bytes: rows.reading.bytes })
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
        self.reading.tick().map_err(|Stopped| {
            let fault = self.reading.fault(self.place.clone());
            self.stop(fault)
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
            object.map_err(|error| {
                let place = self.0.place.clone().index(self.0.count);
                let other = Fault::Value(format!("{place}: {error}"));
                let fault = self.0.fault.take().unwrap_or(other);
                self.0.stop::<A::Error>(fault)
            })?;
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
