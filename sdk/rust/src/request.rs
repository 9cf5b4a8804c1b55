//! Reading a request and the context of a call.

use serde::de::DeserializeOwned;

use crate::{Blob, Context, Dtype, Failure, Field, Part, Request, Tensor, json};

impl Request {
    /// The body, copied into the plugin. For a multipart request it is empty: see
    /// [`parts`](Self::parts).
    pub fn body_bytes(&self) -> Vec<u8> {
        self.body().bytes()
    }

    /// The body as text, copied into the plugin.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the body is not UTF-8: the client's fault. It says where.
    pub fn text(&self) -> Result<String, Failure> {
        Ok(String::from_utf8(self.body_bytes())?)
    }

    /// The body as JSON, read by [`json::from_slice`]. To borrow from the body, keep
    /// [`body_bytes`](Self::body_bytes) and read it with that function.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the body does not fit `T`: the client's fault. It says where.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(json::from_slice(&self.body_bytes())?)
    }

    /// The value at `pointer` of a JSON body, a JSON Pointer (RFC 6901) as `/threshold`. None if
    /// there is no value. Only that value is copied into the plugin.
    ///
    /// [`json_tensor`](Self::json_tensor), [`json_rows`](Self::json_rows) and
    /// [`json_blob`](Self::json_blob) copy nothing: the host reads numbers, texts and base64.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the body is not JSON, or the value does not fit `T`.
    /// [`Failure::Internal`] if `pointer` is not a JSON Pointer.
    pub fn json_at<T: DeserializeOwned>(&self, pointer: &str) -> Result<Option<T>, Failure> {
        let Some(value) = self.json_value(pointer)? else { return Ok(None) };
        let fault = |error| Failure::invalid_input(format!("invalid JSON: {pointer}: {error}"));
        json::from_slice(&value).map(Some).map_err(fault)
    }

    /// The values of a list of objects at `pointer` of a JSON body, as a tensor that the host
    /// reads: each object makes a row of its values at these keys. See `json-tensor` in
    /// `wit/types.wit`.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the body is something else; it says where and what is there.
    /// [`Failure::Internal`] if `pointer` is not a JSON Pointer, or a key is given twice.
    pub fn json_rows(&self, pointer: &str, keys: &[&str], dtype: Dtype) -> Result<Tensor, Failure> {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        Ok(self.json_tensor(pointer, &keys, dtype)?)
    }

    /// The first part of a form with this name.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if there is none; it says which parts there are.
    pub fn file(&self, name: &str) -> Result<Part, Failure> {
        let parts = self.parts();
        let names: Vec<_> = parts.iter().take(10).map(|part| format!("{:?}", part.name)).collect();
        parts.into_iter().find(|part| part.name == name).ok_or_else(|| {
            Failure::invalid_input(match &names[..] {
                [] => format!("the body is not a form with a part {name:?}"),
                names => format!("the form has no part {name:?}, but {}", names.join(", ")),
            })
        })
    }

    /// The value of the first header of this name, which must be in lower case. Each call copies
    /// all headers from the host; to look at many, call [`headers`](Self::headers) once.
    pub fn header(&self, name: &str) -> Option<String> {
        first(self.headers(), name)
    }

    /// The value of the first query parameter of this name. Each call copies all parameters from
    /// the host; to look at many, call [`query`](Self::query) once.
    pub fn query_value(&self, name: &str) -> Option<String> {
        first(self.query(), name)
    }
}

fn first(fields: Vec<Field>, name: &str) -> Option<String> {
    fields.into_iter().find(|field| field.name == name).map(|field| field.value)
}

impl Context {
    /// The pipeline's settings as `T`.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the settings do not fit `T`: the fault of the configuration.
    pub fn settings_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let fault = |error| Failure::Internal(format!("the pipeline's settings: {error}"));
        serde_json::from_str(&self.settings()).map_err(fault)
    }
}

impl Blob {
    /// All bytes, copied into the plugin.
    pub fn bytes(&self) -> Vec<u8> {
        self.read(0, u64::MAX)
    }
}

#[cfg(test)]
mod json_tests;
#[cfg(test)]
mod tests;
