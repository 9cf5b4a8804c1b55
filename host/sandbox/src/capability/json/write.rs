//! Writing tensors and bytes as JSON.
//!
//! Refuses to know calls: a function of the caller counts the memory before it is taken, and says
//! whether the work may go on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gristmill_core::{Dtype, Tensor, Texts};
use half::{bf16, f16};
use serde::Serialize;

use super::pointer::Shown;

/// The values of a list that are written after one question for room.
const VALUES_PER_PART: usize = 1024;

/// The bytes of a number, or of the marks around a list or a text, with its comma at most.
const VALUE_BYTES: usize = 32;

/// Bytes that are read at once to be written in base64. A multiple of 3.
const BYTES_PER_PART: usize = 48 << 10;

/// A JSON string has at most so many bytes for each byte of a text: `\u0000`.
const ESCAPED_BYTES: usize = 6;

/// The document, and who counts its memory.
pub(super) struct Out<'a, E> {
    pub(super) bytes: Vec<u8>,
    /// Maximum bytes of the document.
    limit: usize,
    /// The values and lists that may be written before the question whether to go on.
    left: usize,
    /// Counts so many more bytes of memory before they are allocated.
    count: &'a mut dyn FnMut(usize) -> Result<(), E>,
}

/// Writes an element to a document.
type Element<'t, 'a, E> = Box<dyn FnMut(&mut Out<'a, E>) -> Result<(), Fault<E>> + 't>;

/// Why a piece was not written.
pub(super) enum Fault<E> {
    /// JSON has no form for an element. Says for which.
    NotJson(String),
    TooLong,
    Stopped(E),
}

impl<'a, E> Out<'a, E> {
    pub(super) fn new(limit: usize, count: &'a mut dyn FnMut(usize) -> Result<(), E>) -> Self {
        Self { bytes: Vec::new(), limit, left: VALUES_PER_PART, count }
    }

    /// Make room for `bytes` more.
    fn room(&mut self, bytes: usize) -> Result<(), Fault<E>> {
        if self.bytes.len() > self.limit {
            return Err(Fault::TooLong);
        }
        let capacity = self.bytes.capacity();
        let needed = self.bytes.len() + bytes;
        let grown = if needed > capacity { needed.max(2 * capacity) } else { capacity };
        if grown > capacity {
            (self.count)(grown - capacity).map_err(Fault::Stopped)?;
            self.bytes.reserve_exact(grown - self.bytes.len());
        }
        Ok(())
    }

    /// The document, if it is within the limit.
    pub(super) fn finish(self) -> Result<Vec<u8>, Fault<E>> {
        if self.bytes.len() > self.limit { Err(Fault::TooLong) } else { Ok(self.bytes) }
    }

    /// Count one more value or list.
    fn tick(&mut self) -> Result<(), Fault<E>> {
        self.left -= 1;
        if self.left == 0 {
            self.left = VALUES_PER_PART;
            (self.count)(0).map_err(Fault::Stopped)?;
        }
        Ok(())
    }

    /// Refuse a part of so many bytes that goes over the limit.
    fn within_limit(&self, bytes: usize) -> Result<(), Fault<E>> {
        if self.bytes.len() + bytes > self.limit { Err(Fault::TooLong) } else { Ok(()) }
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Fault<E>> {
        self.tick()?;
        self.within_limit(text.len())?;
        self.room(text.len())?;
        self.bytes.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Write bytes as a text in base64.
    pub(super) fn base64(&mut self, bytes: &[u8]) -> Result<(), Fault<E>> {
        self.room(1)?;
        self.bytes.push(b'"');
        for part in bytes.chunks(BYTES_PER_PART) {
            let length = part.len().div_ceil(3) * 4;
            self.room(length)?;
            let start = self.bytes.len();
            self.bytes.resize(start + length, 0);
            // The target has the length that the part needs.
            let _ = STANDARD.encode_slice(part, &mut self.bytes[start..]);
        }
        self.room(1)?;
        self.bytes.push(b'"');
        Ok(())
    }

    /// Write a tensor's elements, as lists of lists of its shape.
    pub(super) fn tensor(&mut self, tensor: &Tensor) -> Result<(), Fault<E>> {
        self.lists(tensor.shape(), &mut Self::elements(tensor))
    }

    /// Write a list of objects: each has the next element of all columns, which have one dimension
    /// of the same length.
    pub(super) fn objects(&mut self, columns: &[(String, Tensor)]) -> Result<(), Fault<E>> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        let mut columns: Vec<_> =
            columns.iter().map(|(key, column)| (key, Self::elements(column))).collect();
        self.room(2)?;
        self.bytes.push(b'[');
        for row in 0..rows {
            self.bytes.extend_from_slice(if row == 0 { b"{" } else { b",{" });
            for (at, (key, element)) in columns.iter_mut().enumerate() {
                self.tick()?;
                self.within_limit(key.len())?;
                self.room(key.len() * ESCAPED_BYTES + 3 * VALUE_BYTES)?;
                if at > 0 {
                    self.bytes.push(b',');
                }
                self.value(key)?;
                self.bytes.push(b':');
                element(self).map_err(|fault| match fault {
                    Fault::NotJson(why) => {
                        Fault::NotJson(format!("the column {:?}: {why}", Shown(key)))
                    }
                    other => other,
                })?;
            }
            self.bytes.push(b'}');
        }
        self.bytes.push(b']');
        Ok(())
    }

    /// Writes the next element of a tensor, each time that it is called.
    fn elements(tensor: &Tensor) -> Element<'_, 'a, E> {
        let bytes = tensor.as_bytes();
        macro_rules! numbers {
            ($size:literal, $read:expr) => {{
                let mut elements = bytes.as_chunks::<$size>().0.iter();
                Box::new(move |out| {
                    elements.next().map_or(Ok(()), |element| out.value(&($read)(*element)))
                })
            }};
        }
        macro_rules! floats {
            ($size:literal, $read:expr) => {{
                let mut elements = bytes.as_chunks::<$size>().0.iter().enumerate();
                Box::new(move |out| {
                    let Some((at, element)) = elements.next() else { return Ok(()) };
                    let value = ($read)(*element);
                    if !value.is_finite() {
                        return Err(Fault::NotJson(no_number(tensor, at, value.into())));
                    }
                    out.value(&value)
                })
            }};
        }
        match tensor.dtype() {
            Dtype::Bool => numbers!(1, |[byte]: [u8; 1]| byte != 0),
            Dtype::Uint8 => numbers!(1, u8::from_le_bytes),
            Dtype::Int8 => numbers!(1, i8::from_le_bytes),
            Dtype::Uint16 => numbers!(2, u16::from_le_bytes),
            Dtype::Int16 => numbers!(2, i16::from_le_bytes),
            Dtype::Uint32 => numbers!(4, u32::from_le_bytes),
            Dtype::Int32 => numbers!(4, i32::from_le_bytes),
            Dtype::Uint64 => numbers!(8, u64::from_le_bytes),
            Dtype::Int64 => numbers!(8, i64::from_le_bytes),
            Dtype::Float16 => floats!(2, |bytes| f16::from_le_bytes(bytes).to_f32()),
            Dtype::Bfloat16 => floats!(2, |bytes| bf16::from_le_bytes(bytes).to_f32()),
            Dtype::Float32 => floats!(4, f32::from_le_bytes),
            Dtype::Float64 => floats!(8, f64::from_le_bytes),
            Dtype::String => {
                let mut texts = Texts::of(bytes);
                Box::new(move |out| {
                    // A tensor's texts are whole, and UTF-8.
                    let text = texts.next().and_then(Result::ok).unwrap_or_default();
                    let text = String::from_utf8_lossy(text);
                    out.within_limit(text.len())?;
                    out.room(text.len() * ESCAPED_BYTES + VALUE_BYTES)?;
                    out.value(&text)
                })
            }
        }
    }

    /// Write lists of this shape, whose elements `element` writes.
    fn lists(
        &mut self,
        shape: &[usize],
        element: &mut impl FnMut(&mut Self) -> Result<(), Fault<E>>,
    ) -> Result<(), Fault<E>> {
        self.tick()?;
        let Some((length, shape)) = shape.split_first() else {
            self.room(VALUE_BYTES)?;
            return element(self);
        };
        self.room(2)?;
        self.bytes.push(b'[');
        for at in 0..*length {
            if at % VALUES_PER_PART == 0 {
                self.room(VALUES_PER_PART * VALUE_BYTES)?;
            }
            if at > 0 {
                self.bytes.push(b',');
            }
            match shape {
                [] => {
                    self.tick()?;
                    element(self)?;
                }
                shape => self.lists(shape, element)?,
            }
        }
        self.bytes.push(b']');
        Ok(())
    }

    fn value(&mut self, value: &impl Serialize) -> Result<(), Fault<E>> {
        // Numbers, booleans and texts are written to memory without an error.
        let _ = serde_json::to_writer(&mut self.bytes, value);
        Ok(())
    }
}

/// The fault of an element, counted from 0, that JSON has no number for.
fn no_number(tensor: &Tensor, at: usize, value: f64) -> String {
    let mut rest = at;
    let mut index: Vec<usize> = tensor
        .shape()
        .iter()
        .rev()
        .map(|length| {
            let index = rest % length;
            rest /= length;
            index
        })
        .collect();
    index.reverse();
    let shape = tensor.shape();
    format!("the tensor of shape {shape:?} has {value} at {index:?}: JSON has no such number")
}

#[cfg(test)]
mod tests {
    use gristmill_core::{BufferPool, push_text};

    use super::*;

    const LIMIT: usize = 1 << 20;

    fn tensor(dtype: Dtype, shape: &[usize], bytes: &[u8]) -> Tensor {
        Tensor::new(dtype, shape.into(), BufferPool::new(0).copy_from(bytes)).unwrap()
    }

    /// The JSON, and the bytes that were counted.
    fn written(tensor: &Tensor) -> Result<(String, usize), String> {
        let mut counted = 0;
        let mut count = |bytes| {
            counted += bytes;
            if counted > 3 * LIMIT { Err(()) } else { Ok(()) }
        };
        let mut out = Out::new(LIMIT, &mut count);
        let done = out.tensor(tensor).and_then(|()| out.finish());
        match done {
            Ok(bytes) => {
                assert!(bytes.capacity() <= counted, "{} bytes of {counted}", bytes.capacity());
                Ok((String::from_utf8(bytes).unwrap(), counted))
            }
            Err(Fault::NotJson(why)) => Err(why),
            Err(Fault::TooLong) => Err("too long".into()),
            Err(Fault::Stopped(())) => Err("stopped".into()),
        }
    }

    #[test]
    fn tensors_are_lists_of_lists() {
        let floats = [0.1_f32, -2.0, 1e-7, 3.4e38, 16_777_216.0, 0.0];
        let floats: Vec<u8> = floats.iter().flat_map(|value| value.to_le_bytes()).collect();
        let mut texts = Vec::new();
        ["a\"\n", "\u{1F600}"].iter().for_each(|text| push_text(&mut texts, text.as_bytes()));
        let half: Vec<u8> = [f16::from_f32(0.1), f16::ONE].map(f16::to_le_bytes).concat();
        for (tensor, json) in [
            (
                tensor(Dtype::Float32, &[2, 3], &floats),
                "[[0.1,-2.0,1e-7],[3.4e+38,16777216.0,0.0]]",
            ),
            (tensor(Dtype::Float32, &[], &floats[..4]), "0.1"),
            (tensor(Dtype::Float64, &[1], &0.1_f64.to_le_bytes()), "[0.1]"),
            (tensor(Dtype::Float16, &[2], &half), "[0.099975586,1.0]"),
            (tensor(Dtype::Uint8, &[2, 1, 2], &[0, 1, 2, 255]), "[[[0,1]],[[2,255]]]"),
            (tensor(Dtype::Int64, &[1], &i64::MIN.to_le_bytes()), "[-9223372036854775808]"),
            (tensor(Dtype::Bool, &[2], &[0, 1]), "[false,true]"),
            (tensor(Dtype::String, &[2], &texts), "[\"a\\\"\\n\",\"\u{1F600}\"]"),
            (tensor(Dtype::Float32, &[0], &[]), "[]"),
            (tensor(Dtype::Float32, &[2, 0, 3], &[]), "[[],[]]"),
        ] {
            assert_eq!(written(&tensor).unwrap().0, json);
        }
    }

    #[test]
    fn a_float_that_json_does_not_have_is_named() {
        let values = [1.0_f32, f32::NAN].map(f32::to_le_bytes).concat();
        let error = written(&tensor(Dtype::Float32, &[1, 2], &values)).unwrap_err();
        assert_eq!(error, "the tensor of shape [1, 2] has NaN at [0, 1]: JSON has no such number");
    }

    /// Without elements it takes no memory, but its lists are without end.
    #[test]
    fn a_document_ends_at_its_limit() {
        let long = tensor(Dtype::Float32, &[4_000_000_000, 0], &[]);
        assert_eq!(written(&long).unwrap_err(), "too long");
        let zeros = tensor(Dtype::Uint8, &[LIMIT], &vec![0; LIMIT]);
        assert_eq!(written(&zeros).unwrap_err(), "too long");
        let text = |length| {
            let mut bytes = Vec::new();
            push_text(&mut bytes, &vec![1; length]);
            tensor(Dtype::String, &[], &bytes)
        };
        assert_eq!(written(&text(LIMIT + 1)).unwrap_err(), "too long");
        // Each character takes six bytes, and all of them are counted.
        assert_eq!(written(&text(100_000)).unwrap().0.len(), 600_002);
    }

    #[test]
    fn columns_are_lists_of_objects() {
        let mut texts = Vec::new();
        ["x", "\""].iter().for_each(|text| push_text(&mut texts, text.as_bytes()));
        let scores = [0.5_f32, -1.0].map(f32::to_le_bytes).concat();
        let columns = [
            ("id".to_owned(), tensor(Dtype::String, &[2], &texts)),
            ("a\"".to_owned(), tensor(Dtype::Float32, &[2], &scores)),
        ];
        let written = |columns: &[(String, Tensor)], limit| {
            let mut counted = 0;
            let mut count = |bytes| {
                counted += bytes;
                Ok::<_, ()>(())
            };
            let mut out = Out::new(limit, &mut count);
            let bytes = out.objects(columns).and_then(|()| out.finish()).ok()?;
            assert!(bytes.capacity() <= counted, "{} bytes of {counted}", bytes.capacity());
            String::from_utf8(bytes).ok()
        };
        let json = r#"[{"id":"x","a\"":0.5},{"id":"\"","a\"":-1.0}]"#;
        assert_eq!(written(&columns, LIMIT).unwrap(), json);
        assert_eq!(written(&columns, json.len() - 1), None);
        let none = [("id".to_owned(), tensor(Dtype::Int64, &[0], &[]))];
        assert_eq!(written(&none, LIMIT).unwrap(), "[]");
    }

    #[test]
    fn bytes_are_texts_in_base64() {
        for length in [0, 1, 2, 3, BYTES_PER_PART + 1] {
            let bytes: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let mut count = |_| Ok::<_, ()>(());
            let mut out = Out::new(LIMIT, &mut count);
            assert!(out.base64(&bytes).is_ok());
            let text: String = serde_json::from_slice(&out.bytes).unwrap();
            assert_eq!(STANDARD.decode(text).unwrap(), bytes);
        }
    }
}
