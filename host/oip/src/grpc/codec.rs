//! Checking gRPC messages before they are decoded: the number of their parts, and the length of
//! names and shapes. An empty part takes two bytes of a message, but hundreds of bytes of memory.
//!
//! The contents of tensors are not checked here: they stay slices of the message.

use bytes::Buf;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

use super::proto;
use crate::{DIMENSIONS_MAX, TENSORS_MAX, TEXT_BYTES_MAX};

/// Maximum fields of a message and of its parts, taken together: parameters, for the most part.
const FIELDS_MAX: usize = 16 << 10;

/// Maximum parameters of a message and of its parts, taken together.
const PARAMETERS_MAX: usize = 1024;

/// The longest message of another kind than an inference request.
const OTHER_BYTES_MAX: usize = 1 << 20;

/// prost's codec, with a check of each message before it is decoded.
#[derive(Debug, Default)]
pub struct BoundedCodec<T, U>(ProstCodec<T, U>);

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Bounded + Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = BoundedDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        self.0.encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        BoundedDecoder(self.0.decoder())
    }
}

pub struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Bounded + Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // tonic keeps a message in one piece.
        if message.chunk().len() != message.remaining() {
            return Err(Status::internal("the message is in pieces"));
        }
        U::check(message.chunk()).map_err(Status::invalid_argument)?;
        // prost refuses nothing but what the client sent.
        let decoded = self.0.decode(message);
        decoded.map_err(|error| Status::invalid_argument(error.message()))
    }
}

/// A message that can be checked before it is decoded.
pub trait Bounded {
    /// Check the bytes of a message.
    ///
    /// # Errors
    /// They cannot be read, or would take much more memory when they are decoded.
    fn check(message: &[u8]) -> Result<(), String> {
        if message.len() > OTHER_BYTES_MAX {
            let len = message.len();
            return Err(format!("the message has {len} bytes: the limit is {OTHER_BYTES_MAX}"));
        }
        let mut counts = Counts::default();
        each(message, |_, _| counts.field())
    }
}

macro_rules! bounded {
    ($($message:ident)*) => { $(impl Bounded for proto::$message {})* };
}

bounded! {
    ModelConfigRequest ModelMetadataRequest ModelReadyRequest ModelStatisticsRequest
    RepositoryIndexRequest RepositoryModelUnloadRequest
    ServerLiveRequest ServerMetadataRequest ServerReadyRequest Unsupported
}

/// Field numbers of a `ModelInferRequest`.
mod request {
    pub(super) const MODEL_NAME: u32 = 1;
    pub(super) const ID: u32 = 3;
    pub(super) const PARAMETERS: u32 = 4;
    pub(super) const INPUTS: u32 = 5;
    pub(super) const OUTPUTS: u32 = 6;
    pub(super) const RAW_INPUT_CONTENTS: u32 = 7;
}

/// Field numbers of one of its inputs.
mod input {
    pub(super) const NAME: u32 = 1;
    pub(super) const DATATYPE: u32 = 2;
    pub(super) const SHAPE: u32 = 3;
    pub(super) const PARAMETERS: u32 = 4;
}

/// Field numbers of a `RepositoryModelLoadRequest`.
mod load {
    pub(super) const PARAMETERS: u32 = 3;
}

/// The field number of a parameter's value. Its name has 1.
const VALUE: u32 = 2;

/// The files in its parameters may be as long as a message.
impl Bounded for proto::RepositoryModelLoadRequest {
    fn check(message: &[u8]) -> Result<(), String> {
        let mut counts = Counts::default();
        each(message, |field, part| {
            counts.field()?;
            match field {
                load::PARAMETERS => counts.file(part),
                _ => text(part),
            }
        })
    }
}

/// The field number of an output's parameters.
const OUTPUT_PARAMETERS: u32 = 2;

impl Bounded for proto::ModelInferRequest {
    fn check(message: &[u8]) -> Result<(), String> {
        let (mut counts, mut inputs, mut outputs, mut raw) = (Counts::default(), 0, 0, 0);
        each(message, |field, part| {
            counts.field()?;
            match field {
                request::MODEL_NAME..=request::ID => text(part),
                request::PARAMETERS => counts.parameter(part),
                request::INPUTS => {
                    one_more(&mut inputs, "inputs")?;
                    counts.input(part)
                }
                request::OUTPUTS => {
                    one_more(&mut outputs, "outputs")?;
                    counts.output(part)
                }
                request::RAW_INPUT_CONTENTS => one_more(&mut raw, "raw_input_contents"),
                _ => Ok(()),
            }
        })
    }
}

