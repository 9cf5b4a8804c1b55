//! `models`: models are functions that the thread's test has registered.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::tensors::{NamedTensor, Tensor};
use super::types::Failure;

#[derive(Clone, Debug, PartialEq)]
pub enum InferError {
    NotGranted(String),
    InvalidInput(String),
    Overloaded(String),
    Unavailable(String),
    Failed(String),
}

impl fmt::Display for InferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for InferError {}

#[derive(Clone, Debug, PartialEq)]
pub enum HandleError {
    Failure(Failure),
    Infer(InferError),
}

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for HandleError {}

#[derive(Debug)]
pub struct Run<'a> {
    pub model: String,
    pub inputs: Vec<(String, &'a Tensor)>,
}

/// Inputs in, outputs out, with their names.
pub(crate) type Model = dyn Fn(&[(&str, &Tensor)]) -> Result<Vec<NamedTensor>, InferError>;

thread_local! {
    /// The models with their names, in the order in which they were registered.
    static MODELS: RefCell<Vec<(String, Rc<Model>)>> = const { RefCell::new(Vec::new()) };
}

/// Let this thread's runs of the model `name` call `model`, until [`remove`].
pub(crate) fn register(name: &str, model: Rc<Model>) {
    MODELS.with_borrow_mut(|models| models.push((name.into(), model)));
}

pub(crate) fn remove(model: &Rc<Model>) {
    MODELS.with_borrow_mut(|models| models.retain(|(_, other)| !Rc::ptr_eq(other, model)));
}

pub fn infer(model: &str, inputs: &[(String, &Tensor)]) -> Result<Vec<NamedTensor>, InferError> {
    let Some(function) = find(model) else {
        return Err(InferError::NotGranted(format!(
            "this test has no model {model:?}: register one with testing::model({model:?}, ..)"
        )));
    };
    let inputs: Vec<_> = inputs.iter().map(|(name, tensor)| (name.as_str(), *tensor)).collect();
    function(&inputs)
}

pub fn infer_all(runs: &[Run<'_>]) -> Vec<Result<Vec<NamedTensor>, InferError>> {
    runs.iter().map(|run| infer(&run.model, &run.inputs)).collect()
}

/// The model of this name, the one that was registered last.
fn find(name: &str) -> Option<Rc<Model>> {
    MODELS.with_borrow(|models| {
        let found = models.iter().rev().find(|(other, _)| other == name);
        found.map(|(_, model)| Rc::clone(model))
    })
}
