//! Runs of the pipeline's models, for a [`Handler`](crate::Handler).
//!
//! ```no_run
//! # use gristmill_plugin::models::{self, Run};
//! # use gristmill_plugin::{HandleError, Tensor};
//! # fn example(photo: &Tensor, crops: &[Tensor]) -> Result<(), HandleError> {
//! let boxes = models::infer("detect", &[("image", photo)])?;
//!
//! let runs: Vec<_> = crops.iter().map(|crop| Run::new("classify").input("image", crop)).collect();
//! for outputs in models::infer_all(&runs) {
//!     let label = outputs?.get("scores")?.argmax();
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A name is that of the pipeline's document, under `models`. Each run goes through the model's
//! batcher, where it shares batches with requests of other tenants, and ends at the request's
//! deadline. While a handler waits for a model, it uses no CPU time.
//!
//! In tests [`testing::model`](crate::testing::model) stands in for a model.

use crate::bindings::models as host;
pub use crate::bindings::models::Run;
use crate::{InferError, Outputs, Tensor};

/// Run a model. Returns this request's rows of all its outputs.
///
/// `inputs` has a tensor for each of the model's inputs, with its name, in any order. Dimension 0
/// of a tensor is rows, and all have the same number of them.
///
/// # Errors
/// Why the model gave no outputs. Returned from `handle` by `?`, it gives the client what a
/// pipeline without a handler would give: a model that is too busy is 503, for example.
pub fn infer(model: &str, inputs: &[(&str, &Tensor)]) -> Result<Outputs, InferError> {
    let inputs: Vec<_> =
        inputs.iter().map(|(name, tensor)| ((*name).to_owned(), *tensor)).collect();
    host::infer(model, &inputs).map(Outputs::new)
}

/// Run models side by side, or one model several times: the runs may share batches. Returns when
/// all have ended, with the outcome of each, in order. Each has the outputs or the error that
/// [`infer`] would give.
pub fn infer_all(runs: &[Run<'_>]) -> Vec<Result<Outputs, InferError>> {
    host::infer_all(runs).into_iter().map(|run| run.map(Outputs::new)).collect()
}

impl<'a> Run<'a> {
    /// A run of the model of this name, without inputs yet.
    pub fn new(model: &str) -> Self {
        Self { model: model.into(), inputs: Vec::new() }
    }

    /// With `tensor` as the model's input `name`.
    pub fn input(mut self, name: &str, tensor: &'a Tensor) -> Self {
        self.inputs.push((name.into(), tensor));
        self
    }
}

impl InferError {
    /// What is wrong, and what to set or to do.
    pub fn text(&self) -> &str {
        match self {
            Self::NotGranted(text)
            | Self::InvalidInput(text)
            | Self::Overloaded(text)
            | Self::Unavailable(text)
            | Self::Failed(text) => text,
        }
    }
}

#[cfg(test)]
mod tests;
