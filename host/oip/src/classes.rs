//! The classes of an output: the places of its largest elements, each a text `value:place:label`,
//! as Triton's classification extension has them.

use std::cmp::Ordering;
use std::io::Write;

use gristmill_core::{Dtype, Shape, TEXT_LENGTH_BYTES, push_text};

use crate::error::ParseError;
use crate::response::{Output, OutputData};
use crate::room::{Reserved, Room};

/// The classes that are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'a> {
    /// Maximum classes of a row.
    pub count: usize,
    /// Whether the output's first dimension is rows. If not, all of it is one row.
    pub has_rows: bool,
    /// The names of the places in a row, as far as they have any.
    pub labels: &'a [Box<str>],
}

/// The longest text of a place, with the colons around it.
const PLACE_BYTES: usize = 22;

impl Classes<'_> {
    /// The output with its classes in place of its elements. Their memory is taken from `room`.
    ///
    /// # Errors
    /// [`ParseError::NoClasses`] for elements that cannot be classified, [`ParseError::OverBudget`]
    /// if the budget has no room for the classes.
    pub fn of(&self, output: &Output, room: &Room<'_>) -> Result<Output, ParseError> {
        match output.datatype {
            Dtype::Uint8 => self.written::<u8>(output, room),
            Dtype::Int8 => self.written::<i8>(output, room),
            Dtype::Uint16 => self.written::<u16>(output, room),
            Dtype::Int16 => self.written::<i16>(output, room),
            Dtype::Uint32 => self.written::<u32>(output, room),
            Dtype::Int32 => self.written::<i32>(output, room),
            Dtype::Uint64 => self.written::<u64>(output, room),
            Dtype::Int64 => self.written::<i64>(output, room),
            Dtype::Float32 => self.written::<f32>(output, room),
            Dtype::Float64 => self.written::<f64>(output, room),
            datatype @ (Dtype::Bool | Dtype::Float16 | Dtype::Bfloat16 | Dtype::String) => {
                Err(ParseError::NoClasses { name: output.name.to_string(), datatype })
            }
        }
    }

    fn written<E: Element>(&self, output: &Output, room: &Room<'_>) -> Result<Output, ParseError> {
        let (name, elements) = (&output.name, output.data.as_slice());
        let rows = match (self.has_rows, output.shape.first()) {
            (true, Some(rows)) => *rows,
            _ => 1,
        };
        let row_bytes = elements.len().checked_div(rows).unwrap_or_default();
        let size = row_bytes / size_of::<E>();
        let count = self.count.min(size);
        let label_bytes = self.labels.iter().map(|label| label.len()).max().unwrap_or_default();
        let text_bytes = TEXT_LENGTH_BYTES + E::TEXT_BYTES_MAX + PLACE_BYTES + label_bytes;
        let texts_bytes = rows.saturating_mul(count).saturating_mul(text_bytes);
        let mut texts = room.reserve(name, texts_bytes)?;
        let held = room.hold(name, size * size_of::<usize>())?;
        let (mut places, mut text) = (Vec::with_capacity(size), Vec::new());
        for row in elements.chunks_exact(row_bytes.max(1)) {
            largest::<E>(row, count, &mut places);
            for place in &places {
                self.write(E::at(row, *place), *place, &mut text);
                push_text(&mut texts.bytes, &text);
            }
        }
        drop(held);
        let mut shape = Shape::new();
        shape.extend(output.shape.first().copied().filter(|_| self.has_rows));
        shape.push(count);
        let data = OutputData::Bytes(Reserved::into_bytes(texts));
        Ok(Output { name: name.clone(), datatype: Dtype::String, shape, data })
    }

    fn write<E: Element>(&self, value: E, place: usize, text: &mut Vec<u8>) {
        text.clear();
        value.write(text);
        // Writing to a vector does not fail.
        let _ = write!(text, ":{place}");
        if let Some(label) = self.labels.get(place).filter(|label| !label.is_empty()) {
            text.push(b':');
            text.extend(label.as_bytes());
        }
    }
}

/// Put the places of the largest elements of a row into `places`, the largest first.
fn largest<E: Element>(row: &[u8], count: usize, places: &mut Vec<usize>) {
    places.clear();
    places.extend(0..row.len() / size_of::<E>());
    let order = |one: &usize, other: &usize| {
        E::at(row, *other).order(E::at(row, *one)).then_with(|| one.cmp(other))
    };
    if count < places.len() {
        places.select_nth_unstable_by(count, order);
        places.truncate(count);
    }
    places.sort_unstable_by(order);
}

/// An element of an output.
trait Element: Copy {
    /// The longest text of a value.
    const TEXT_BYTES_MAX: usize;

    /// The element at this place of a row.
    fn at(row: &[u8], place: usize) -> Self;

    /// NaN is less than all others.
    fn order(self, other: Self) -> Ordering;

