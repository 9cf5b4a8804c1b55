//! Making a response.

use serde::Serialize;

use crate::{Failure, Field, Response};

impl Response {
    /// 200 with `value` as JSON.
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
