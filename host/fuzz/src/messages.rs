//! Inference requests of the Open Inference Protocol: JSON, with or without binary tensors.
//!
//! What must hold: reading ends, and an answer made of what was read is well-formed. The first two
//! bytes are the length of the JSON part; 65535 stands for none.

use bytes::Bytes;
use gristmill_core::BufferPool;
use gristmill_oip::{InferRequest, InferResponse, Output, OutputData, Room};
use serde::de::IgnoredAny;

/// The memory that tensors in JSON may take.
const ROOM_BYTES: usize = 1 << 20;

/// The target.
pub fn run(bytes: &[u8]) {
    let Some((length, body)) = bytes.split_first_chunk::<2>() else { return };
    let length = match u16::from_le_bytes(*length) {
        u16::MAX => None,
        length => Some(usize::from(length)),
    };
    let body = Bytes::copy_from_slice(body);
    let Ok(request) = InferRequest::parse(&body, length, &Room::new(None, ROOM_BYTES)) else {
        return;
    };
    let pool = BufferPool::new(1 << 20);
    let mut outputs = Vec::new();
    for input in &request.inputs {
        let _ = input.texts();
        let Ok(tensor) = input.tensor(&pool) else { continue };
        outputs.push(Output {
            name: input.name.as_str().into(),
            datatype: tensor.dtype(),
            shape: tensor.shape().into(),
            data: OutputData::Tensor(tensor),
        });
    }
    let response = InferResponse { model_name: "m", model_version: 1, outputs };
    // Some values, such as NaN, cannot be written as JSON.
    let Ok(written) = response.write(&request, None) else { return };
    let answer = written.parts.concat();
    let head = &answer[..written.header_len.unwrap_or(answer.len())];
    serde_json::from_slice::<IgnoredAny>(head).expect("the JSON of an answer is JSON");
}
