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
        if whole.len() == message.remaining() && parts(whole).is_some_and(|parts| parts > PARTS_MAX)
        {
            let detail = format!("the message has more than {PARTS_MAX} parts");
            return Err(Status::invalid_argument(detail));
        }
        self.0.decode(message)
    }
}

/// How many fields a message has, counted no further than is of interest; none where it is no message.
fn parts(mut message: &[u8]) -> Option<usize> {
    let mut parts = 0;
    while !message.is_empty() && parts <= PARTS_MAX {
        let (_, wire_type) = decode_key(&mut message).ok()?;
        let len = match wire_type {
            WireType::Varint => decode_varint(&mut message).map(|_| 0).ok()?,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::LengthDelimited => usize::try_from(decode_varint(&mut message).ok()?).ok()?,
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        message = message.get(len..)?;
        parts += 1;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::{PARTS_MAX, parts};
    use crate::oip::proto::ModelInferRequest;

    #[test]
    fn parts_are_counted_without_being_made() {
        let mut message = ModelInferRequest { model_name: "m".into(), ..Default::default() };
        message.raw_input_contents = vec![vec![7; 300].into(); 5];
        assert_eq!(parts(&message.encode_to_vec()), Some(6));
        let empty_inputs = [0x2a, 0].repeat(PARTS_MAX + 1);
        assert!(parts(&empty_inputs).unwrap() > PARTS_MAX);
        assert_eq!(parts(&[0x2a, 200]), None);
    }
}
