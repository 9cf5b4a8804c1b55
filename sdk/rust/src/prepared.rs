//! Making the result of a preprocessor.

use crate::{NamedTensor, Prepared, Tensor};

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

    /// The input of this name, for tests.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.inputs.iter().find(|input| input.name == name).map(|input| &input.tensor)
    }
}
