//! A value of any JSON document as one row of a tensor.

use gristmill_core::Dtype;
use serde_json::value::RawValue;

use crate::elements::{self, Lists};

/// The characters of a value that a message shows.
const SHOWN_MAX: usize = 60;

/// The row that a value must be.
#[derive(Clone, Copy, Debug)]
pub struct RowValue<'a> {
    /// The tensor's datatype.
    pub datatype: Dtype,
    /// The sizes of the row: lists within lists. Without sizes it is one value.
    pub dims: &'a [usize],
}

impl RowValue<'_> {
    /// Maximum bytes of the row's elements.
    pub fn bytes_max(&self, value: &RawValue) -> usize {
        elements::bytes_max(self.datatype, self.dims, value)
    }

    /// Append the bytes of the row's elements, at most [`bytes_max`](Self::bytes_max), to `bytes`.
    ///
    /// # Errors
    /// What is wrong with the value: it has other lists, or an element is not of the datatype.
    pub fn read(&self, value: &RawValue, bytes: &mut Vec<u8>) -> Result<(), String> {
        let &Self { datatype, dims } = self;
        let (is_object, is_list) = (value.get().starts_with('{'), value.get().starts_with('['));
        match dims {
            _ if is_object => Err(format!("{} is an object, where values must be", shown(value))),
            [] if is_list => Err(format!("{} is a list, where one value must be", shown(value))),
            [size, ..] if !is_list => {
                Err(format!("{} is not a list, where one of {size} must be", shown(value)))
            }
            _ => {
                let most = elements::count_max(dims, value);
                elements::append(datatype, Lists::Sizes(dims), most, value, bytes)
            }
        }
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
    use super::*;

    fn row(datatype: Dtype, dims: &[usize], value: &str) -> Result<Vec<u8>, String> {
        let value: &RawValue = serde_json::from_str(value).unwrap();
        let (row, mut bytes) = (RowValue { datatype, dims }, Vec::new());
        row.read(value, &mut bytes)?;
        assert!(bytes.len() <= row.bytes_max(value), "{value}");
        Ok(bytes)
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
            (Dtype::Uint8, &[2, 1][..], "[[7],8]", "one value stands in place of a list of 1"),
            (Dtype::Uint8, &[2][..], "[7,[8]]", "a list stands in place of one value"),
            (Dtype::Uint8, &[2, 1][..], "[[7],[]]", "a list has 0 values: it must have 1"),
            (Dtype::Uint8, &[2, 1][..], "[[7],[8,9]]", "a list has more than 1 values"),
            (Dtype::Float32, &[2][..], "[0.5,null]", "null is not of datatype FP32: JSON has"),
            (Dtype::Uint8, &[2][..], "[7,300]", "300 is not of datatype UINT8"),
        ] {
            let why = row(datatype, dims, value).unwrap_err();
            assert!(why.starts_with(expected), "{value}: {why}");
        }
    }
}
