//! Typed contents: reading the bytes of an `InferTensorContents` into a tensor's elements. They are
//! counted first. So no memory is taken for elements that the shape does not need, or that the
//! tenant has no room for.

use bytes::Bytes;
use gristmill_core::{Dtype, TEXT_LENGTH_BYTES, push_text};
use prost::encoding::{WireType, decode_varint};

use super::codec::{Field, Fields};
use crate::{ParseError, Room};

/// An input with typed contents.
pub(super) struct Typed<'a> {
    pub(super) name: &'a str,
    pub(super) datatype: Dtype,
    pub(super) shape: &'a [usize],
    /// The bytes of an `InferTensorContents`.
    pub(super) contents: &'a [u8],
}

/// The encoding of a datatype's elements.
#[derive(Clone, Copy)]
enum Kind {
    Varints,
    /// Each has so many bytes, the same as in a tensor.
    Fixed(usize),
    Texts,
}

/// The number of the elements, and the bytes that they take in a tensor.
struct Measured {
    count: usize,
    bytes: usize,
}

/// The names of the fields of an `InferTensorContents`, by their numbers from 1 on.
const FIELDS: [&str; 8] = [
    "bool_contents",
    "int_contents",
    "int64_contents",
    "uint_contents",
    "uint64_contents",
    "fp32_contents",
    "fp64_contents",
    "bytes_contents",
];

/// The name of a field. None if there is no such field.
fn field_name(number: u32) -> Option<&'static str> {
    FIELDS.get((number as usize).checked_sub(1)?).copied()
}

/// The field of an `InferTensorContents` that has the elements of a datatype, and their encoding.
fn field_of(datatype: Dtype) -> Option<(u32, Kind)> {
    Some(match datatype {
        Dtype::Bool => (1, Kind::Varints),
        Dtype::Int8 | Dtype::Int16 | Dtype::Int32 => (2, Kind::Varints),
        Dtype::Int64 => (3, Kind::Varints),
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Uint32 => (4, Kind::Varints),
        Dtype::Uint64 => (5, Kind::Varints),
        Dtype::Float32 => (6, Kind::Fixed(4)),
        Dtype::Float64 => (7, Kind::Fixed(8)),
        Dtype::String => (8, Kind::Texts),
        Dtype::Float16 | Dtype::Bfloat16 => return None,
    })
}

