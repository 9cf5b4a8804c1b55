//! Reading a request and the context of a call.

use serde::de::DeserializeOwned;

use crate::{Blob, Context, Failure, Field, Request, json};

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
mod tests;
