//! Bodies of inference requests: reading any bytes ends, and a request that was read can be written
//! back as an answer.
//!
//! `cargo fuzz run request --fuzz-dir host/oip/fuzz`, with a nightly Rust or `RUSTC_BOOTSTRAP=1`.
//! The first two bytes are the JSON part's length; 65535 stands for none.

#![no_main]

use gristmill_core::BufferPool;
use gristmill_oip::{InferRequest, InferResponse, Output, OutputData, Room};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((length, body)) = bytes.split_first_chunk::<2>() else { return };
    let length = match u16::from_le_bytes(*length) {
        u16::MAX => None,
        length => Some(usize::from(length)),
    };
    let body = body.to_vec().into();
    let Ok(request) = InferRequest::parse(&body, length, &Room::default()) else { return };
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
    let id = request.id.as_deref();
    let response = InferResponse { model_name: "m", model_version: 1, id, outputs };
    let _ = response.write(&request, None);
});
