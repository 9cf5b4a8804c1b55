//! `json`, and what `types` has for JSON bodies: values at a JSON Pointer become tensors and blobs,
//! and these become parts of an answer.

use half::{bf16, f16};
use serde_json::{Map, Value};

use super::tensors::{Dtype, Tensor};
use super::types::{Blob, JsonError};

const DIMENSIONS_MAX: usize = 32;

/// A part of a JSON document. The SDK's own texts are not among its pieces.
#[derive(Debug)]
pub enum Piece<'a> {
    Tensor(&'a Tensor),
    Base64(&'a Blob),
}

/// The pieces, one after another.
pub fn write(pieces: &[Piece<'_>]) -> Result<Vec<u8>, String> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Tensor(tensor) => {
                let mut elements = texts_of(tensor)?.into_iter();
                lists(&tensor.shape(), &mut elements, &mut out);
            }
            Piece::Base64(blob) => {
                out.push('"');
                out.push_str(&super::base64::encode(&blob.0));
                out.push('"');
            }
        }
    }
    Ok(out.into_bytes())
}

fn lists(shape: &[u32], elements: &mut impl Iterator<Item = String>, out: &mut String) {
    let Some((length, shape)) = shape.split_first() else {
        return out.push_str(&elements.next().unwrap_or_default());
    };
    out.push('[');
    for at in 0..*length {
        if at > 0 {
            out.push(',');
        }
        lists(shape, elements, out);
    }
    out.push(']');
}

/// The elements as JSON.
fn texts_of(tensor: &Tensor) -> Result<Vec<String>, String> {
    let data = tensor.data();
    macro_rules! numbers {
        ($ty:ty, $size:literal) => {{
            let elements = data.as_chunks::<$size>().0.iter();
            Ok(elements.map(|bytes| <$ty>::from_le_bytes(*bytes).to_string()).collect())
        }};
    }
    macro_rules! floats {
        ($ty:ty, $size:literal, $short:ty) => {{
            let elements = data.as_chunks::<$size>().0.iter().enumerate();
            let text = |(at, bytes): (usize, &[u8; $size])| {
                let value = <$short>::from(<$ty>::from_le_bytes(*bytes));
                let text = serde_json::to_string(&value).unwrap_or_default();
                if value.is_finite() { Ok(text) } else { Err(no_number(tensor, at, value.into())) }
            };
            elements.map(text).collect()
        }};
    }
    match tensor.dtype() {
        Dtype::Bool => Ok(data.iter().map(|byte| (*byte != 0).to_string()).collect()),
        Dtype::Uint8 => numbers!(u8, 1),
        Dtype::Int8 => numbers!(i8, 1),
        Dtype::Uint16 => numbers!(u16, 2),
        Dtype::Int16 => numbers!(i16, 2),
        Dtype::Uint32 => numbers!(u32, 4),
        Dtype::Int32 => numbers!(i32, 4),
        Dtype::Uint64 => numbers!(u64, 8),
        Dtype::Int64 => numbers!(i64, 8),
        Dtype::Float16 => floats!(f16, 2, f32),
        Dtype::Bfloat16 => floats!(bf16, 2, f32),
        Dtype::Float32 => floats!(f32, 4, f32),
        Dtype::Float64 => floats!(f64, 8, f64),
        Dtype::String => {
            let texts = tensor.strings().unwrap_or_default();
            Ok(texts.iter().map(|text| Value::from(text.as_str()).to_string()).collect())
        }
    }
}

fn no_number(tensor: &Tensor, at: usize, value: f64) -> String {
    let (shape, mut rest) = (tensor.shape(), at);
    let mut index: Vec<usize> = Vec::new();
    for length in shape.iter().rev() {
        index.insert(0, rest % *length as usize);
        rest /= *length as usize;
    }
    format!("the tensor of shape {shape:?} has {value} at {index:?}: JSON has no such number")
}