impl Typed<'_> {
    /// Read the elements into the bytes of a raw tensor.
    ///
    /// # Errors
    /// The contents cannot be read, an element is not of the datatype, there are more or fewer
    /// elements than the shape needs, or there is no room.
    pub(super) fn read(&self, room: &Room<'_>) -> Result<Bytes, ParseError> {
        let &Self { name, datatype, shape, .. } = self;
        let Some((field, kind)) = field_of(datatype) else {
            return Err(ParseError::BinaryOnly { name: name.into(), datatype });
        };
        let Measured { count, bytes } = self.measure(field, kind)?;
        let expected = shape.iter().try_fold(1_usize, |product, size| product.checked_mul(*size));
        if expected != Some(count) {
            let (shape, expected) = (shape.to_vec(), expected.unwrap_or(usize::MAX));
            return Err(ParseError::Count { name: name.into(), count, shape, expected });
        }
        let mut reserved = room.reserve(name, bytes)?;
        for part in self.parts(field) {
            let Field { wire_type, content, .. } = part?;
            match kind {
                Kind::Varints => self.push_numbers(&mut reserved.bytes, content)?,
                Kind::Fixed(_) => reserved.bytes.extend_from_slice(content),
                Kind::Texts if wire_type == WireType::LengthDelimited => {
                    push_text(&mut reserved.bytes, content);
                }
                Kind::Texts => return Err(self.wrong("an element is not a text".into())),
            }
        }
        Ok(reserved.into_bytes())
    }

    /// Measure the elements without reading them.
    fn measure(&self, field: u32, kind: Kind) -> Result<Measured, ParseError> {
        let (mut count, mut bytes) = (0, 0);
        for part in Fields::of(self.contents) {
            let part = part.ok_or_else(|| self.unreadable())?;
            if part.number != field {
                self.check_other(part.number, field)?;
                continue;
            }
            let part = part.content;
            match kind {
                Kind::Varints => count += part.iter().filter(|byte| **byte < 0x80).count(),
                Kind::Fixed(size) if part.len() % size != 0 => {
                    let len = part.len();
                    return Err(self.wrong(format!(
                        "{len} bytes are not a whole number of {} elements",
                        self.datatype
                    )));
                }
                Kind::Fixed(size) => count += part.len() / size,
                Kind::Texts => {
                    count += 1;
                    bytes += TEXT_LENGTH_BYTES + part.len();
                }
            }
        }
        let bytes = self.datatype.size_bytes().map_or(bytes, |size| count.saturating_mul(size));
        Ok(Measured { count, bytes })
    }

    /// The parts of the field with this number. Each has one element, or several that are packed.
    fn parts(&self, number: u32) -> impl Iterator<Item = Result<Field<'_>, ParseError>> {
        let fields = Fields::of(self.contents);
        fields.filter_map(move |part| match part {
            Some(part) => (part.number == number).then_some(Ok(part)),
            None => Some(Err(self.unreadable())),
        })
    }

    /// Refuse the contents of another datatype.
    fn check_other(&self, other: u32, expected: u32) -> Result<(), ParseError> {
        match (field_name(other), field_name(expected)) {
            (Some(other), Some(expected)) => {
                let datatype = self.datatype;
                Err(self.wrong(format!("{other} are given, but {datatype} has {expected}")))
            }
            _ => Ok(()),
        }
    }

    fn unreadable(&self) -> ParseError {
        self.wrong("the contents cannot be read".into())
    }

    fn push_numbers(&self, bytes: &mut Vec<u8>, mut packed: &[u8]) -> Result<(), ParseError> {
        macro_rules! push {
            // The type of a number in the message, and in the tensor.
            ($wire:ty, $type:ty) => {
                while !packed.is_empty() {
                    let value = self.varint(&mut packed)? as $wire;
                    let narrow = <$type>::try_from(value).map_err(|_| {
                        self.wrong(format!("{value} is not a valid {}", self.datatype))
                    })?;
                    bytes.extend_from_slice(&narrow.to_le_bytes());
                }
            };
        }
        match self.datatype {
            Dtype::Bool => {
                while !packed.is_empty() {
                    bytes.push((self.varint(&mut packed)? != 0).into());
                }
            }
            Dtype::Int8 => push!(i32, i8),
            Dtype::Int16 => push!(i32, i16),
            Dtype::Int32 => push!(i32, i32),
            Dtype::Int64 => push!(i64, i64),
            Dtype::Uint8 => push!(u32, u8),
            Dtype::Uint16 => push!(u32, u16),
            Dtype::Uint32 => push!(u32, u32),
            _ => push!(u64, u64),
        }
        Ok(())
    }

    fn varint(&self, packed: &mut &[u8]) -> Result<u64, ParseError> {
        decode_varint(packed).map_err(|error| self.wrong(error.to_string()))
    }

    fn wrong(&self, why: String) -> ParseError {
        ParseError::Data { name: self.name.into(), why }
    }
}

#[cfg(test)]
mod tests {
    use gristmill_core::{ByteBudget, Dtype};
    use prost::Message;

    use super::Typed;
    use crate::grpc::proto::InferTensorContents;
    use crate::{ParseError, Room};

    fn read(
        datatype: Dtype,
        shape: &[usize],
        contents: &InferTensorContents,
    ) -> Result<Vec<u8>, ParseError> {
        let contents = contents.encode_to_vec();
        let typed = Typed { name: "x", datatype, shape, contents: &contents };
        typed.read(&Room::default()).map(|bytes| bytes.to_vec())
    }

