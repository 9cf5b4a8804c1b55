//! `types`: the context, the request, blobs, and the records of a response and a failure.

use std::fmt;
use std::sync::Arc;

use super::json;
use super::tensors::{Dtype, Tensor, TensorError};

#[derive(Clone, Debug, PartialEq)]
pub enum BlobError {
    InvalidBase64(String),
}

impl fmt::Display for BlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for BlobError {}

#[derive(Clone, Debug, PartialEq)]
pub enum JsonError {
    InvalidJson(String),
    InvalidArgument(String),
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for JsonError {}

/// Bytes that clones share.
#[derive(Clone, Debug)]
pub struct Blob(pub(crate) Arc<[u8]>);

impl Blob {
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u64 {
        self.0.len() as u64
    }

    pub fn read(&self, offset: u64, length: u64) -> Vec<u8> {
        super::tensors::window(&self.0, offset, length).to_vec()
    }

    pub fn slice(&self, offset: u64, length: u64) -> Self {
        Self(super::tensors::window(&self.0, offset, length).into())
    }

    pub fn tensor(&self, dtype: Dtype, shape: &[u32]) -> Result<Tensor, TensorError> {
        Tensor::create(dtype, shape, &self.0)
    }

    pub fn from_bytes(data: &[u8]) -> Self {
        Self(data.into())
    }

    pub fn from_base64(text: &str) -> Result<Self, BlobError> {
        let bytes = super::base64::decode(text).map_err(BlobError::InvalidBase64)?;
        Ok(Self(bytes.into()))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub value: String,
}

#[derive(Debug)]
pub struct Part {
    pub name: String,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub body: Blob,
}

impl Part {
    fn copy(&self) -> Self {
        Self {
            name: self.name.clone(),
            filename: self.filename.clone(),
            content_type: self.content_type.clone(),
            body: self.body.clone(),
        }
    }
}

#[derive(Debug)]
pub struct Context {
    pub(crate) tenant: String,
    pub(crate) pipeline: String,
    pub(crate) model: String,
    pub(crate) request_id: String,
    pub(crate) settings: String,
    pub(crate) time_left_ms: u64,
}

impl Context {
    pub fn tenant(&self) -> String {
        self.tenant.clone()
    }

    pub fn pipeline(&self) -> String {
        self.pipeline.clone()
    }

    pub fn model(&self) -> String {
        self.model.clone()
    }

    pub fn request_id(&self) -> String {
        self.request_id.clone()
    }

    pub fn settings(&self) -> String {
        self.settings.clone()
    }

    pub fn time_left(&self) -> u64 {
        self.time_left_ms
    }
}

#[derive(Debug)]
pub struct Request {
    pub(crate) content_type: Option<String>,
    pub(crate) headers: Vec<Field>,
    pub(crate) query: Vec<Field>,
    pub(crate) body: Blob,
    pub(crate) parts: Vec<Part>,
}

impl Request {
    pub fn content_type(&self) -> Option<String> {
        self.content_type.clone()
    }

    pub fn headers(&self) -> Vec<Field> {
        self.headers.clone()
    }

    pub fn query(&self) -> Vec<Field> {
        self.query.clone()
    }

    pub fn body(&self) -> Blob {
        self.body.clone()
    }

    pub fn parts(&self) -> Vec<Part> {
        self.parts.iter().map(Part::copy).collect()
    }

    pub fn json_tensor(
        &self,
        pointer: &str,
        keys: &[String],
        dtype: Dtype,
    ) -> Result<Tensor, JsonError> {
        json::tensor(&self.body.0, pointer, keys, dtype)
    }

    pub fn json_blob(&self, pointer: &str) -> Result<Blob, JsonError> {
        json::blob(&self.body.0, pointer)
    }

    pub fn json_value(&self, pointer: &str) -> Result<Option<Vec<u8>>, JsonError> {
        json::value(&self.body.0, pointer)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    pub content_type: String,
    pub headers: Vec<Field>,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    InvalidInput(String),
    UnsupportedMediaType(String),
    Unprocessable(String),
    Internal(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Failure {}
