//! gRPC messages, bounded in how many parts they have before they are taken apart: an empty part takes two
//! bytes of a message, and hundreds of memory.

use bytes::Buf;
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// The most inputs, outputs and parameters of a message, taken together.
const PARTS_MAX: usize = 10_000;

/// The most elements of typed contents that are not packed, which is texts.
const CONTENTS_MAX: usize = 1 << 20;

/// Of a `ModelInferRequest`: the field of its inputs, and in each that of its typed contents. No other request
/// has so large a field number.
const INPUTS: u32 = 5;
const CONTENTS: u32 = 5;

#[derive(Debug, Default)]
pub(super) struct BoundedCodec<T, U>(ProstCodec<T, U>);

impl<T, U> Codec for BoundedCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
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

pub(super) struct BoundedDecoder<U>(ProstDecoder<U>);

impl<U: Message + Default> Decoder for BoundedDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // In one piece, as tonic has it.
        let whole = message.chunk();
        if whole.len() == message.remaining() && has_too_many_parts(whole) {
            let detail = format!(
                "the message has more than {PARTS_MAX} parts, or an input more than {CONTENTS_MAX} texts"
            );
            return Err(Status::invalid_argument(detail));
        }
        self.0.decode(message)
    }
}

/// Whether there is more in a message than any that is meant has.
fn has_too_many_parts(message: &[u8]) -> bool {
    let (mut parts, mut contents) = (0, 0);
    for (field, part) in Fields(message) {
        parts += 1;
        let of_input = (field == INPUTS).then_some(Fields(part)).into_iter().flatten();
        for (field, part) in of_input {
            parts += 1;
            if field == CONTENTS {
                contents += Fields(part).take(CONTENTS_MAX + 1 - contents).count();
            }
            if parts > PARTS_MAX || contents > CONTENTS_MAX {
                return true;
            }
        }
        if parts > PARTS_MAX {
            return true;
        }
    }
    false
}

/// The fields of a message with what is in them, as far as it is a message.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let (field, wire_type) = decode_key(&mut self.0).ok()?;
        let len = match wire_type {
            WireType::Varint => decode_varint(&mut self.0).map(|_| 0).ok()?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut self.0).ok()?).ok()?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        let (part, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some((field, part))
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::{CONTENTS_MAX, PARTS_MAX, has_too_many_parts};
    use crate::oip::proto::model_infer_request::InferInputTensor;
    use crate::oip::proto::{InferTensorContents, ModelInferRequest};

    /// A field of this number, length-delimited.
    fn field(number: u8, content: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        prost::encoding::encode_varint(content.len() as u64, &mut field);
        [field, content.to_vec()].concat()
    }

    #[test]
    fn parts_are_counted_without_being_made() {
        let mut message = ModelInferRequest { model_name: "m".into(), ..Default::default() };
        message.raw_input_contents = vec![vec![7; 300].into(); 5];
        let contents = InferTensorContents {
            bytes_contents: vec![vec![1].into(); CONTENTS_MAX],
            ..Default::default()
        };
        message.inputs = vec![InferInputTensor { contents: Some(contents), ..Default::default() }];
        assert!(!has_too_many_parts(&message.encode_to_vec()));

        let empty_inputs = field(5, &[]).repeat(PARTS_MAX + 1);
        let parameters = field(5, &field(4, &[]).repeat(PARTS_MAX));
        let texts = field(5, &field(5, &field(8, &[]).repeat(CONTENTS_MAX + 1)));
        for message in [empty_inputs, parameters, texts] {
            assert!(has_too_many_parts(&message));
            ModelInferRequest::decode(&message[..]).unwrap();
        }
        // What is no message is told apart by whoever decodes it.
        assert!(!has_too_many_parts(&[0x2a, 200]));
    }
}