    /// Append the value as C++ writes it.
    fn write(self, text: &mut Vec<u8>);
}

macro_rules! elements {
    ($order:expr, $format:literal: $($type:ty, $text_bytes_max:literal;)*) => { $(
        impl Element for $type {
            const TEXT_BYTES_MAX: usize = $text_bytes_max;

            fn at(row: &[u8], place: usize) -> Self {
                let (elements, _) = row.as_chunks();
                Self::from_le_bytes(elements.get(place).copied().unwrap_or_default())
            }

            fn order(self, other: Self) -> Ordering {
                $order(&self, &other)
            }

            fn write(self, text: &mut Vec<u8>) {
                // Writing to a vector does not fail.
                let _ = write!(text, $format, self);
            }
        }
    )* };
}

elements! { Ord::cmp, "{}": u8, 20; i8, 20; u16, 20; i16, 20; u32, 20; i32, 20; u64, 20; i64, 20; }
elements! { floats, "{:.6}": f32, 47; f64, 317; }

fn floats<F: PartialOrd>(one: &F, other: &F) -> Ordering {
    let is_number = |float: &F| float.partial_cmp(float).is_some();
    one.partial_cmp(other).unwrap_or_else(|| is_number(one).cmp(&is_number(other)))
}

#[cfg(test)]
mod tests {
    use gristmill_core::{ByteBudget, Texts};

    use super::*;

    fn output(datatype: Dtype, shape: &[usize], bytes: Vec<u8>) -> Output {
        let data = OutputData::Bytes(bytes.into());
        Output { name: "y".into(), datatype, shape: shape.into(), data }
    }

    fn texts(classes: &Classes<'_>, output: &Output) -> (Vec<usize>, Vec<String>) {
        let classes = classes.of(output, &Room::default()).unwrap();
        assert_eq!(classes.datatype, Dtype::String);
        let texts = Texts::of(classes.data.as_slice());
        let texts = texts.map(|text| String::from_utf8(text.unwrap().to_vec()).unwrap());
        (classes.shape.to_vec(), texts.collect())
    }

    #[test]
    fn the_largest_of_each_row_come_first_with_their_labels() {
        let values = [0.1_f32, 0.7, 0.2, 0.5, f32::NAN, 0.5];
        let output = output(Dtype::Float32, &[2, 3], values.map(f32::to_le_bytes).concat());
        let labels: [Box<str>; 2] = ["cat".into(), "".into()];
        let of_rows = Classes { count: 2, has_rows: true, labels: &labels };
        let (shape, classes) = texts(&of_rows, &output);
        assert_eq!(shape, [2, 2]);
        assert_eq!(classes, ["0.700000:1", "0.200000:2", "0.500000:0:cat", "0.500000:2"]);
        let of_all = Classes { count: 9, has_rows: false, labels: &[] };
        let (shape, classes) = texts(&of_all, &output);
        let expected =
            ["0.700000:1", "0.500000:3", "0.500000:5", "0.200000:2", "0.100000:0", "NaN:4"];
        assert_eq!((shape, classes), (vec![6], expected.map(str::to_owned).to_vec()));
    }

    #[test]
    fn whole_numbers_have_no_point_and_other_elements_no_classes() {
        let one = Classes { count: 1, has_rows: true, labels: &[] };
        let output_of =
            |values: [i64; 2]| output(Dtype::Int64, &[1, 2], values.map(i64::to_le_bytes).concat());
        assert_eq!(texts(&one, &output_of([i64::MIN, -3])).1, ["-3:1"]);
        assert_eq!(texts(&one, &output(Dtype::Uint8, &[1, 3], vec![7, 255, 9])).1, ["255:1"]);
        assert_eq!(texts(&one, &output(Dtype::Uint8, &[0, 3], vec![])), (vec![0, 0], vec![]));
        assert_eq!(texts(&one, &output(Dtype::Uint8, &[], vec![7])), (vec![1], vec!["7:0".into()]));
        for datatype in [Dtype::String, Dtype::Bool, Dtype::Float16, Dtype::Bfloat16] {
            let refused = one.of(&output(datatype, &[1], vec![]), &Room::default());
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("output \"y\"") && error.contains(datatype.as_str()), "{error}");
        }
    }

    #[test]
    fn classes_count_before_they_are_made() {
        let output = output(Dtype::Uint8, &[1000], vec![0; 1000]);
        let budget = ByteBudget::new(40_000);
        let of = |count: usize| {
            let classes = Classes { count, has_rows: false, labels: &[] };
            classes.of(&output, &Room::new(Some(&budget), usize::MAX))
        };
        let classes = of(500).unwrap();
        assert!(budget.held() >= classes.data.as_slice().len(), "{}", budget.held());
        drop(classes);
        assert!(matches!(of(1000), Err(ParseError::OverBudget(_))));
        assert_eq!(budget.held(), 0);
    }
}
