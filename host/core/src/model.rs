//! Models, as all crates above the backends see them. `inputs` checks what is given to one.

pub(crate) mod inputs;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::dtype::Dtype;
use crate::tensor::Tensor;

/// One loaded instance of a model. Owned by one thread at a time; several instances run side by
/// side.
pub trait Model: Send {
    /// Run one batch. Takes a tensor for each of [`ModelInfo::inputs`], in that order, and returns
    /// one for each of [`ModelInfo::outputs`], in that order. Dimension 0 is rows.
    fn run(&mut self, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError>;

    /// Run one request that also gives inputs of [`ModelInfo::optional`].
    ///
    /// # Errors
    /// As for [`run`](Self::run); or the model has defaults for none of its inputs.
    fn run_with(
        &mut self,
        inputs: &[Tensor],
        optional: &[NamedTensor],
    ) -> Result<Vec<Tensor>, ModelError> {
        match optional.first() {
            None => self.run(inputs),
            Some(input) => Err(ModelError::new(format!("input {:?} cannot be given", input.name))),
        }
    }

    /// The provider that ran the last batch, if the model has several.
    fn provider(&self) -> Option<&'static str> {
        None
    }

    /// Whether the last batch was run by the calling thread alone. Then the thread's CPU time
    /// is that of the batch.
    fn ran_on_caller(&self) -> bool {
        false
    }

    /// The handle with which another thread ends a run. None if the model's runs cannot be ended.
    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        None
    }
}

/// Run one batch. A panic of the model becomes an error of this run, and the model can be used
/// again.
///
/// This is the only place that catches a model's panics. Call this in place of [`Model::run`] if a
/// panic would lose more than the run.
///
/// # Errors
/// The model failed or panicked.
pub fn run_guarded(model: &mut dyn Model, inputs: &[Tensor]) -> Result<Vec<Tensor>, ModelError> {
    run_guarded_with(model, inputs, &[])
}

/// Run one request that also gives inputs of [`ModelInfo::optional`], as [`run_guarded`] does.
///
/// # Errors
/// The model failed or panicked.
pub fn run_guarded_with(
    model: &mut dyn Model,
    inputs: &[Tensor],
    optional: &[NamedTensor],
) -> Result<Vec<Tensor>, ModelError> {
    catch_unwind(AssertUnwindSafe(|| match optional {
        [] => model.run(inputs),
        optional => model.run_with(inputs, optional),
    }))
    .unwrap_or_else(|_| Err(ModelError::new("panicked")))
}

/// Ends a model's runs from another thread.
pub trait Interrupt: Send + Sync {
    /// Make the current run fail soon, and each later run at once, until [`rearm`](Self::rearm).
    fn interrupt(&self);

    /// Allow runs again.
    fn rearm(&self);
}

/// Ends the runs of several models.
impl Interrupt for Vec<Arc<dyn Interrupt>> {
    fn interrupt(&self) {
        self.iter().for_each(|each| each.interrupt());
    }

    fn rearm(&self) {
        self.iter().for_each(|each| each.rearm());
    }
}

/// Why a run failed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("model failed: {text}")]
pub struct ModelError {
    /// What to do about it.
    pub kind: ModelErrorKind,
    /// The runtime's own words.
    pub text: String,
}

/// The kind of fault that a failed run shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelErrorKind {
    /// The model failed on its inputs, or the provider failed.
    Failed,
    /// The runtime says that the inputs are not what the model takes.
    InvalidInput,
    /// The runtime got no memory.
    OutOfMemory,
    /// The run went over the limit on its memory.
    OverLimit,
}

impl ModelError {
    /// A failure in the runtime's words.
    pub fn new(text: impl Into<String>) -> Self {
        Self { kind: ModelErrorKind::Failed, text: text.into() }
    }
}

/// A model's inputs and outputs, and what runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelInfo {
    /// The backend: `onnxruntime` or `tract`.
    pub backend: &'static str,
    /// Inputs, in the model's order.
    pub inputs: Vec<TensorInfo>,
    /// Outputs, in the model's order.
    pub outputs: Vec<TensorInfo>,
    /// Whether rows of several requests may share a batch, because no row influences another.
    pub forms_batches: bool,
    /// Inputs that have defaults, in the model's order. A request that gives one shares no batch,
    /// because its value is not one of a row.
    pub optional: Vec<TensorInfo>,
    /// Open dimensions of inputs that have one size, because the model gives them one name.
    pub equal_dims: Vec<EqualDims>,
}

/// Open dimensions of inputs that have one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EqualDims {
    /// The model's name for them.
    pub symbol: Arc<str>,
    /// The input's index and the dimension of each, two at least.
    pub places: Vec<(usize, usize)>,
}

/// An input's or output's name, element type and shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The model's name for it.
    pub name: Arc<str>,
    /// Element type.
    pub dtype: Dtype,
    /// Dimensions; none for a dimension that may differ from call to call. Dimension 0 is rows.
    pub dims: Vec<Option<usize>>,
}

/// A tensor and the model's name for it.
#[derive(Clone, Debug)]
pub struct NamedTensor {
    /// The model's input or output name.
    pub name: Arc<str>,
    /// The tensor.
    pub tensor: Tensor,
}

impl NamedTensor {
    /// The bytes of all `tensors`, and those that a backend holds beside them while it runs
    /// ([`Tensor::run_bytes`]).
    pub fn bytes_of(tensors: &[Self]) -> usize {
        let bytes = |Self { tensor, .. }: &Self| {
            let bytes = tensor.as_bytes().len();
            bytes + Tensor::run_bytes(tensor.dtype(), tensor.shape(), bytes)
        };
        tensors.iter().map(bytes).sum()
    }
}

impl TensorInfo {
    /// The dimensions. -1 stands for any size.
    pub fn signed_dims(&self) -> Vec<i64> {
        self.dims.iter().map(|dim| dim.map_or(-1, |size| size as i64)).collect()
    }

    /// The shape as text. -1 stands for any size.
    pub fn shape_text(&self) -> String {
        format!("{:?}", self.signed_dims())
    }

    fn takes(&self, shape: &[usize]) -> bool {
        shape.len() == self.dims.len()
            && self.dims.iter().zip(shape).all(|(dim, size)| dim.is_none_or(|dim| dim == *size))
    }
}

impl ModelInfo {
    /// Whether dimension 0 of everything is open. Then it may be rows, or something else.
    pub fn has_open_rows(&self) -> bool {
        let mut all = self.inputs.iter().chain(&self.outputs);
        !self.inputs.is_empty() && all.all(|info| matches!(info.dims.first(), Some(None)))
    }

    /// A tensor whose first dimension is fixed, if an input has an open one: without it, requests
    /// could share batches.
    pub fn fixed_among_open_rows(&self) -> Option<&TensorInfo> {
        let is_open = |info: &&TensorInfo| matches!(info.dims.first(), Some(None));
        self.inputs.iter().find(is_open)?;
        let mut all = self.inputs.iter().chain(&self.outputs);
        all.find(|info| matches!(info.dims.first(), Some(Some(_))))
    }

    /// Whether all rows of its inputs have the same shape: the dimensions after the first are
    /// fixed.
    pub fn rows_are_alike(&self) -> bool {
        let is_fixed = |input: &TensorInfo| input.dims.iter().skip(1).all(Option::is_some);
        self.inputs.iter().all(is_fixed)
    }

    /// Whether an input has texts, which can have any length.
    pub fn has_texts(&self) -> bool {
        self.inputs.iter().any(|input| input.dtype == Dtype::String)
    }
}
