//! Writing an inference response's body.

use bytes::Bytes;
use gristmill_core::{Dtype, Shape, Tensor};

use crate::elements::{self, json};
use crate::{InferRequest, ParseError};

/// Binary tensors of a response that are less than this are copied behind its JSON: one write.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// What a model answered.
#[derive(Debug)]
pub struct InferResponse<'a> {
    pub model_name: &'a str,
    pub model_version: u64,
    pub id: Option<&'a str>,
    pub outputs: Vec<Output>,
}

/// An output tensor.
#[derive(Debug)]
pub struct Output {
    pub name: std::sync::Arc<str>,
    pub datatype: Dtype,
    pub shape: Shape,
    pub data: OutputData,
}

/// An output's elements, as a binary tensor has them.
#[derive(Debug)]
pub enum OutputData {
    Tensor(Tensor),
    Bytes(Bytes),
}

/// A body: its parts one after the other, and how many bytes of it are JSON where that is not all.
#[derive(Debug)]
pub struct Written {
    pub parts: Vec<Bytes>,
    pub header_len: Option<usize>,
}

impl OutputData {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Tensor(tensor) => tensor.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// The bytes where they lie; but a few rows of a large batch are copied, or a client that takes its
    /// time would keep all of the batch.
    pub fn into_bytes(self) -> Bytes {
        struct Owner(Tensor);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }
        match self {
            Self::Tensor(tensor) if tensor.is_small_part() => {
                Bytes::copy_from_slice(tensor.as_bytes())
            }
            Self::Tensor(tensor) => Bytes::from_owner(Owner(tensor)),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl InferResponse<'_> {
    /// The body that answers `request`.
    pub fn write(self, request: &InferRequest) -> Result<Written, ParseError> {
        let mut head = Vec::with_capacity(256);
        head.extend(br#"{"model_name":"#);
        json(&mut head, &self.model_name);
        head.extend(br#","model_version":""#);
        json(&mut head, &self.model_version);
        head.push(b'"');
        if let Some(id) = self.id {
            head.extend(br#","id":"#);
            json(&mut head, &id);
        }
        head.extend(br#","outputs":["#);
        let mut binary = Vec::new();
        for (index, output) in self.outputs.into_iter().enumerate() {
            if index > 0 {
                head.push(b',');
            }
            head.extend(br#"{"name":"#);
            json(&mut head, &&*output.name);
            head.extend(br#","datatype":""#);
            head.extend(output.datatype.as_str().as_bytes());
            head.extend(br#"","shape":"#);
            json(&mut head, &&output.shape[..]);
            let asked = request.outputs.iter().find(|asked| *asked.name == *output.name);
            if asked.and_then(|asked| asked.binary).unwrap_or(request.binary_output) {
                head.extend(br#","parameters":{"binary_data_size":"#);
                json(&mut head, &output.data.as_slice().len());
                head.push(b'}');
                binary.push(output.data);
            } else {
                head.extend(br#","data":"#);
                let bytes = output.data.as_slice();
                elements::write(&mut head, &output.name, output.datatype, bytes)?;
            }
            head.push(b'}');
        }
        head.extend(b"]}");
        if binary.is_empty() {
            return Ok(Written { parts: vec![head.into()], header_len: None });
        }
        let header_len = Some(head.len());
        let len: usize = binary.iter().map(|data| data.as_slice().len()).sum();
        if len < COPIED_BYTES_MAX {
            binary.iter().for_each(|data| head.extend(data.as_slice()));
            return Ok(Written { parts: vec![head.into()], header_len });
        }
        let head = std::iter::once(Bytes::from(head));
        let parts = head.chain(binary.into_iter().map(OutputData::into_bytes)).collect();
        Ok(Written { parts, header_len })
    }
}
