//! A value of any JSON document as one row of a tensor.

use std::fmt;

use bytes::Bytes;
use gristmill_core::Dtype;
use serde::de::{Deserializer as _, Error, SeqAccess, Visitor};
use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::elements::{self, Expected};
use crate::error::ParseError;
use crate::room::Room;

/// The characters of a value that a message shows.
const SHOWN_MAX: usize = 60;

/// The row that a value must be.
#[derive(Clone, Copy, Debug)]
pub struct RowValue<'a> {
    /// The tensor's name.
    pub name: &'a str,
    /// Its datatype.
    pub datatype: Dtype,
    /// The sizes of the row: lists within lists. Without sizes it is one value.
    pub dims: &'a [usize],
}

/// The reason why a value is not the row that it must be.
#[derive(Debug)]
pub enum ValueFault {
    /// What is wrong with the value.
    Value(String),
    /// There is no room for its elements.
    Room(ParseError),
}

impl RowValue<'_> {
    /// The bytes of the row's elements, whose memory is taken from `room` before they are read.
    ///
    /// # Errors
    /// The value has other lists, an element is not of the datatype, or there is no room.
    pub fn read(&self, value: &RawValue, room: &Room<'_>) -> Result<Bytes, ValueFault> {
        let &Self { name, datatype, dims } = self;
        check_lists(value, dims).map_err(ValueFault::Value)?;
        if value.get() == "null" {
            return Err(ValueFault::Value(format!("null is not of datatype {datatype}")));
        }
        let expected = Expected { name, datatype, shape: dims };
        elements::read(&expected, value, room).map_err(|error| match error {
            ParseError::Data { why, .. } => ValueFault::Value(why),
            error => ValueFault::Room(error),
        })
    }
}

/// Check that the value is lists of exactly these sizes.
fn check_lists(value: &RawValue, dims: &[usize]) -> Result<(), String> {
    let is_list = value.get().starts_with('[');
    if value.get().starts_with('{') {
        return Err(format!("{} is an object, where values must be", shown(value)));
    }
    match dims {
        [] if is_list => Err(format!("{} is a list, where one value must be", shown(value))),
        [] => Ok(()),
        [size, ..] if !is_list => {
            Err(format!("{} is not a list, where one of {size} must be", shown(value)))
        }
        [size, rest @ ..] => {
            let mut fault = None;
            let items = Items { size: *size, rest, fault: &mut fault };
            let mut reader = Deserializer::from_str(value.get());
            reader
                .deserialize_seq(items)
                .map_err(|error| fault.unwrap_or_else(|| error.to_string()))
        }
    }
}

/// Reads a list, and checks each of its items.
struct Items<'a> {
    size: usize,
    rest: &'a [usize],
    fault: &'a mut Option<String>,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.size)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { size, rest, fault } = self;
        let mut count = 0;
        let wrong = loop {
            let Some(item) = seq.next_element::<&RawValue>()? else {
                if count == size {
                    return Ok(());
                }
                break format!("a list has {count} values: it must have {size}");
            };
            if count == size {
                break format!("a list has more than {size} values");
            }
            if let Err(why) = check_lists(item, rest) {
                break why;
            }
            count += 1;
        };
        *fault = Some(wrong);
        Err(A::Error::custom("another list"))
    }
}

/// The beginning of a value.
fn shown(value: &RawValue) -> String {
    let text = value.get();
    match text.char_indices().nth(SHOWN_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}..", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::ByteBudget;

    use super::*;

    fn row(datatype: Dtype, dims: &[usize], value: &str) -> Result<Vec<u8>, String> {
        let value: &RawValue = serde_json::from_str(value).unwrap();
        let read = RowValue { name: "X", datatype, dims }.read(value, &Room::default());
        read.map(|bytes| bytes.to_vec()).map_err(|fault| match fault {
            ValueFault::Value(why) => why,
            ValueFault::Room(error) => error.to_string(),
        })
    }

    #[test]
    fn one_value_and_lists_of_the_sizes_are_read() {
        assert_eq!(row(Dtype::Float32, &[], "0.5").unwrap(), 0.5_f32.to_le_bytes());
        assert_eq!(row(Dtype::Bool, &[], "true").unwrap(), [1]);
        assert_eq!(row(Dtype::String, &[], "\"a\\u0062\"").unwrap(), b"\x02\0\0\0ab");
        assert_eq!(row(Dtype::Uint8, &[2, 2], "[[1, 2],[3,4]]").unwrap(), [1, 2, 3, 4]);
    }

    #[test]
    fn other_values_are_named() {
        for (datatype, dims, value, expected) in [
            (Dtype::Float32, &[][..], "[0.5]", "[0.5] is a list, where one value must be"),
            (Dtype::Float32, &[][..], "null", "null is not of datatype FP32"),
            (Dtype::Float32, &[][..], "1e300", "1e300 is out of FP32's range"),
            (Dtype::Float32, &[][..], "\"a\"", "\"a\" is not of datatype FP32"),
            (Dtype::Int64, &[][..], "1.5", "1.5 is not of datatype INT64"),
            (Dtype::String, &[][..], "7", "7 is not of datatype BYTES"),
            (Dtype::Uint8, &[][..], "{}", "{} is an object, where values must be"),
            (Dtype::Uint8, &[2][..], "7", "7 is not a list, where one of 2 must be"),
            (Dtype::Uint8, &[2][..], "[7]", "a list has 1 values: it must have 2"),
            (Dtype::Uint8, &[2][..], "[7,8,9]", "a list has more than 2 values"),
            (Dtype::Uint8, &[2, 1][..], "[[7],8]", "8 is not a list, where one of 1 must be"),
            (Dtype::Uint8, &[2][..], "[7,[8]]", "[8] is a list, where one value must be"),
            (Dtype::Uint8, &[2][..], "[7,300]", "300 is not of datatype UINT8"),
        ] {
            let why = row(datatype, dims, value).unwrap_err();
            assert!(why.starts_with(expected), "{value}: {why}");
        }
    }

    #[test]
    fn elements_are_counted_before_they_are_read() {
        let budget = ByteBudget::new(1 << 10);
        let text = format!("\"{}\"", "x".repeat(8 << 10));
        let value: &RawValue = serde_json::from_str(&text).unwrap();
        let row = RowValue { name: "X", datatype: Dtype::String, dims: &[] };
        let read = row.read(value, &Room::new(Some(&budget), usize::MAX));
        assert!(matches!(read, Err(ValueFault::Room(ParseError::OverBudget(_)))), "{read:?}");
    }
}
