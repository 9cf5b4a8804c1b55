//! `json`, and what `types` has for JSON bodies: values of a request become tensors and blobs, and
//! these become parts of an answer, without passing through the guest.

mod bindings;
mod elements;
pub(crate) mod pointer;
mod rows;
mod write;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use bytes::Bytes;
use gristmill_core::{Dtype, Tensor};
use serde_json::value::RawValue;
use wasmtime::component::{HasSelf, Linker, Resource};

pub use self::bindings::wit;
use self::elements::{Elements, ElementsTarget, Fault, bytes_max};
use self::pointer::{Place, Pointer, Shown, find};
use self::write::Out;
use super::tensors::{dtype_of, wit as tensors};
use super::types::base64;
use super::types::wit::JsonError;
use crate::call::CallState;

const INTERFACE: &str = "gristmill:plugin/json@0.3.0";

/// The interface that it links.
pub(crate) const INTERFACES: &[&str] = &[INTERFACE];

/// To read a byte of JSON takes as long as to copy so many, and to write a value likewise.
const READ_WEIGHT: usize = 8;
const WRITE_WEIGHT: usize = 16;

/// Maximum keys of a tensor that is made of objects.
const KEYS_MAX: usize = 4096;

/// A part of a document, with what its handles stand for.
enum Part {
    Text(String),
    Tensor(Tensor),
    Base64(Bytes),
    Objects(Vec<(String, Tensor)>),
}

pub(crate) fn link<S: Send + 'static>(linker: &mut Linker<CallState<S>>) -> wasmtime::Result<()> {
    wit::add_to_linker::<_, HasSelf<_>>(linker, |state| state)
}

/// The value at `pointer`, which must be there.
fn required<'a>(document: &'a [u8], pointer: &str) -> Result<&'a RawValue, JsonError> {
    let found = found(document, pointer)?;
    found.ok_or_else(|| invalid(format!("{} is missing", Place::of(pointer))))
}

fn found<'a>(document: &'a [u8], pointer: &str) -> Result<Option<&'a RawValue>, JsonError> {
    let pointer = Pointer::parse(pointer).map_err(JsonError::InvalidArgument)?;
    find(document, &pointer).map_err(invalid)
}

fn invalid(why: impl fmt::Display) -> JsonError {
    JsonError::InvalidJson(format!("invalid JSON: {why}"))
}

fn check_keys(keys: &[String]) -> Result<(), JsonError> {
    if keys.len() > KEYS_MAX {
        let why = format!("{} keys are over the limit of {KEYS_MAX}", keys.len());
        return Err(JsonError::InvalidArgument(why));
    }
    let mut names = HashSet::with_capacity(keys.len());
    match keys.iter().find(|key| !names.insert(key.as_str())) {
        None => Ok(()),
        Some(twice) => {
            let twice = Shown(twice);
            Err(JsonError::InvalidArgument(format!("the key {twice:?} is given twice")))
        }
    }
}

/// The memory that texts of `value` take at most while their escapes are read: twice as much as the
/// text, since it doubles as it grows, and the text.
fn unescaped_max(value: &RawValue) -> usize {
    let text = value.get();
    if memchr::memchr(b'\\', text.as_bytes()).is_some() { 3 * text.len() } else { 0 }
}

/// What the functions of `types` give.
type Given<T> = wasmtime::Result<Result<T, JsonError>>;

impl<S: Send> CallState<S> {
    /// The request's body. Returns when the call is on a thread where all of it may be read.
    async fn document(&mut self) -> wasmtime::Result<Bytes> {
        let body = self.own_request()?.body.clone();
        self.before_looking_at(body.len().saturating_mul(READ_WEIGHT)).await?;
        Ok(body)
    }

    pub(super) async fn json_tensor(
        &mut self,
        pointer: &str,
        keys: &[String],
        dtype: tensors::Dtype,
    ) -> Given<Resource<Tensor>> {
        let (document, dtype) = (self.document().await?, dtype_of(dtype));
        let value = match check_keys(keys).and_then(|()| required(&document, pointer)) {
            Ok(value) => value,
            Err(error) => return Ok(Err(error)),
        };
        let place = Place::of(pointer);
        let (elements, held) = self.elements(value, keys, dtype, &place)?;
        let elements = match elements {
            Ok(elements) => elements,
            Err(Fault::Exhausted(exhausted)) => return Err(exhausted.into()),
            Err(Fault::Value(why)) => {
                self.give_back(held);
                return Ok(Err(invalid(why)));
            }
        };
        let reserved = self.reserve_tensor(elements.shape.len(), elements.bytes.len()).await?;
        if let Err(error) = reserved {
            self.give_back(held);
            return Ok(Err(invalid(format!("{place}: {}", text_of(error)))));
        }
        let buffer = self.pool.copy_from(&elements.bytes);
        drop(elements.bytes);
        self.give_back(held);
        let made = self.finish_tensor(dtype, elements.shape, buffer)?;
        Ok(made.map_err(|error| invalid(format!("{place}: {}", text_of(error)))))
    }

