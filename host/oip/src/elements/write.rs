//! Writing a tensor's elements as JSON.

use gristmill_core::{Dtype, Texts};

use crate::error::ParseError;
use crate::out::{Out, json};

/// The number of elements that are written before their bytes are counted.
const COUNTED_ELEMENTS: usize = 4096;

/// The bytes of a text that are written before they are counted.
const COUNTED_TEXT_BYTES: usize = 64 << 10;

/// Write the elements in `bytes` as a flat JSON array.
///
/// # Errors
/// [`ParseError::NotJson`] for elements that JSON cannot hold, [`ParseError::OverBudget`] if the
/// budget has no room for the JSON.
pub(crate) fn write(
    out: &mut Out,
    name: &str,
    datatype: Dtype,
    bytes: &[u8],
) -> Result<(), ParseError> {
    let lost = |what: &'static str| ParseError::NotJson { name: name.into(), what };
    let mut separator = b'[';
    macro_rules! numbers {
        ($type:ty, $size:literal) => {
            for elements in bytes.as_chunks::<$size>().0.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    out.bytes.push(separator);
                    separator = b',';
                    json(&mut out.bytes, &<$type>::from_le_bytes(*element));
                }
                out.count()?;
            }
        };
    }
    macro_rules! floats {
        ($type:ty, $size:literal) => {
            for elements in bytes.as_chunks::<$size>().0.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    out.bytes.push(separator);
                    separator = b',';
                    let value = <$type>::from_le_bytes(*element);
                    match not_in_json(value.into()) {
                        None => json(&mut out.bytes, &value),
                        Some(word) => out.bytes.extend(word.as_bytes()),
                    }
                }
                out.count()?;
            }
        };
    }
    match datatype {
        Dtype::Bool => {
            for elements in bytes.chunks(COUNTED_ELEMENTS) {
                for element in elements {
                    out.bytes.push(separator);
                    separator = b',';
                    json(&mut out.bytes, &(*element != 0));
                }
                out.count()?;
            }
        }
        Dtype::Uint8 => numbers!(u8, 1),
        Dtype::Int8 => numbers!(i8, 1),
        Dtype::Uint16 => numbers!(u16, 2),
        Dtype::Int16 => numbers!(i16, 2),
        Dtype::Uint32 => numbers!(u32, 4),
        Dtype::Int32 => numbers!(i32, 4),
        Dtype::Uint64 => numbers!(u64, 8),
        Dtype::Int64 => numbers!(i64, 8),
        Dtype::Float32 => floats!(f32, 4),
        Dtype::Float64 => floats!(f64, 8),
        Dtype::Float16 | Dtype::Bfloat16 => return Err(lost("16-bit floats")),
        Dtype::String => {
            for text in Texts::of(bytes) {
                let text = text.map_err(|_| lost("a cut text"))?;
                let text =
                    std::str::from_utf8(text).map_err(|_| lost("bytes that are not UTF-8"))?;
                out.bytes.push(separator);
                separator = b',';
                write_text(out, text)?;
            }
        }
    }
    if separator == b'[' {
        out.bytes.push(b'[');
    }
    out.bytes.push(b']');
    out.count()
}

/// The word for a float that JSON does not have: the one that Triton writes, and Python reads.
fn not_in_json(value: f64) -> Option<&'static str> {
    match value {
        _ if value.is_finite() => None,
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => Some("NaN"),
    }
}

/// Write a text. A long one is written in pieces, because JSON may make it six times as long.
fn write_text(out: &mut Out, text: &str) -> Result<(), ParseError> {
    if text.len() <= COUNTED_TEXT_BYTES {
        json(&mut out.bytes, &text);
        return out.count();
    }
    let (mut rest, mut quoted) = (text, Vec::new());
    out.bytes.push(b'"');
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(COUNTED_TEXT_BYTES));
        quoted.clear();
        json(&mut quoted, &piece);
        out.bytes.extend_from_slice(&quoted[1..quoted.len() - 1]);
        out.count()?;
        rest = after;
    }
    out.bytes.push(b'"');
    Ok(())
}