/// The counts of a message's parts.
#[derive(Default)]
struct Counts {
    fields: usize,
    parameters: usize,
}

impl Counts {
    fn field(&mut self) -> Result<(), String> {
        self.fields += 1;
        if self.fields <= FIELDS_MAX {
            return Ok(());
        }
        Err(format!("the message has more than {FIELDS_MAX} fields"))
    }

    fn one_parameter(&mut self) -> Result<(), String> {
        self.parameters += 1;
        if self.parameters <= PARAMETERS_MAX {
            return Ok(());
        }
        Err(format!("the message has more than {PARAMETERS_MAX} parameters"))
    }

    /// Count a parameter, and check its name and its value.
    fn parameter(&mut self, entry: &[u8]) -> Result<(), String> {
        self.one_parameter()?;
        each(entry, |_, part| {
            self.field()?;
            text(part)
        })
    }

    /// Count a parameter, and check its name. Its value may be a file, which stays a slice of the
    /// message.
    fn file(&mut self, entry: &[u8]) -> Result<(), String> {
        self.one_parameter()?;
        each(entry, |field, part| {
            self.field()?;
            if field == VALUE { Ok(()) } else { text(part) }
        })
    }

    fn input(&mut self, input: &[u8]) -> Result<(), String> {
        let mut dimensions = 0;
        each(input, |field, part| {
            self.field()?;
            match field {
                input::NAME | input::DATATYPE => text(part),
                input::PARAMETERS => self.parameter(part),
                input::SHAPE => {
                    dimensions += varints(part, DIMENSIONS_MAX + 1);
                    if dimensions <= DIMENSIONS_MAX {
                        return Ok(());
                    }
                    Err(format!("a shape has more than {DIMENSIONS_MAX} dimensions"))
                }
                _ => Ok(()),
            }
        })
    }

    fn output(&mut self, output: &[u8]) -> Result<(), String> {
        each(output, |field, part| {
            self.field()?;
            match field {
                OUTPUT_PARAMETERS => self.parameter(part),
                _ => text(part),
            }
        })
    }
}

fn one_more(count: &mut usize, what: &str) -> Result<(), String> {
    *count += 1;
    if *count <= TENSORS_MAX {
        return Ok(());
    }
    Err(format!("the message has more than {TENSORS_MAX} {what}"))
}

/// Check a name, an id, or a parameter. A parameter has a few bytes around its text.
fn text(part: &[u8]) -> Result<(), String> {
    if part.len() <= TEXT_BYTES_MAX + 8 {
        return Ok(());
    }
    let len = part.len();
    Err(format!("a name, id or parameter has {len} bytes: the limit is {TEXT_BYTES_MAX}"))
}

/// The number of varints in `packed`, but at most `most`. Each ends with a byte below 128.
fn varints(packed: &[u8], most: usize) -> usize {
    packed.iter().filter(|byte| **byte < 0x80).take(most).count()
}

/// Look at each field of a message.
fn each(
    message: &[u8],
    mut visit: impl FnMut(u32, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for field in Fields::of(message) {
        let Field { number, content, .. } = field.ok_or("the message cannot be read")?;
        visit(number, content)?;
    }
    Ok(())
}

/// One field of a message.
pub(super) struct Field<'a> {
    pub(super) number: u32,
    pub(super) wire_type: WireType,
    pub(super) content: &'a [u8],
}

/// The fields of a message. If one cannot be read, None takes its place, and the iteration ends.
/// Groups cannot be read: this protocol does not have them.
pub(super) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn read(&mut self) -> Option<Field<'a>> {
        let (number, wire_type) = decode_key(&mut self.0).ok()?;
        let len = match wire_type {
            WireType::Varint => {
                let before = self.0;
                decode_varint(&mut self.0).ok()?;
                let len = before.len() - self.0.len();
                return Some(Field { number, wire_type, content: &before[..len] });
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut self.0).ok()?).ok()?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let (content, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(Field { number, wire_type, content })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Option<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests;