    /// The elements of a value, and the memory that was counted for them.
    fn elements(
        &mut self,
        value: &RawValue,
        keys: &[String],
        dtype: Dtype,
        place: &Place,
    ) -> wasmtime::Result<(Result<Elements, Fault>, usize)> {
        let limit = self.limits.tensor_bytes;
        let capacity = bytes_max(value, dtype, limit);
        let held = capacity + unescaped_max(value);
        self.hold(held)?;
        let may_go_on = || self.may_go_on();
        let target = ElementsTarget { dtype, limit, capacity, place, may_go_on: &may_go_on };
        let read = match keys {
            [] => target.values(value),
            keys => rows::read(&target, value, keys),
        };
        Ok((read, held))
    }

    pub(super) async fn json_blob(&mut self, pointer: &str) -> Given<Resource<Bytes>> {
        let document = self.document().await?;
        let raw = match required(&document, pointer) {
            Ok(raw) => raw,
            Err(error) => return Ok(Err(error)),
        };
        let (value, place) = (raw.get(), Place::of(pointer));
        let Some(text) = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            let kind = pointer::kind(value);
            return Ok(Err(invalid(format!("{place} is {kind}, not a text in base64"))));
        };
        let scratch = unescaped_max(raw);
        self.hold(base64::bytes_max(text.len()) + scratch)?;
        // Some clients write `/` as `\/`.
        let text = match scratch {
            0 => Ok(Cow::Borrowed(text)),
            _ => serde_json::from_str::<String>(value).map(Cow::Owned),
        };
        let decoded = match text {
            Ok(text) => base64::decode(&text, || self.may_go_on())?,
            Err(error) => Err(error.to_string()),
        };
        self.give_back(scratch);
        match decoded {
            Ok(bytes) => Ok(Ok(self.table.push(Bytes::from(bytes))?)),
            Err(why) => Ok(Err(invalid(format!("{place}: {why}")))),
        }
    }

    pub(super) async fn json_value(&mut self, pointer: &str) -> Given<Option<Vec<u8>>> {
        let document = self.document().await?;
        let value = match found(&document, pointer) {
            Ok(Some(value)) => value.get().as_bytes(),
            Ok(None) => return Ok(Ok(None)),
            Err(error) => return Ok(Err(error)),
        };
        self.before_copying(value.len()).await?;
        Ok(Ok(Some(value.to_vec())))
    }

    /// Check the number of pieces of a document.
    fn check_pieces(&self, count: usize) -> Result<(), String> {
        let most = self.limits.handles;
        if count > most {
            return Err(format!("{count} pieces are given; the limit is {most}"));
        }
        Ok(())
    }

    fn part(&self, part: wit::Part) -> wasmtime::Result<Part> {
        Ok(match part {
            wit::Part::Text(text) => Part::Text(text),
            wit::Part::Tensor(tensor) => Part::Tensor(self.table.get(&tensor)?.clone()),
            wit::Part::Base64(blob) => Part::Base64(self.table.get(&blob)?.clone()),
            wit::Part::Objects(columns) => {
                let column =
                    |wit::Column { key, elements }| Ok((key, self.table.get(&elements)?.clone()));
                let columns = columns.into_iter().map(column);
                Part::Objects(columns.collect::<wasmtime::Result<_>>()?)
            }
        })
    }
}

/// The memory that a part or a column takes at most: a tensor of 32 dimensions has its shape apart.
const PART_BYTES: usize = size_of::<Part>() + size_of::<String>() + 32 * size_of::<usize>();

