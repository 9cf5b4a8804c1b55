//! Reading a request, and making the model's inputs.

use serde::de::DeserializeOwned;

use crate::{Blob, Failure, NamedTensor, Prepared, Request, Tensor};

impl Request {
    /// The body, copied into the plugin.
    pub fn body_bytes(&self) -> Vec<u8> {
        self.body.bytes()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the body does not fit `T`: the client's fault. It says where.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(serde_json::from_slice(&self.body_bytes())?)
    }

    /// The pipeline's settings as `T`.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the settings do not fit `T`: the fault of the configuration.
    pub fn settings_as<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let fault = |error| Failure::Internal(format!("the pipeline's settings: {error}"));
        serde_json::from_str(&self.settings).map_err(fault)
    }

    /// The value of the first header of this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|field| field.name == name).map(|field| field.value.as_str())
    }

    /// The value of the first query parameter of this name.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|field| field.name == name).map(|field| field.value.as_str())
    }
}

impl Blob {
    /// All bytes, copied into the plugin.
    pub fn bytes(&self) -> Vec<u8> {
        self.read(0, u64::MAX)
    }
}

impl Prepared {
    /// No inputs and no state yet.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { inputs: Vec::new(), state: Vec::new() }
    }

    /// With `tensor` as the model's input `name`.
    pub fn input(mut self, name: &str, tensor: Tensor) -> Self {
        self.inputs.push(NamedTensor { name: name.into(), tensor });
        self
    }

    /// With `state` for the postprocessor.
    pub fn state(mut self, state: Vec<u8>) -> Self {
        self.state = state;
        self
    }
}