    #[test]
    fn elements_of_each_datatype_are_read_into_a_raw_tensor() {
        let all = || InferTensorContents {
            bool_contents: vec![true, false],
            int_contents: vec![-1, 100],
            int64_contents: vec![i64::MIN, 7],
            uint_contents: vec![0, 200],
            uint64_contents: vec![u64::MAX, 7],
            fp32_contents: vec![1.5, -2.0],
            fp64_contents: vec![1.5, -2.0],
            bytes_contents: vec![b"ab".to_vec().into(), b"".to_vec().into()],
        };
        macro_rules! two {
            ($datatype:ident, $field:ident) => {{
                let contents = InferTensorContents { $field: all().$field, ..Default::default() };
                read(Dtype::$datatype, &[2], &contents).unwrap()
            }};
        }
        assert_eq!(two!(Bool, bool_contents), [1, 0]);
        assert_eq!(two!(Int8, int_contents), [255, 100]);
        assert_eq!(two!(Int16, int_contents), [255, 255, 100, 0]);
        assert_eq!(two!(Int32, int_contents), [-1_i32, 100].map(i32::to_le_bytes).concat());
        assert_eq!(two!(Int64, int64_contents), [i64::MIN, 7].map(i64::to_le_bytes).concat());
        assert_eq!(two!(Uint8, uint_contents), [0, 200]);
        assert_eq!(two!(Uint16, uint_contents), [0, 0, 200, 0]);
        assert_eq!(two!(Uint32, uint_contents), [0_u32, 200].map(u32::to_le_bytes).concat());
        assert_eq!(two!(Uint64, uint64_contents), [u64::MAX, 7].map(u64::to_le_bytes).concat());
        assert_eq!(two!(Float32, fp32_contents), [1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        assert_eq!(two!(Float64, fp64_contents), [1.5_f64, -2.0].map(f64::to_le_bytes).concat());
        assert_eq!(two!(String, bytes_contents), [2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0]);
        let error = read(Dtype::Float32, &[2], &all()).unwrap_err().to_string();
        assert!(error.contains("bool_contents are given, but FP32 has fp32_contents"), "{error}");
        let contents = InferTensorContents { int_contents: vec![1], ..Default::default() };
        let error = read(Dtype::Float32, &[1], &contents).unwrap_err().to_string();
        assert!(error.contains("int_contents are given, but FP32 has fp32_contents"), "{error}");
        let contents = all();
        let error = read(Dtype::Float16, &[2], &contents).unwrap_err().to_string();
        assert!(error.contains("binary data only"), "{error}");
    }

    #[test]
    fn numbers_need_not_be_packed_and_damaged_ones_are_named() {
        let read = |datatype, shape: &[usize], contents: &[u8]| {
            Typed { name: "x", datatype, shape, contents }.read(&Room::default())
        };
        // Field 2 as two varints; field 6 as one fixed number and as two packed.
        assert_eq!(read(Dtype::Int8, &[2], &[0x10, 1, 0x10, 2]).unwrap()[..], [1, 2]);
        let fp32 = [&[0x35, 1, 2, 3, 4, 0x32, 4][..], &[5; 4]].concat();
        assert_eq!(read(Dtype::Float32, &[2], &fp32).unwrap()[..], [1, 2, 3, 4, 5, 5, 5, 5]);
        for (datatype, contents, expected) in [
            (Dtype::Int8, &[0x12, 1, 0x80][..], "0 elements"),
            (Dtype::Int8, &[0x12, 2, 200, 1], "200 is not a valid INT8"),
            (Dtype::Float32, &[0x32, 3, 1, 2, 3], "3 bytes are not a whole number of FP32"),
            (Dtype::Int8, &[0x13, 0x14], "the contents cannot be read"),
            (Dtype::Int8, &[0x12, 9, 1], "the contents cannot be read"),
            (Dtype::String, &[0x40, 1], "an element is not a text"),
        ] {
            let error = read(datatype, &[1], contents).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn elements_that_the_shape_does_not_need_take_no_room() {
        let contents = InferTensorContents { int_contents: vec![1; 10_000], ..Default::default() };
        let contents = contents.encode_to_vec();
        let budget = ByteBudget::new(50_000);
        let read = |shape: &[usize], datatype, bytes| {
            let typed = Typed { name: "x", datatype, shape, contents: &contents };
            typed.read(&Room::new(Some(&budget), bytes)).map(|_| ())
        };
        let error = read(&[9_999], Dtype::Int32, 0).unwrap_err().to_string();
        assert!(error.contains("10000 elements, but shape [9999] needs 9999"), "{error}");
        assert!(read(&[usize::MAX, 3], Dtype::Int32, 0).is_err());
        let error = read(&[10_000], Dtype::Int32, 39_999).unwrap_err();
        assert!(matches!(error, ParseError::TooLarge { bytes: 40_000, .. }), "{error}");
        read(&[10_000], Dtype::Int32, 40_000).unwrap();
        let held = budget.hold(20_000);
        let error = read(&[10_000], Dtype::Int32, 40_000).unwrap_err();
        assert!(matches!(error, ParseError::OverBudget(_)), "{error}");
        drop(held);
        assert_eq!(budget.held(), 0);
    }
}