/// Why these columns make no list of objects.
fn check_columns(columns: &[(String, Tensor)]) -> Result<(), String> {
    let Some((first, elements)) = columns.first() else {
        return Err("a list of objects has no column".into());
    };
    let mut keys = HashSet::with_capacity(columns.len());
    for (key, column) in columns {
        let shown = Shown(key);
        if !keys.insert(key.as_str()) {
            return Err(format!("the key {shown:?} is given twice"));
        }
        let shape = column.shape();
        if shape.len() != 1 {
            return Err(format!(
                "the column {shown:?} has the shape {shape:?}: must have one dimension"
            ));
        }
        if shape != elements.shape() {
            let (length, wanted) = (shape[0], elements.shape()[0]);
            let first = Shown(first);
            return Err(format!(
                "the column {shown:?} has {length} elements, but {first:?} has {wanted}"
            ));
        }
    }
    Ok(())
}

impl Part {
    /// The bytes that could be copied in the time in which it is written.
    fn weight(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Tensor(tensor) => {
                let lists = tensor.shape().iter().scan(1_usize, |product, length| {
                    *product = product.saturating_mul(*length);
                    Some(*product)
                });
                lists.fold(tensor.as_bytes().len(), |sum, lists| {
                    sum.saturating_add(lists.saturating_mul(WRITE_WEIGHT))
                })
            }
            Self::Base64(bytes) => bytes.len(),
            Self::Objects(columns) => columns.iter().fold(0, |sum, (key, column)| {
                let value = key.len().saturating_add(WRITE_WEIGHT);
                let values = column.rows().saturating_add(1).saturating_mul(value);
                sum.saturating_add(values).saturating_add(column.as_bytes().len())
            }),
        }
    }
}

/// A tensor's error, in words for the client whose values it is made of.
fn text_of(error: tensors::TensorError) -> String {
    match error {
        tensors::TensorError::TooLarge(why)
        | tensors::TensorError::InvalidElement(why)
        | tensors::TensorError::InvalidArgument(why) => why,
        tensors::TensorError::LengthMismatch(_) => "lists of different lengths".into(),
    }
}

impl<S: Send> wit::Host for CallState<S> {
    async fn write(
        &mut self,
        pieces: Vec<wit::Piece>,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        if let Err(why) = self.check_pieces(pieces.len()) {
            return Ok(Err(why));
        }
        let part = |piece| match piece {
            wit::Piece::Text(text) => wit::Part::Text(text),
            wit::Piece::Tensor(tensor) => wit::Part::Tensor(tensor),
            wit::Piece::Base64(blob) => wit::Part::Base64(blob),
        };
        wit::Host::document(self, pieces.into_iter().map(part).collect()).await
    }

    async fn document(
        &mut self,
        parts: Vec<wit::Part>,
    ) -> wasmtime::Result<Result<Vec<u8>, String>> {
        self.meter.take_turns().await?;
        // A list may name the same tensor again and again.
        let pieces = |part: &wit::Part| match part {
            wit::Part::Objects(columns) => columns.len().max(1),
            _ => 1,
        };
        let count = parts.iter().map(pieces).sum();
        if let Err(why) = self.check_pieces(count) {
            return Ok(Err(why));
        }
        let held = count * PART_BYTES;
        self.hold(held)?;
        let parts = parts.into_iter().map(|part| self.part(part));
        let parts = parts.collect::<wasmtime::Result<Vec<_>>>()?;
        let weight = parts.iter().map(Part::weight).fold(0, usize::saturating_add);
        self.before_looking_at(weight).await?;
        let checked = parts.iter().try_for_each(|part| match part {
            Part::Objects(columns) => check_columns(columns),
            _ => Ok(()),
        });
        if let Err(why) = checked {
            self.give_back(held);
            return Ok(Err(why));
        }
        let limit = self.limits.response_bytes;
        let mut count = |bytes| {
            self.may_go_on()?;
            Ok(self.hold(bytes)?)
        };
        let mut out = Out::new(limit, &mut count);
        let written = parts.iter().try_for_each(|part| match part {
            Part::Text(text) => out.text(text),
            Part::Tensor(tensor) => out.tensor(tensor),
            Part::Base64(bytes) => out.base64(bytes),
            Part::Objects(columns) => out.objects(columns),
        });
        let written = written.and_then(|()| out.finish());
        drop(parts);
        self.give_back(held);
        match written {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(write::Fault::Stopped(error)) => Err(error),
            Err(write::Fault::NotJson(why)) => Ok(Err(why)),
            Err(write::Fault::TooLong) => {
                Ok(Err(format!("the JSON is over the limit of {limit} bytes for a response")))
            }
        }
    }
}