pub(super) fn tensor(
    body: &[u8],
    pointer: &str,
    keys: &[String],
    dtype: Dtype,
) -> Result<Tensor, JsonError> {
    let twice = |(at, key): &(usize, &String)| keys[..*at].contains(key);
    if let Some((_, key)) = keys.iter().enumerate().find(twice) {
        return Err(JsonError::InvalidArgument(format!("the key {key:?} is given twice")));
    }
    let value = required(body, pointer)?;
    let mut reading = Reading { dtype, data: Vec::new(), count: 0, lengths: Vec::new() };
    let read = match keys {
        [] => reading.all(&value, pointer).map(|()| reading.shape()),
        keys => reading.rows(&value, keys, pointer),
    };
    let shape = read.map_err(invalid)?;
    Tensor::create(dtype, &shape, &reading.data).map_err(|error| invalid(error.to_string()))
}

pub(super) fn blob(body: &[u8], pointer: &str) -> Result<Blob, JsonError> {
    let value = required(body, pointer)?;
    let place = place(pointer);
    let Value::String(text) = value else {
        return Err(invalid(format!("{place} is {}, not a text in base64", kind(&value))));
    };
    let bytes = super::base64::decode(&text).map_err(|why| invalid(format!("{place}: {why}")))?;
    Ok(Blob(bytes.into()))
}

pub(super) fn value(body: &[u8], pointer: &str) -> Result<Option<Vec<u8>>, JsonError> {
    Ok(find(body, pointer)?.map(|value| value.to_string().into_bytes()))
}

fn find(body: &[u8], pointer: &str) -> Result<Option<Value>, JsonError> {
    if !pointer.is_empty() && !pointer.starts_with('/') {
        let why = format!("the JSON Pointer {pointer:?} does not begin with /, as /instances");
        return Err(JsonError::InvalidArgument(why));
    }
    if body.is_empty() {
        return Err(invalid("the body is empty".into()));
    }
    let document: Value =
        serde_json::from_slice(body).map_err(|error| invalid(error.to_string()))?;
    Ok(document.pointer(pointer).cloned())
}

fn required(body: &[u8], pointer: &str) -> Result<Value, JsonError> {
    let found = find(body, pointer)?;
    found.ok_or_else(|| invalid(format!("{} is missing", place(pointer))))
}

fn invalid(why: String) -> JsonError {
    JsonError::InvalidJson(format!("invalid JSON: {why}"))
}

fn place(pointer: &str) -> &str {
    if pointer.is_empty() { "the body" } else { pointer }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        Value::String(_) => "a text",
        Value::Bool(_) => "a boolean",
        Value::Null => "null",
        Value::Number(_) => "a number",
    }
}

/// The elements that were read.
struct Reading {
    dtype: Dtype,
    data: Vec<u8>,
    count: usize,
    /// The lengths of the lists at each depth.
    lengths: Vec<Option<usize>>,
}

impl Reading {
    fn shape(&self) -> Vec<u32> {
        self.lengths.iter().map(|length| length.unwrap_or(0) as u32).collect()
    }

    /// Append a value, or lists of values.
    fn all(&mut self, value: &Value, at: &str) -> Result<(), String> {
        self.lengths.clear();
        let begin = self.count;
        self.read(value, at, 0, begin)
    }

    fn rows(&mut self, value: &Value, keys: &[String], at: &str) -> Result<Vec<u32>, String> {
        let Value::Array(items) = value else {
            return Err(format!("{} is {}, not a list", place(at), kind(value)));
        };
        let mut widths: Vec<usize> = Vec::new();
        for (row, item) in items.iter().enumerate() {
            let Value::Object(item) = item else {
                return Err(format!("{at}/{row} is {}, not an object", kind(item)));
            };
            for (number, key) in keys.iter().enumerate() {
                let width = self.field(item, key, &format!("{at}/{row}"))?;
                match widths.get(number) {
                    None => widths.push(width),
                    Some(wanted) if *wanted != width => {
                        return Err(format!(
                            "{at}/{row}/{key} has {width} values, not {wanted} as in the objects \
                             before it"
                        ));
                    }
                    Some(_) => {}
                }
            }
        }
        let width = if items.is_empty() { keys.len() } else { widths.iter().sum() };
        Ok(vec![items.len() as u32, width as u32])
    }

