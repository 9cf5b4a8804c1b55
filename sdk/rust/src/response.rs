//! Making a response.

use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::bindings::json::{Piece, write};
use crate::{Blob, Failure, Field, Response, Tensor};

impl Response {
    /// 200 with `value` as JSON. Tensors and blobs may stand in it, and the host writes them: a
    /// tensor as lists of lists of its shape, with the fewest digits that mean the same value of
    /// its dtype; a blob as a text in base64.
    ///
    /// # Errors
    /// [`Failure::Internal`] if `value` cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> Result<Self, Failure> {
        let fault = |error| Failure::Internal(format!("the response as JSON: {error}"));
        Ok(Self::new("application/json", serde_json::to_vec(value).map_err(fault)?))
    }

    /// 200 with a body of this media type.
    pub fn new(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            content_type: content_type.into(),
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Add a header. The client gets only some headers: see `response.headers` in `wit/types.wit`.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(Field { name: name.into(), value: value.into() });
        self
    }
}

/// In `serde_json` the host writes the elements.
impl Serialize for Tensor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        written(Piece::Tensor(self), serializer)
    }
}

/// In `serde_json` the host writes the bytes, as a text in base64.
impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        written(Piece::Base64(self), serializer)
    }
}

fn written<S: Serializer>(piece: Piece<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let json = write(&[piece]).map_err(S::Error::custom)?;
    let json = String::from_utf8(json).map_err(S::Error::custom)?;
    RawValue::from_string(json).map_err(S::Error::custom)?.serialize(serializer)
}
