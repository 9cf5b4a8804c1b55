//! Tensors whose data lies in other files ("external data"), wherever a model has them.
//!
//! Source: `onnx.proto` and <https://onnx.ai/onnx/repo-docs/ExternalData.html>.

use super::wire::{Field, Malformed, fields, put_bytes};
use crate::names::shown;

/// Maximum levels of messages. Protobuf's own parsers read 100.
const LEVELS_MAX: usize = 100;

/// `TensorProto.DataLocation.EXTERNAL`.
const EXTERNAL: u64 = 1;

/// A tensor whose data lies in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct External {
    /// The tensor's name.
    pub(crate) tensor: String,
    /// Its data.
    pub(crate) range: Result<Range, Unclear>,
    /// The bytes that the tensor's shape and type need, if the type is known.
    pub(crate) needed: Option<u64>,
}

/// Why a model does not say where a tensor's data is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unclear {
    /// An entry is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// An entry stands there twice. Runtimes differ in which of the two they take.
    #[error("{0} stands there twice")]
    Twice(&'static str),
    /// An entry is not a number of bytes.
    #[error("{key} is {}: must be a whole number from 0 to {}", shown(.value), u64::MAX)]
    NoNumber {
        /// The entry.
        key: &'static str,
        /// Its value.
        value: String,
    },
}

/// A part of a file, as the model names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// The path of the file, relative to that of the model.
    pub(crate) location: String,
    pub(crate) offset: u64,
    pub(crate) length: Option<u64>,
}

/// Where the data of a tensor lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) location: String,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The kinds of messages that have tensors, or others that have them.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    Sparse,
    Tensor,
}

impl Kind {
    /// The kind of the message in field `number`.
    fn below(self, number: u64) -> Option<Self> {
        Some(match (self, number) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Function, 7) | (Self::Graph, 1) => Self::Node,
            (Self::Function, 11) | (Self::Node, 5) => Self::Attribute,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::Sparse, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::Sparse,
            _ => return None,
        })
    }
}

/// The model with the places that `place` gives to the tensors whose data lies in other files. None
/// if there are no such tensors, or they stay where they are.
///
/// # Errors
/// Those of `place`, or the file is malformed.
pub(crate) fn placed<E: From<Malformed>>(
    model: &[u8],
    mut place: impl FnMut(External) -> Result<Option<Placed>, E>,
) -> Result<Option<Vec<u8>>, E> {
    message(model, Kind::Model, LEVELS_MAX, &mut place)
}

fn message<E: From<Malformed>>(
    bytes: &[u8],
    kind: Kind,
    levels: usize,
    place: &mut dyn FnMut(External) -> Result<Option<Placed>, E>,
) -> Result<Option<Vec<u8>>, E> {
    if let Kind::Tensor = kind {
        return tensor(bytes, place);
    }
    let levels = levels.checked_sub(1).ok_or(Malformed)?;
    let mut changed: Option<Vec<u8>> = None;
    let mut at = 0;
    for field in fields(bytes) {
        let field = field?;
        let below = match kind.below(field.number) {
            Some(below) => message(field.bytes(), below, levels, place)?,
            None => None,
        };
        match (below, &mut changed) {
            (Some(below), out) => {
                let out = out.get_or_insert_with(|| bytes[..at].to_vec());
                put_bytes(out, field.number, &below);
            }
            (None, Some(out)) => out.extend_from_slice(field.raw),
            (None, None) => {}
        }
        at += field.raw.len();
    }
    Ok(changed)
}

fn tensor<E: From<Malformed>>(
    bytes: &[u8],
    place: &mut dyn FnMut(External) -> Result<Option<Placed>, E>,
) -> Result<Option<Vec<u8>>, E> {
    let (mut dims, mut dtype, mut name, mut at) = (Vec::new(), 0, String::new(), 0);
    let mut entries = Vec::new();
    for field in fields(bytes) {
        let field = field?;
        match field.number {
            1 => dims.extend(field.numbers()?),
            2 => dtype = last(&field)?,
            8 => name = field.text(),
            13 => entries.push(entry(field.bytes())?),
            14 => at = last(&field)?,
            _ => {}
        }
    }
    if entries.is_empty() && at != EXTERNAL {
        return Ok(None);
    }
    let mut kept = Vec::new();
    if at == EXTERNAL {
        let Some(placed) =
            place(External { tensor: name, range: range(&entries), needed: needed(&dims, dtype) })?
        else {
            return Ok(None);
        };
        for (key, value) in [
            ("location", placed.location),
            ("offset", placed.offset.to_string()),
            ("length", placed.length.to_string()),
        ] {
            let mut entry = Vec::new();
            put_bytes(&mut entry, 1, key.as_bytes());
            put_bytes(&mut entry, 2, value.as_bytes());
            put_bytes(&mut kept, 13, &entry);
        }
    }
    // Entries of a tensor that has its own data mean nothing, and are left out.
    for field in fields(bytes).filter(|field| field.is_ok_and(|field| field.number != 13)) {
        kept.extend_from_slice(field?.raw);
    }
    Ok(Some(kept))
}

/// The part of a file that these entries name.
fn range(entries: &[(String, String)]) -> Result<Range, Unclear> {
    let value = |key: &'static str| {
        let mut values = entries.iter().filter(|(name, _)| name == key).map(|(_, value)| value);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            (_, Some(_)) => Err(Unclear::Twice(key)),
        }
    };
    let number = |key: &'static str| {
        let Some(value) = value(key)? else { return Ok(None) };
        let number = value.parse::<u64>().ok().map(Some);
        number.ok_or_else(|| Unclear::NoNumber { key, value: value.clone() })
    };
    let location = value("location")?.ok_or(Unclear::Missing("location"))?.clone();
    let (offset, length) = (number("offset")?.unwrap_or_default(), number("length")?);
    Ok(Range { location, offset, length })
}

/// A `StringStringEntryProto`.
fn entry(bytes: &[u8]) -> Result<(String, String), Malformed> {
    let (mut key, mut value) = (String::new(), String::new());
    for field in fields(bytes) {
        let field = field?;
        match field.number {
            1 => key = field.text(),
            2 => value = field.text(),
            _ => {}
        }
    }
    Ok((key, value))
}

fn last(field: &Field<'_>) -> Result<u64, Malformed> {
    field.numbers()?.last().copied().ok_or(Malformed)
}

/// The bytes of a tensor of these dimensions and this `TensorProto.DataType`.
fn needed(dims: &[u64], dtype: u64) -> Option<u64> {
    let bits: u64 = match dtype {
        15 => 128,
        7 | 11 | 13 | 14 => 64,
        1 | 6 | 12 => 32,
        4 | 5 | 10 | 16 => 16,
        2 | 3 | 9 | 17..=20 | 24 => 8,
        21..=23 => 4,
        _ => return None,
    };
    let elements = dims.iter().try_fold(1_u64, |all, dim| all.checked_mul(*dim))?;
    Some(elements.checked_mul(bits)?.div_ceil(8))
}

#[cfg(test)]
mod tests;
