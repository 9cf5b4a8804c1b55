//! The model's outputs, by name.

use super::{Element, View};
use crate::{Failure, NamedTensor, Tensor};

/// This request's rows of the model's outputs.
#[derive(Debug)]
pub struct Outputs(Vec<NamedTensor>);

impl Outputs {
    #[doc(hidden)]
    pub fn new(outputs: Vec<NamedTensor>) -> Self {
        Self(outputs)
    }

    /// The tensors with their names, for a model of a test.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn into_named(self) -> Vec<NamedTensor> {
        self.0
    }

    /// The output of this name.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the model has no such output.
    pub fn get(&self, name: &str) -> Result<&Tensor, Failure> {
        let found = self.0.iter().find(|output| output.name == name);
        found.map(|output| &output.tensor).ok_or_else(|| {
            let names: Vec<_> = self.names().collect();
            Failure::Internal(format!("the model has no output {name:?}, it has {names:?}"))
        })
    }

    /// All outputs with their names, in the model's order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.0.iter().map(|output| (output.name.as_str(), &output.tensor))
    }

    /// The names of all outputs, in the model's order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|output| output.name.as_str())
    }

    /// The elements of the output of this name. Its shape must be `shape`, in which `None` means
    /// any size.
    ///
    /// # Errors
    /// [`Failure::Internal`] if the model has no such output, or its dtype or shape differs.
    pub fn view<T: Element>(
        &self,
        name: &str,
        shape: &[Option<usize>],
    ) -> Result<View<T>, Failure> {
        let view = self.get(name)?.view::<T>()?;
        let fits = view.shape().len() == shape.len()
            && shape
                .iter()
                .zip(view.shape())
                .all(|(want, have)| want.is_none_or(|want| want == *have));
        if fits {
            return Ok(view);
        }
        Err(Failure::Internal(format!(
            "output {name:?} has shape {:?}, wanted {shape:?}",
            view.shape()
        )))
    }
}