    /// Append the values of a field. Returns their number.
    fn field(&mut self, item: &Map<String, Value>, key: &str, at: &str) -> Result<usize, String> {
        let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        let value = item.get(key).ok_or_else(|| format!("{at} is missing"))?;
        let before = self.count;
        self.all(value, &at)?;
        if self.lengths.len() > 1 {
            return Err(format!("{at} is a list of lists, not of values"));
        }
        Ok(self.count - before)
    }

    /// `begin` is the number of elements before the value.
    fn read(&mut self, value: &Value, at: &str, depth: usize, begin: usize) -> Result<(), String> {
        let place = place(at);
        if let Value::Array(values) = value {
            if depth == self.lengths.len() {
                if self.count > begin {
                    return Err(format!("{place} is a list, not {}", self.element()));
                }
                if depth == DIMENSIONS_MAX {
                    return Err(format!("{place} is over {DIMENSIONS_MAX} lists deep"));
                }
                self.lengths.push(None);
            }
            for (index, value) in values.iter().enumerate() {
                self.read(value, &format!("{at}/{index}"), depth + 1, begin)?;
            }
            let (found, wanted) = (values.len(), *self.lengths[depth].get_or_insert(values.len()));
            return match found == wanted {
                true => Ok(()),
                false => {
                    Err(format!("{place} has {found} values, not {wanted} as the lists before it"))
                }
            };
        }
        if matches!(value, Value::Null | Value::Object(_)) {
            return Err(format!("{place} is {}, not {}", kind(value), self.element()));
        }
        if depth != self.lengths.len() {
            return Err(format!("{place} is {}, not a list as the values before it", kind(value)));
        }
        self.count += 1;
        self.push(value, place)
    }

    fn element(&self) -> &'static str {
        match self.dtype {
            Dtype::Bool => "true or false",
            Dtype::String => "a text",
            _ => "a number",
        }
    }

    fn push(&mut self, value: &Value, place: &str) -> Result<(), String> {
        let out_of_range = || {
            let name = match self.dtype {
                Dtype::Float16 => "FP16".into(),
                Dtype::Bfloat16 => "BF16".into(),
                Dtype::Float32 => "FP32".into(),
                dtype => format!("{dtype:?}").to_uppercase(),
            };
            format!("{place} is out of {name}'s range")
        };
        let other = || format!("{place} is {}, not {}", kind(value), self.element());
        match (self.dtype, value) {
            (Dtype::Bool, Value::Bool(value)) => self.data.push((*value).into()),
            (Dtype::String, Value::String(text)) => {
                self.data.extend((text.len() as u32).to_le_bytes());
                self.data.extend(text.as_bytes());
            }
            (Dtype::Bool | Dtype::String, _) => return Err(other()),
            (dtype, Value::Number(number)) => {
                let integer = number.as_i128();
                let float = number.as_f64().unwrap_or(f64::INFINITY);
                macro_rules! integer {
                    ($ty:ty) => {{
                        let not = || format!("{place} is {float:?}, not an integer");
                        let value = integer.ok_or_else(not)?;
                        let value = <$ty>::try_from(value).map_err(|_| out_of_range())?;
                        value.to_le_bytes().to_vec()
                    }};
                }
                macro_rules! float {
                    ($value:expr) => {{
                        let value = $value;
                        if value.is_infinite() {
                            return Err(out_of_range());
                        }
                        value.to_le_bytes().to_vec()
                    }};
                }
                let element = match dtype {
                    Dtype::Uint8 => integer!(u8),
                    Dtype::Int8 => integer!(i8),
                    Dtype::Uint16 => integer!(u16),
                    Dtype::Int16 => integer!(i16),
                    Dtype::Uint32 => integer!(u32),
                    Dtype::Int32 => integer!(i32),
                    Dtype::Uint64 => integer!(u64),
                    Dtype::Int64 => integer!(i64),
                    Dtype::Float16 => float!(f16::from_f64(float)),
                    Dtype::Bfloat16 => float!(bf16::from_f64(float)),
                    Dtype::Float32 => float!(float as f32),
                    _ => float!(float),
                };
                self.data.extend(element);
            }
            _ => return Err(other()),
        }
        Ok(())
    }
}
