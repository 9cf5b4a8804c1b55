//! Writing an inference response's body.

use std::sync::Arc;

use bytes::Bytes;
use gristmill_core::{Dtype, HeldBytes, Shape, Tensor};

use crate::elements;
use crate::error::ParseError;
use crate::out::{Out, json};
use crate::request::InferRequest;

/// If all binary tensors together take fewer bytes, they are copied behind the JSON, so that the
/// response is one write.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// An inference response.
#[derive(Debug)]
pub struct InferResponse<'a> {
    /// The model's name, as the request gave it.
    pub model_name: &'a str,
    /// The version that ran.
    pub model_version: u64,
    /// The outputs, in the order in which they are sent.
    pub outputs: Vec<Output>,
}

/// An output tensor.
#[derive(Debug)]
pub struct Output {
    /// The model's name for it.
    pub name: Arc<str>,
    /// Element type.
    pub datatype: Dtype,
    /// Dimensions.
    pub shape: Shape,
    /// The elements.
    pub data: OutputData,
}

/// The bytes of an output's elements.
#[derive(Debug)]
pub enum OutputData {
    /// A tensor that a model made.
    Tensor(Tensor),
    /// The bytes of a binary tensor.
    Bytes(Bytes),
}

/// A response's body.
#[derive(Debug)]
pub struct Written {
    /// The parts of the body, in order.
    pub parts: Vec<Bytes>,
    /// The bytes of JSON before the binary tensors. None if all of the body is JSON.
    pub header_len: Option<usize>,
    /// Counts its JSON.
    pub held: Option<HeldBytes>,
}

impl OutputData {
    /// The elements' bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Tensor(tensor) => tensor.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The elements' bytes, without a copy. Only a few rows of a large batch are copied: otherwise
    /// a slow client would keep all of the batch in memory.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Tensor(tensor) if tensor.is_small_part() => {
                Bytes::copy_from_slice(tensor.as_bytes())
            }
            Self::Tensor(tensor) => Bytes::from_owner(tensor),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl InferResponse<'_> {
    /// The bytes of the elements that the answer to `request` has as JSON.
    pub fn json_bytes(&self, request: &InferRequest) -> usize {
        let written = self.outputs.iter().filter(|output| !output.is_binary(request));
        written.map(|output| output.data.as_slice().len()).sum()
    }

    /// The body that answers `request`, with its id. Full pieces of JSON are added to `held` while
    /// it is written.
    ///
    /// # Errors
    /// [`ParseError::NotJson`] if an output cannot be written as JSON,
    /// [`ParseError::OverBudget`] if the budget has no room for the JSON.
    pub fn write(
        self,
        request: &InferRequest,
        held: Option<HeldBytes>,
    ) -> Result<Written, ParseError> {
        let mut out = Out::new(held);
        let head = &mut out.bytes;
        head.extend(br#"{"model_name":"#);
        json(head, &self.model_name);
        head.extend(br#","model_version":""#);
        json(head, &self.model_version);
        head.push(b'"');
        if let Some(id) = &request.id {
            head.extend(br#","id":"#);
            json(head, id);
        }
        head.extend(br#","outputs":["#);
        let mut binary = Vec::new();
        for (index, output) in self.outputs.into_iter().enumerate() {
            let head = &mut out.bytes;
            if index > 0 {
                head.push(b',');
            }
            head.extend(br#"{"name":"#);
            json(head, &&*output.name);
            head.extend(br#","datatype":""#);
            head.extend(output.datatype.as_str().as_bytes());
            head.extend(br#"","shape":"#);
            json(head, &&output.shape[..]);
            if output.is_binary(request) {
                head.extend(br#","parameters":{"binary_data_size":"#);
                json(head, &output.data.as_slice().len());
                head.push(b'}');
                binary.push(output.data);
            } else {
                head.extend(br#","data":"#);
                let bytes = output.data.as_slice();
                elements::write(&mut out, &output.name, output.datatype, bytes)?;
            }
            out.bytes.push(b'}');
        }
        let Out { mut parts, bytes: mut head, held } = out;
        head.extend(b"]}");
        if binary.is_empty() {
            parts.push(head.into());
            return Ok(Written { parts, header_len: None, held });
        }
        let header_len = Some(parts.iter().map(Bytes::len).sum::<usize>() + head.len());
        let len: usize = binary.iter().map(|data| data.as_slice().len()).sum();
        if len < COPIED_BYTES_MAX {
            binary.iter().for_each(|data| head.extend(data.as_slice()));
            parts.push(head.into());
            return Ok(Written { parts, header_len, held });
        }
        parts.push(head.into());
        parts.extend(binary.into_iter().map(OutputData::into_bytes));
        Ok(Written { parts, header_len, held })
    }
}

impl Output {
    /// Whether the answer to `request` has it as binary data.
    fn is_binary(&self, request: &InferRequest) -> bool {
        let asked = request.outputs.iter().find(|asked| *asked.name == *self.name);
        asked.and_then(|asked| asked.binary).unwrap_or(request.binary_output)
    }
}
